-- The tables of tenants carry organisation and mode in every key; row-level security stands behind every statement.

CREATE TABLE plans (
    code text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    tier text NOT NULL CHECK (tier IN ('standard', 'high', 'max')),
    currency text NOT NULL,
    monthly integer NOT NULL,
    features text[] NOT NULL,
    meters jsonb NOT NULL,
    delivery_days integer NOT NULL,
    request_log_days integer NOT NULL,
    position integer NOT NULL
);

CREATE TABLE organisations (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('retailer', 'vendor')),
    plan text COLLATE "C" NOT NULL REFERENCES plans (code),
    api_version text,
    live_catalogue text COLLATE "C" NOT NULL UNIQUE,
    test_catalogue text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);

CREATE TABLE members (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    "user" text COLLATE "C" NOT NULL,
    email text NOT NULL,
    email_key text COLLATE "C" NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'editor', 'billing', 'viewer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, "user"),
    UNIQUE (org, email_key)
);
CREATE INDEX members_user ON members ("user", org);

CREATE TABLE api_keys (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    last4 text NOT NULL,
    restricted boolean NOT NULL,
    scopes text[] NOT NULL,
    member text COLLATE "C",
    networks text[] NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);

CREATE TABLE sources (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    connector text NOT NULL,
    config jsonb NOT NULL,
    schedule jsonb NOT NULL,
    status text NOT NULL,
    status_reason jsonb,
    licence_basis text NOT NULL,
    first_party boolean NOT NULL,
    credentials bytea,
    inbound_address text,
    failures integer NOT NULL,
    catalogue_at timestamptz,
    stock_at timestamptz,
    next_pull timestamptz,
    next_stock_pull timestamptz,
    interval_factor jsonb NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX sources_next_pull ON sources (next_pull) WHERE next_pull IS NOT NULL;
CREATE INDEX sources_next_stock_pull ON sources (next_stock_pull) WHERE next_stock_pull IS NOT NULL;
CREATE UNIQUE INDEX sources_inbound_address ON sources (inbound_address) WHERE inbound_address IS NOT NULL;

CREATE TABLE runs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    trigger text NOT NULL,
    stream text NOT NULL,
    status text NOT NULL,
    stage text NOT NULL,
    served_by text,
    stats jsonb NOT NULL,
    error jsonb,
    waiting jsonb,
    problems jsonb NOT NULL,
    snapshot text,
    input jsonb NOT NULL,
    accept_shrink boolean NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX runs_source ON runs (org, livemode, source, id);
CREATE UNIQUE INDEX runs_open ON runs (org, livemode, source, stream)
    WHERE status IN ('queued', 'running', 'waiting') AND trigger <> 'push';

CREATE TABLE push_parts (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    run text COLLATE "C" NOT NULL,
    sequence integer NOT NULL,
    records bytea NOT NULL,
    PRIMARY KEY (org, livemode, run, sequence)
);

CREATE TABLE uploads (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    filename text NOT NULL,
    content_type text NOT NULL,
    bytes bigint NOT NULL,
    status text NOT NULL,
    key text NOT NULL,
    run text COLLATE "C",
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);

CREATE TABLE marks (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    source text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    product text COLLATE "C" NOT NULL,
    absent_since timestamptz,
    absent_runs integer NOT NULL DEFAULT 0,
    PRIMARY KEY (org, livemode, source, stream, slot, key)
) WITH (fillfactor = 80);
CREATE INDEX marks_absent ON marks (org, livemode, source, stream) WHERE absent_since IS NOT NULL;

CREATE TABLE products (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    visibility text COLLATE "C" NOT NULL,
    brand_key text COLLATE "C",
    data bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 90);
CREATE UNIQUE INDEX products_key ON products (org, livemode, source, key);
CREATE INDEX products_source ON products (org, livemode, source, id);
CREATE INDEX products_brand ON products (org, livemode, brand_key, id);
CREATE INDEX products_status ON products (org, livemode, status, id);
CREATE INDEX products_updated ON products (org, livemode, updated_at);

-- What a product can be found by: words of title and brand (`w:`), categories with all above (`c:`), availability (`a:`).
CREATE TABLE product_terms (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, livemode, term, product)
);
ALTER TABLE product_terms ALTER COLUMN term SET STATISTICS 1000;
CREATE INDEX product_terms_product ON product_terms (org, livemode, product);

-- The answer as bytes, one for each view of licences in use; read inline, never parsed.
CREATE TABLE product_documents (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    view text COLLATE "C" NOT NULL DEFAULT 'own',
    body bytea NOT NULL,
    etag text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, livemode, view, product)
) WITH (fillfactor = 80, toast_tuple_target = 8160);
ALTER TABLE product_documents ALTER COLUMN body SET STORAGE MAIN;

CREATE TABLE variants (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    sku_code text COLLATE "C",
    mpn_code text COLLATE "C",
    status text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    data bytea NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX variants_key ON variants (org, livemode, source, key);
CREATE INDEX variants_product ON variants (org, livemode, product);
CREATE INDEX variants_sku ON variants (org, livemode, sku_code) WHERE sku_code IS NOT NULL;
CREATE INDEX variants_mpn ON variants (org, livemode, mpn_code) WHERE mpn_code IS NOT NULL;

CREATE TABLE offers (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    variant text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    location text COLLATE "C" NOT NULL,
    currency text COLLATE "C",
    cost bigint,
    msrp bigint,
    map bigint,
    price bigint,
    compare_at bigint,
    quantity bigint,
    incoming bytea,
    availability text COLLATE "C" NOT NULL,
    lead_time_days integer,
    version integer NOT NULL,
    stated smallint NOT NULL,
    observed_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    withdrawn_at timestamptz,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 70);
-- updated_at stays without an index, so that a change of price or stock touches no index at all (a heap-only tuple);
-- what changed since is found through the product, which moves with it.
CREATE UNIQUE INDEX offers_variant ON offers (org, livemode, variant, source, location);
CREATE INDEX offers_product ON offers (org, livemode, product);
CREATE INDEX offers_source ON offers (org, livemode, source, id);

CREATE SEQUENCE event_position AS bigint CACHE 1;
CREATE TABLE events (
    position bigint NOT NULL,
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    product text COLLATE "C",
    source text COLLATE "C",
    catalogue text COLLATE "C",
    version integer NOT NULL,
    time timestamptz NOT NULL,
    body bytea NOT NULL
) PARTITION BY RANGE (time);
CREATE INDEX events_position ON events (org, livemode, position);
ALTER TABLE events ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE events_default PARTITION OF events DEFAULT;

CREATE TABLE audit_entries (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    actor jsonb NOT NULL,
    action text COLLATE "C" NOT NULL,
    target text NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    change text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    request_id text COLLATE "C",
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);

CREATE TABLE idempotency_keys (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    headers jsonb NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE request_logs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    position text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    route text,
    query text,
    status smallint NOT NULL,
    error_code text,
    duration_ms integer NOT NULL,
    actor jsonb NOT NULL,
    via text NOT NULL,
    api_version text NOT NULL,
    idempotency_key text,
    ip text,
    user_agent text,
    created_at timestamptz NOT NULL
) PARTITION BY RANGE (created_at);
CREATE INDEX request_logs_position ON request_logs (org, livemode, position);
CREATE INDEX request_logs_id ON request_logs (org, livemode, id);
CREATE TABLE request_logs_default PARTITION OF request_logs DEFAULT;

CREATE TABLE jobs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    args jsonb NOT NULL,
    run_at timestamptz NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    dispatched_at timestamptz,
    lease_until timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX jobs_key ON jobs (org, livemode, kind, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_lane ON jobs (lane, id);
CREATE INDEX jobs_due ON jobs (run_at);

CREATE TABLE platform_checks (
    component text COLLATE "C" NOT NULL,
    day date NOT NULL,
    passed integer NOT NULL,
    failed integer NOT NULL,
    state text NOT NULL,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (component, day)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'api_keys', 'sources', 'runs', 'push_parts', 'uploads', 'marks', 'products', 'product_terms',
        'product_documents', 'variants', 'offers', 'events', 'audit_entries', 'idempotency_keys', 'request_logs', 'jobs'
    ] LOOP
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
    EXECUTE 'ALTER TABLE members ENABLE ROW LEVEL SECURITY';
    EXECUTE 'ALTER TABLE members FORCE ROW LEVEL SECURITY';
    EXECUTE 'CREATE POLICY tenant ON members USING (org = (SELECT current_setting(''joinery.org'', true)) '
            'OR (SELECT current_setting(''joinery.org'', true)) = ''*'')';
END
$$;

INSERT INTO plans (code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days, position) VALUES
    ('free', 'Free', 'standard', 'usd', 0, '{}',
     '{"export_rows": {"included": 0, "per": 1000, "amount": 0}, "ai_tokens": {"included": 0, "per": 1000, "amount": 0}, "sources": {"included": 2, "per": 1, "amount": 0}, "records": {"included": 10000, "per": 1000, "amount": 0}, "deliveries": {"included": 10000, "per": 1000, "amount": 0}}', 7, 7, 1),
    ('standard', 'Standard', 'standard', 'usd', 9900, '{bulk_exports,stream}',
     '{"export_rows": {"included": 1000000, "per": 1000, "amount": 10}, "ai_tokens": {"included": 0, "per": 1000, "amount": 0}, "sources": {"included": 10, "per": 1, "amount": 900}, "records": {"included": 500000, "per": 1000, "amount": 10}, "deliveries": {"included": 1000000, "per": 1000, "amount": 5}}', 30, 30, 2),
    ('high', 'High', 'high', 'usd', 49900, '{bulk_exports,fat_webhooks,assistant,stream}',
     '{"export_rows": {"included": 20000000, "per": 1000, "amount": 5}, "ai_tokens": {"included": 2000000, "per": 1000, "amount": 2}, "sources": {"included": 100, "per": 1, "amount": 500}, "records": {"included": 10000000, "per": 1000, "amount": 5}, "deliveries": {"included": 20000000, "per": 1000, "amount": 2}}', 30, 30, 3),
    ('max', 'Max', 'max', 'usd', 199900, '{bulk_exports,fat_webhooks,assistant,stream}',
     '{"export_rows": {"included": 200000000, "per": 1000, "amount": 2}, "ai_tokens": {"included": 20000000, "per": 1000, "amount": 1}, "sources": {"included": 1000, "per": 1, "amount": 200}, "records": {"included": 100000000, "per": 1000, "amount": 2}, "deliveries": {"included": 200000000, "per": 1000, "amount": 1}}', 30, 90, 4);
