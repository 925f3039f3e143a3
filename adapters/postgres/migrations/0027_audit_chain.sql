-- Audit entries are numbered and chained by hashes, told as a list with filters, and can be undone.

ALTER TABLE audit_entries
    ADD COLUMN act text COLLATE "C",
    ADD COLUMN undoes text COLLATE "C",
    ADD COLUMN undone bigint[],
    ADD COLUMN reversible boolean NOT NULL DEFAULT false,
    ADD COLUMN kept boolean NOT NULL DEFAULT false,
    ADD COLUMN sequence bigint,
    ADD COLUMN hash bytea,
    -- a column, for under row security no index on an expression of jsonb is used
    ADD COLUMN actor_id text COLLATE "C" GENERATED ALWAYS AS (actor ->> 'id') STORED;

-- Entries of before have their numbers and no hash: the chain begins behind them.
UPDATE audit_entries AS e SET sequence = numbered.sequence
FROM (SELECT org, livemode, id, row_number() OVER (PARTITION BY org, livemode ORDER BY id) AS sequence FROM audit_entries) AS numbered
WHERE e.org = numbered.org AND e.livemode = numbered.livemode AND e.id = numbered.id;
ALTER TABLE audit_entries ALTER COLUMN sequence SET NOT NULL;

CREATE UNIQUE INDEX audit_entries_sequence ON audit_entries (org, livemode, sequence);
CREATE INDEX audit_entries_actor ON audit_entries (org, livemode, actor_id, id);
CREATE INDEX audit_entries_action ON audit_entries (org, livemode, action, id);
CREATE INDEX audit_entries_target ON audit_entries (org, livemode, target, id);
CREATE INDEX audit_entries_target_id ON audit_entries (org, livemode, target_id, id);
CREATE INDEX audit_entries_reversible ON audit_entries (org, livemode, id) WHERE reversible;
CREATE INDEX audit_entries_act ON audit_entries (org, livemode, act) WHERE act IS NOT NULL;  -- of further entries of an act
CREATE UNIQUE INDEX audit_entries_undoes ON audit_entries (org, livemode, undoes) WHERE undoes IS NOT NULL;

-- The end of each chain: what is put behind it is hashed with it, as a transaction's last step. Up to `began` entries are
-- older than the chain, or no longer kept; the next one was hashed with `anchor`.
CREATE TABLE audit_chains (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    last bigint NOT NULL,
    hash bytea NOT NULL,
    began bigint NOT NULL,
    anchor bytea NOT NULL,
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 20);
SELECT protect_tenant_table('audit_chains');
INSERT INTO audit_chains (org, livemode, last, hash, began, anchor)
SELECT org, livemode, max(sequence), decode(repeat('00', 32), 'hex'), max(sequence), decode(repeat('00', 32), 'hex')
FROM audit_entries GROUP BY org, livemode;

-- What undoing will need and nobody may see: credentials and secrets that were replaced or taken away, sealed for their entry.
CREATE TABLE audit_kept (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    entry text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, entry)
);
CREATE INDEX audit_kept_expiry ON audit_kept (expires_at);
SELECT protect_tenant_table('audit_kept');
