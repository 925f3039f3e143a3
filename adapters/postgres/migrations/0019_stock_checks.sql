-- Runs that ask for the stock of one item wait behind those that read all, and are found by their source; and when a source's
-- stock was last asked for apart, so that its next run reads a feed that did not change. And how often a run waited for a turn
-- at its host, which counts as nothing.

DROP INDEX runs_open;
CREATE UNIQUE INDEX runs_open ON runs (org, livemode, source, stream)
    WHERE status IN ('queued', 'running', 'waiting') AND trigger NOT IN ('push', 'mail', 'stock_check');
CREATE INDEX runs_checks ON runs (org, livemode, source, id)
    WHERE trigger = 'stock_check' AND status IN ('queued', 'running', 'waiting');
ALTER TABLE sources ADD COLUMN checked_at timestamptz;
ALTER TABLE runs ADD COLUMN turns integer NOT NULL DEFAULT 0;
