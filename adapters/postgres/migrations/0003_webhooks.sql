-- What holders of licences may hear of others' catalogues; webhook endpoints and their deliveries.

ALTER TABLE events ADD COLUMN network boolean NOT NULL DEFAULT false;
CREATE INDEX events_network ON events (catalogue, position) WHERE network;

-- Up to which position the log has been dropped by age: one row.
CREATE TABLE event_floor (
    position bigint NOT NULL
);
INSERT INTO event_floor VALUES (0);

-- Granted by the catalogue's organisation to a holder; the holder `*` is everybody.
CREATE TABLE licences (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    groups text[] NOT NULL,
    PRIMARY KEY (org, livemode, catalogue, holder)
);
CREATE INDEX licences_holder ON licences (holder, livemode);

CREATE TABLE webhook_endpoints (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    url text NOT NULL,
    event_types text[] NOT NULL,
    sources text[] NOT NULL,
    categories text[] NOT NULL,
    catalogues text[] NOT NULL,
    payload text NOT NULL,
    coalesce_seconds integer NOT NULL,
    api_version text NOT NULL,
    description text,
    status text COLLATE "C" NOT NULL,
    disabled_for text,
    secret bytea NOT NULL,
    secret_last4 text NOT NULL,
    previous_secret bytea,
    previous_last4 text,
    rotation_expires_at timestamptz,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    last_success_at timestamptz,
    failing_since timestamptz,
    routed bigint NOT NULL,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 50);
CREATE INDEX webhook_endpoints_shard ON webhook_endpoints (shard) WHERE status = 'enabled';

-- Partitioned by day through the ids, which begin with the time of their making.
CREATE TABLE webhook_deliveries (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    positions bigint[] NOT NULL,
    status text COLLATE "C" NOT NULL,
    body bytea,
    attempts jsonb NOT NULL,
    tries integer NOT NULL,
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (org, livemode, id)
) PARTITION BY RANGE (id);
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (org, livemode, endpoint, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (org, livemode, event);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (org, livemode, endpoint, id) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (org, livemode, endpoint) WHERE status IN ('pending', 'sending');
CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhook_endpoints', 'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING ('
            '(org = (SELECT current_setting(''joinery.org'', true)) '
            'AND livemode = (SELECT current_setting(''joinery.livemode'', true) = ''t'')) '
            'OR (SELECT current_setting(''joinery.org'', true)) = ''*'')',
            name
        );
    END LOOP;
END
$$;
ALTER TABLE licences ENABLE ROW LEVEL SECURITY;
ALTER TABLE licences FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON licences USING ((org = (SELECT current_setting('joinery.org', true))
    AND livemode = (SELECT current_setting('joinery.livemode', true) = 't'))
    OR (SELECT current_setting('joinery.org', true)) = '*');

-- Whoever may read the feed may have it sent.
UPDATE plans SET features = features || '{stream}' WHERE code = 'free';
