-- Messages that reached a source's address, whether they were taken or refused; and runs of mailed files wait for each other.

CREATE TABLE inbound_messages (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    sender text NOT NULL,
    subject text NOT NULL,
    received_at timestamptz NOT NULL,
    status text NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    attachments jsonb NOT NULL,
    authentication jsonb,
    reason text,
    detail text,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX inbound_messages_source ON inbound_messages (org, livemode, source, id);
CREATE INDEX inbound_messages_same ON inbound_messages (org, livemode, source, fingerprint, id);
CREATE INDEX inbound_messages_age ON inbound_messages (received_at);
SELECT protect_tenant_table('inbound_messages');

-- A sender cannot be asked to come back when the last run has ended: mailed files queue behind each other, as pushes do.
DROP INDEX runs_open;
CREATE UNIQUE INDEX runs_open ON runs (org, livemode, source, stream)
    WHERE status IN ('queued', 'running', 'waiting') AND trigger NOT IN ('push', 'mail');
