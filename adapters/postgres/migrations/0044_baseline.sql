-- The schema up to number 0044, in one script. Keys of tenants' tables lead with organisation and mode; row-level security stands behind
-- every statement. A process works as joinery_app for one tenant, whose setting must be present, and as joinery_system across tenants.

-- Prepared plans serve every organisation. With n_distinct = 1 the planner assumes that all rows belong to one, so plans suit the largest
-- tenant and do not harm small ones. Tables that are mostly read across tenants are left out.
CREATE FUNCTION expect_large_tenants(tenant_table regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1, n_distinct_inherited = 1)', tenant_table);
END
$$;
REVOKE ALL ON FUNCTION expect_large_tenants(regclass) FROM PUBLIC;

-- Rows of `tenant_table` are visible to their own organisation and mode, and to whatever works across tenants.
CREATE FUNCTION protect_tenant_table(tenant_table regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format(
        'CREATE POLICY tenant ON %s TO joinery_app USING ('
        'org = current_setting(''joinery.org'') AND livemode = (current_setting(''joinery.livemode'') = ''t''))',
        tenant_table
    );
    EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', tenant_table);
    EXECUTE format(
        'CREATE POLICY owner ON %s TO %I USING (true)',
        tenant_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = tenant_table)
    );
    -- plans are made for the largest tenant (expect_large_tenants has the tables of before)
    EXECUTE format('ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1, n_distinct_inherited = 1)', tenant_table);
END
$$;
REVOKE ALL ON FUNCTION protect_tenant_table(regclass) FROM PUBLIC;

-- Plans, organisations and who may act for them. On a cluster these lie on every node: they are read before the tenant is known.
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
SELECT protect_tenant_table('api_keys');
ALTER TABLE api_keys ALTER COLUMN org RESET (n_distinct, n_distinct_inherited);  -- spans tenants: see expect_large_tenants

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
    checked_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX sources_inbound_address ON sources (inbound_address, org) WHERE inbound_address IS NOT NULL;
CREATE INDEX sources_next_pull ON sources (next_pull) WHERE next_pull IS NOT NULL;
CREATE INDEX sources_next_stock_pull ON sources (next_stock_pull) WHERE next_stock_pull IS NOT NULL;
SELECT protect_tenant_table('sources');

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
    input jsonb,
    accept_shrink boolean NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    fetched jsonb,
    checkpoint jsonb,
    waits integer DEFAULT 0 NOT NULL,
    deaths integer DEFAULT 0 NOT NULL,
    columns jsonb DEFAULT '[]' NOT NULL,
    mappings text[] DEFAULT '{}' NOT NULL,
    turns integer DEFAULT 0 NOT NULL,
    trace text,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX runs_batch ON runs (org, livemode, source, ((input ->> 'batch')), id) WHERE (input ->> 'batch') IS NOT NULL;
CREATE INDEX runs_checks ON runs (org, livemode, source, id)
    WHERE (trigger = 'stock_check') AND (status IN ('queued', 'running', 'waiting'));
CREATE UNIQUE INDEX runs_open ON runs (org, livemode, source, stream)
    WHERE (status IN ('queued', 'running', 'waiting')) AND (trigger NOT IN ('push', 'mail', 'stock_check'));
CREATE INDEX runs_snapshot ON runs (org, livemode, snapshot COLLATE "C") WHERE snapshot IS NOT NULL;
CREATE INDEX runs_source ON runs (org, livemode, source, id);
SELECT protect_tenant_table('runs');

CREATE TABLE push_parts (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    run text COLLATE "C" NOT NULL,
    sequence integer NOT NULL,
    records bytea NOT NULL,
    counted boolean DEFAULT true NOT NULL,
    PRIMARY KEY (org, livemode, run, sequence)
);
SELECT protect_tenant_table('push_parts');

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
SELECT protect_tenant_table('uploads');

CREATE TABLE row_fingerprints (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    source text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    product text COLLATE "C" NOT NULL,
    absent_since timestamptz,
    absent_runs integer DEFAULT 0 NOT NULL,
    problems integer DEFAULT 0 NOT NULL,
    PRIMARY KEY (org, livemode, source, stream, slot, key)
) WITH (fillfactor = 80);
CREATE INDEX row_fingerprints_absent ON row_fingerprints (org, livemode, source, stream) WHERE absent_since IS NOT NULL;
SELECT protect_tenant_table('row_fingerprints');

-- The plain columns are what readers see; the `home_` columns hold what the source states where a merge shows something else.
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
    stated_category text COLLATE "C",
    stated_at timestamptz,
    merged_into text COLLATE "C",
    family text COLLATE "C",
    home_status text COLLATE "C",
    home_data bytea,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 90);
CREATE INDEX products_brand ON products (org, livemode, brand_key, id);
CREATE INDEX products_family ON products (org, livemode, family) WHERE family IS NOT NULL;
CREATE UNIQUE INDEX products_key ON products (org, livemode, key, source);
CREATE INDEX products_merged ON products (org, livemode, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX products_source ON products (org, livemode, source, id);
CREATE INDEX products_status ON products (org, livemode, status, id);
CREATE INDEX products_updated ON products (org, livemode, updated_at);
SELECT protect_tenant_table('products');

-- Search terms of a product: words of title and brand (`w:`), categories with their ancestors (`c:`), availability (`a:`), sources (`s:`).
CREATE TABLE product_terms (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, livemode, term, product)
);
ALTER TABLE product_terms ALTER COLUMN term SET STATISTICS 1000;
CREATE INDEX product_terms_product ON product_terms (org, livemode, product);
SELECT protect_tenant_table('product_terms');

-- The API's representation as bytes, one for each view of licences in use; read inline, never parsed.
CREATE TABLE product_documents (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    view text COLLATE "C" DEFAULT 'own' NOT NULL,
    body bytea NOT NULL,
    etag text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, livemode, view, product)
) WITH (fillfactor = 80, toast_tuple_target = 8160);
ALTER TABLE product_documents ALTER COLUMN body SET STORAGE MAIN;
SELECT protect_tenant_table('product_documents');

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
    gtin_key text COLLATE "C",
    stated_at timestamptz,
    merged_into text COLLATE "C",
    home_product text COLLATE "C",
    home_status text COLLATE "C",
    home_data bytea,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX variants_gtin ON variants (org, livemode, gtin_key) WHERE gtin_key IS NOT NULL;
CREATE INDEX variants_home ON variants (org, livemode, home_product) WHERE home_product IS NOT NULL;
CREATE UNIQUE INDEX variants_key ON variants (org, livemode, key, source);
CREATE INDEX variants_merged ON variants (org, livemode, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX variants_mpn ON variants (org, livemode, mpn_code) WHERE mpn_code IS NOT NULL;
CREATE INDEX variants_product ON variants (org, livemode, product);
CREATE INDEX variants_sku ON variants (org, livemode, sku_code) WHERE sku_code IS NOT NULL;
SELECT protect_tenant_table('variants');

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
    home_variant text COLLATE "C",
    home_product text COLLATE "C",
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 70);
CREATE INDEX offers_availability ON offers (org, livemode, availability, id);
CREATE INDEX offers_home ON offers (org, livemode, home_product) WHERE home_product IS NOT NULL;
CREATE INDEX offers_home_variant ON offers (org, livemode, home_variant) WHERE home_variant IS NOT NULL;
CREATE INDEX offers_product ON offers (org, livemode, product);
CREATE INDEX offers_source ON offers (org, livemode, source, id);
-- offers.updated_at has no index, so that a change of price or stock touches no index (a heap-only tuple); changes since a time are
-- found through the product, whose updated_at moves with it.
CREATE UNIQUE INDEX offers_variant ON offers (org, livemode, variant, source, location);
SELECT protect_tenant_table('offers');

-- The log of each organisation and mode: a position is the number that `event_logs` had when the event was appended.
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
    body bytea NOT NULL,
    network boolean DEFAULT false NOT NULL,
    owner text COLLATE "C"
) PARTITION BY RANGE (time);
ALTER TABLE events ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_position ON events (org, livemode, position);
CREATE INDEX events_network ON events (org, livemode, position) WHERE network;
SELECT protect_tenant_table('events');
SELECT expect_large_tenants('events_default');

-- Numbered and chained by hashes for each organisation and mode.
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
    act text COLLATE "C",
    undoes text COLLATE "C",
    undone bigint[],
    reversible boolean DEFAULT false NOT NULL,
    kept boolean DEFAULT false NOT NULL,
    sequence bigint NOT NULL,
    hash bytea,
    actor_id text GENERATED ALWAYS AS ((actor ->> 'id')) STORED COLLATE "C",
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX audit_entries_act ON audit_entries (org, livemode, act) WHERE act IS NOT NULL;
CREATE INDEX audit_entries_action ON audit_entries (org, livemode, action, id);
CREATE INDEX audit_entries_actor ON audit_entries (org, livemode, actor_id, id);
CREATE INDEX audit_entries_reversible ON audit_entries (org, livemode, id) WHERE reversible;
CREATE UNIQUE INDEX audit_entries_sequence ON audit_entries (org, livemode, sequence);
CREATE INDEX audit_entries_target ON audit_entries (org, livemode, target, id);
CREATE INDEX audit_entries_target_id ON audit_entries (org, livemode, target_id, id);
CREATE UNIQUE INDEX audit_entries_undoes ON audit_entries (org, livemode, undoes) WHERE undoes IS NOT NULL;
SELECT protect_tenant_table('audit_entries');

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
SELECT protect_tenant_table('idempotency_keys');

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
CREATE TABLE request_logs_default PARTITION OF request_logs DEFAULT;
CREATE INDEX request_logs_id ON request_logs (org, livemode, id);
CREATE INDEX request_logs_position ON request_logs (org, livemode, position);
CREATE INDEX request_logs_failed ON request_logs (org, livemode, position) WHERE status >= 400;
SELECT protect_tenant_table('request_logs');
SELECT expect_large_tenants('request_logs_default');

CREATE TABLE jobs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    args jsonb NOT NULL,
    run_at timestamptz NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    dispatched_at timestamptz,
    lease_until timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 70);
CREATE INDEX jobs_due ON jobs (run_at);
CREATE UNIQUE INDEX jobs_key ON jobs (org, livemode, kind, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_lane ON jobs (lane, id);
CREATE INDEX jobs_of_org ON jobs (org, run_at);
CREATE INDEX jobs_under_way ON jobs (org, lane) WHERE dispatched_at IS NOT NULL;
SELECT protect_tenant_table('jobs');

-- The status of the service itself, by component and day.
CREATE TABLE platform_checks (
    component text COLLATE "C" NOT NULL,
    day date NOT NULL,
    passed integer NOT NULL,
    failed integer NOT NULL,
    state text NOT NULL,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (component, day)
);

-- Which field groups of a catalogue a holder may see; the holder `*` is everybody.
CREATE TABLE licences (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    groups text[] NOT NULL,
    PRIMARY KEY (org, livemode, catalogue, holder)
);
CREATE INDEX licences_holder ON licences (holder, livemode);
SELECT protect_tenant_table('licences');
ALTER TABLE licences ALTER COLUMN org RESET (n_distinct, n_distinct_inherited);  -- spans tenants: see expect_large_tenants

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
    checkpoint bigint NOT NULL,
    network_epoch integer DEFAULT 0 NOT NULL,
    network_checkpoint bigint DEFAULT 0 NOT NULL,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 50);
CREATE INDEX webhook_endpoints_rotation ON webhook_endpoints (rotation_expires_at) WHERE rotation_expires_at IS NOT NULL;
CREATE INDEX webhook_endpoints_shard ON webhook_endpoints (shard) WHERE status = 'enabled';
SELECT protect_tenant_table('webhook_endpoints');

-- Partitioned by day through the ids, which begin with the time of their creation.
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
    network boolean DEFAULT false NOT NULL,
    PRIMARY KEY (org, livemode, id)
) PARTITION BY RANGE (id);
CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (org, livemode, endpoint, id);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (org, livemode, endpoint, id) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (org, livemode, endpoint) WHERE status IN ('pending', 'sending');
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (org, livemode, endpoint, status, id) WHERE status <> 'succeeded';
CREATE INDEX webhook_deliveries_type ON webhook_deliveries (org, livemode, endpoint, type, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (org, livemode, event);
SELECT protect_tenant_table('webhook_deliveries');
SELECT expect_large_tenants('webhook_deliveries_default');

CREATE TABLE storage_usage (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    bytes bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 50);
SELECT protect_tenant_table('storage_usage');

-- A ledger of objects in the object store. Pushed parts count by their own size until the snapshot replaces them or they are dropped.
CREATE TABLE stored_objects (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL CHECK (bytes >= 0),
    content text COLLATE "C",
    run text COLLATE "C",
    free_after timestamptz NOT NULL,
    freed boolean DEFAULT false NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, key)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX stored_objects_content ON stored_objects (org, livemode, content) WHERE (content IS NOT NULL) AND (NOT freed);
CREATE INDEX stored_objects_due ON stored_objects (kind, free_after) WHERE NOT freed;
CREATE INDEX stored_objects_freed ON stored_objects (key) WHERE freed;
CREATE INDEX stored_objects_oldest ON stored_objects (org, livemode, free_after, key) WHERE (content IS NOT NULL) AND (NOT freed);
SELECT protect_tenant_table('stored_objects');

-- Keys of the deployment that are no part of its secret, sealed under the secret in force. One row.
CREATE TABLE key_ring (
    id boolean DEFAULT true PRIMARY KEY CHECK (id),
    sealed bytea NOT NULL,
    changed_at timestamptz NOT NULL
);

-- The head of each log. Appending raises `last`, so positions stand in the order of commits. `epoch` tells one history of a log from
-- another and began behind the position `began`; events up to `low` are no longer kept; `publishes`: other tenants may see some events.
CREATE TABLE event_logs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    epoch integer NOT NULL,
    last bigint NOT NULL,
    time timestamptz,
    began bigint DEFAULT 0 NOT NULL,
    low bigint DEFAULT 0 NOT NULL,
    publishes boolean DEFAULT false NOT NULL,
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 20);
CREATE INDEX event_logs_publishing ON event_logs (org, livemode) WHERE publishes;
SELECT protect_tenant_table('event_logs');

-- In which blocks of 512 positions of a log events of a type or catalogue occur: one row for hundreds of events, where an index would
-- charge each event.
CREATE TABLE event_log_terms (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    PRIMARY KEY (org, livemode, term, block)
);
SELECT protect_tenant_table('event_log_terms');

-- Up to where each publisher's events have been copied into the network's logs, whose organisation is `network`.
CREATE TABLE network_checkpoints (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    owner text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (org, livemode, owner)
) WITH (fillfactor = 50);
SELECT protect_tenant_table('network_checkpoints');

-- The server and timeline that wrote the logs: after a restore, copy or promotion it is another one, and each log begins an epoch.
CREATE TABLE log_server (
    id boolean DEFAULT true PRIMARY KEY CHECK (id),
    identity text COLLATE "C" NOT NULL
);

-- What the columns of a source's header sets mean, as proposed by runs and confirmed by people.
CREATE TABLE mappings (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    stream text NOT NULL,
    status text NOT NULL,
    headers text[] NOT NULL,
    samples jsonb NOT NULL,
    columns jsonb NOT NULL,
    unmapped jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    confirmed_at timestamptz,
    asked integer[] DEFAULT '{}'::integer[] NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX mappings_confirmed ON mappings (org, livemode, confirmed_at) WHERE status = 'confirmed';
CREATE UNIQUE INDEX mappings_headers ON mappings (org, livemode, source, digest);
CREATE INDEX mappings_source ON mappings (org, livemode, source, id);
SELECT protect_tenant_table('mappings');

-- Messages that reached a source's address, accepted or refused.
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
CREATE INDEX inbound_messages_age ON inbound_messages (received_at);
CREATE INDEX inbound_messages_same ON inbound_messages (org, livemode, source, fingerprint, id);
CREATE INDEX inbound_messages_source ON inbound_messages (org, livemode, source, id);
SELECT protect_tenant_table('inbound_messages');

-- What was found out about the formats and feeds that a website offers.
CREATE TABLE source_probes (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    url text NOT NULL,
    status text NOT NULL,
    report jsonb,
    failure jsonb,
    proposal jsonb,
    deaths integer NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX source_probes_by_status ON source_probes (org, livemode, status, id);
SELECT protect_tenant_table('source_probes');

-- Rules that file a source's products.
CREATE TABLE category_rules (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    rules jsonb NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('category_rules');

-- Images that products name: where they are fetched, which products use them, and what is stored of them.
CREATE TABLE images (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    created_at timestamptz NOT NULL,
    renditions jsonb DEFAULT '[]' NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX images_content ON images (org, livemode, content);
SELECT protect_tenant_table('images');

CREATE TABLE image_addresses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    address text COLLATE "C" NOT NULL,
    url text NOT NULL,
    host text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    image text COLLATE "C",
    etag text,
    last_modified text,
    failure text,
    due_at timestamptz,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, address)
) WITH (fillfactor = 80);
CREATE INDEX image_addresses_due ON image_addresses (org, livemode, host, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX image_addresses_image ON image_addresses (org, livemode, image) WHERE image IS NOT NULL;
SELECT protect_tenant_table('image_addresses');

CREATE TABLE image_uses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    stale boolean NOT NULL,
    PRIMARY KEY (org, livemode, product, address)
) WITH (fillfactor = 80);
CREATE INDEX image_uses_address ON image_uses (org, livemode, address, product);
CREATE INDEX image_uses_stale ON image_uses (org, livemode, product) WHERE stale;
SELECT protect_tenant_table('image_uses');

-- Which columns of a mapping a model was asked about, and what each question used.
CREATE TABLE model_uses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    task text NOT NULL,
    subject text COLLATE "C" NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX model_uses_created ON model_uses (created_at);
SELECT protect_tenant_table('model_uses');

-- Pairs of variants that may be the same item, and merges.
CREATE TABLE match_pairs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    left_variant text COLLATE "C" NOT NULL,
    left_product text COLLATE "C" NOT NULL,
    right_variant text COLLATE "C" NOT NULL,
    right_product text COLLATE "C" NOT NULL,
    probability double precision NOT NULL,
    prior double precision NOT NULL,
    evidence jsonb NOT NULL,
    conflicts text[] NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    judgement jsonb,
    merge text COLLATE "C",
    held boolean NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX match_pairs_key ON match_pairs (org, livemode, left_variant, right_variant);
CREATE INDEX match_pairs_left_product ON match_pairs (org, livemode, left_product);
CREATE INDEX match_pairs_right ON match_pairs (org, livemode, right_variant);
CREATE INDEX match_pairs_right_product ON match_pairs (org, livemode, right_product);
CREATE INDEX match_pairs_status ON match_pairs (org, livemode, status, id);
SELECT protect_tenant_table('match_pairs');

CREATE TABLE merges (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    survivor text COLLATE "C" NOT NULL,
    merged text COLLATE "C" NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    pair text COLLATE "C",
    reason text,
    rests_on text[] NOT NULL,
    undone_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX merges_applied ON merges (org, livemode, merged) WHERE status = 'applied';
CREATE INDEX merges_kind ON merges (org, livemode, kind, id);
CREATE INDEX merges_merged ON merges (org, livemode, merged, id);
CREATE INDEX merges_pair ON merges (org, livemode, pair, id);
CREATE INDEX merges_status ON merges (org, livemode, status, id);
CREATE INDEX merges_survivor ON merges (org, livemode, survivor, id);
SELECT protect_tenant_table('merges');

CREATE TABLE judge_settings (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    model text,
    auto_merge_at double precision NOT NULL,
    auto_dismiss_at double precision NOT NULL,
    daily_budget_micros bigint NOT NULL,
    version integer NOT NULL,
    created_at timestamptz,
    updated_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('judge_settings');

-- How often anything was merged or unmerged: what was read at another count is read again.
CREATE TABLE merge_counts (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (org, livemode)
);
SELECT protect_tenant_table('merge_counts');

-- Matching after each run: variants that wait, what each item states, the keys it is found by, and learnt weights.
CREATE TABLE match_queue (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    variant text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    again boolean DEFAULT false NOT NULL,
    queued_at timestamptz DEFAULT now() NOT NULL,
    PRIMARY KEY (org, livemode, variant)
);
SELECT protect_tenant_table('match_queue');

CREATE TABLE match_items (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    variant text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    product text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    facts bytea NOT NULL,
    PRIMARY KEY (org, livemode, variant)
);
CREATE UNIQUE INDEX match_items_number ON match_items (org, livemode, number);
SELECT protect_tenant_table('match_items');

-- One row for each key and source. `numbers` are items as four bytes each, NULL once too many share the key to be compared.
CREATE TABLE match_keys (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    items integer NOT NULL,
    numbers bytea,
    codes integer DEFAULT 0 NOT NULL,
    stems integer DEFAULT 0 NOT NULL,
    PRIMARY KEY (org, livemode, key, source)
) WITH (fillfactor = 70);
ALTER TABLE match_keys ALTER COLUMN numbers SET STORAGE MAIN;
SELECT protect_tenant_table('match_keys');

CREATE TABLE match_models (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    items integer NOT NULL,
    weights jsonb NOT NULL,
    learnt_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode)
);
SELECT protect_tenant_table('match_models');

-- Files of everything that there was at one moment, to download.
CREATE TABLE exports (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    filters jsonb NOT NULL,
    rows bigint NOT NULL,
    files jsonb NOT NULL,
    keys text[] NOT NULL,
    changes_cursor text,
    error text,
    deaths integer NOT NULL,
    failures integer NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    expires_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX exports_by_status ON exports (org, livemode, status, id);
CREATE INDEX exports_due ON exports (expires_at) WHERE status = 'succeeded';
CREATE INDEX exports_waiting ON exports (created_at) WHERE status = 'pending';
SELECT protect_tenant_table('exports');

-- The end of each chain: the next entry is hashed with it as the last step of a transaction. Up to `began` entries are older than the
-- chain or no longer kept; the next one was hashed with `anchor`.
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

-- Credentials and secrets that undoing would need, sealed for their entry.
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

-- Used amounts of each meter, written in the transaction of what they count and folded into a row for each day. Entries of one `subject`
-- and day add up; `reserved` is the most that it may come to until it ends.
CREATE TABLE usage_entries (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    day date NOT NULL,
    amount bigint NOT NULL,
    reserved bigint DEFAULT 0 NOT NULL,
    PRIMARY KEY (org, livemode, meter, subject, day)
);
SELECT protect_tenant_table('usage_entries');

CREATE TABLE usage_days (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    day date NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (org, livemode, meter, day)
);
CREATE INDEX usage_days_day ON usage_days (day, meter);
SELECT protect_tenant_table('usage_days');

-- Which thresholds of a month were reported. `held_back`: deliveries wait until the next month or plan.
CREATE TABLE usage_thresholds (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    month date NOT NULL,
    percent smallint NOT NULL,
    included bigint NOT NULL,
    reached_at timestamptz NOT NULL,
    held_back boolean DEFAULT false NOT NULL,
    PRIMARY KEY (org, livemode, meter, month, percent)
);
SELECT protect_tenant_table('usage_thresholds');

-- Incidents of the service itself.
CREATE TABLE platform_incidents (
    id text COLLATE "C" PRIMARY KEY,
    component text COLLATE "C" NOT NULL,
    state text NOT NULL,
    title text NOT NULL,
    opened_by text NOT NULL,
    updates jsonb NOT NULL,
    opened_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    closed_at timestamptz
);
CREATE INDEX platform_incidents_open ON platform_incidents (id) WHERE closed_at IS NULL;

-- People, how they sign in, and their sessions. They belong to no tenant: a person may be a member of many organisations.
CREATE TABLE users (
    id text COLLATE "C" PRIMARY KEY,
    email text NOT NULL,
    email_key text COLLATE "C" NOT NULL UNIQUE,
    name text NOT NULL,
    verified_at timestamptz,
    password text,
    password_changed_at timestamptz,
    created_at timestamptz NOT NULL
);

-- Time-based one-time passwords (RFC 6238): the secret is sealed, and a step is accepted once.
CREATE TABLE authenticators (
    "user" text COLLATE "C" PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    secret bytea NOT NULL,
    confirmed_at timestamptz,
    last_step bigint DEFAULT 0 NOT NULL
);

CREATE TABLE recovery_codes (
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    used_at timestamptz,
    PRIMARY KEY ("user", digest)
);

-- `organisation` and `livemode`: what the person looks at.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organisation text COLLATE "C",
    livemode boolean NOT NULL,
    digest bytea NOT NULL UNIQUE,
    kind text NOT NULL CHECK (kind IN ('console', 'token')),
    methods text[] NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    confirmed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX sessions_expire ON sessions (expires_at);
CREATE INDEX sessions_user ON sessions ("user", id);

-- Links that are valid for one use: to sign in, set a password, or prove an address.
CREATE TABLE one_time_links (
    digest bytea PRIMARY KEY,
    purpose text NOT NULL CHECK (purpose IN ('sign_in', 'set_password', 'verify_email')),
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organisation text COLLATE "C",
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX one_time_links_expire ON one_time_links (expires_at);
CREATE INDEX one_time_links_user ON one_time_links ("user");

-- Events of a person's own security, for that person to see.
CREATE TABLE security_events (
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY ("user", id)
);
CREATE INDEX security_events_at ON security_events (at);

-- OAuth: an organisation's apps and the grants of its people lie on every node of a cluster, as API keys do; codes, tokens and sign-ins
-- lie at the coordinator, as sessions do.
CREATE TABLE oauth_apps (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    id text COLLATE "C" NOT NULL UNIQUE,
    kind text NOT NULL CHECK (kind IN ('web', 'single_page', 'native', 'machine')),
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    scopes text[] NOT NULL,
    made_by text COLLATE "C",
    digest bytea,
    last4 text,
    home text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, id)
);

CREATE TABLE oauth_grants (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    id text COLLATE "C" NOT NULL,
    app text COLLATE "C" NOT NULL,
    app_name text NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (org, id)
);
CREATE UNIQUE INDEX oauth_grants_in_force ON oauth_grants (org, app, "user") WHERE revoked_at IS NULL;

-- Apps that no organisation created: they registered themselves, or are described at the URL that is their client_id.
CREATE TABLE oauth_clients (
    id text COLLATE "C" PRIMARY KEY,
    client_id text COLLATE "C" NOT NULL UNIQUE,
    kind text NOT NULL CHECK (kind IN ('web', 'native')),
    origin text NOT NULL CHECK (origin IN ('registered', 'document')),
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    scopes text[] NOT NULL,
    digest bytea,
    last4 text,
    home text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    used_at timestamptz,
    fresh_until timestamptz
);
CREATE INDEX oauth_clients_unused ON oauth_clients (COALESCE(used_at, created_at));

-- All tokens of one sign-in; "user" and grant_id are null for a machine app.
CREATE TABLE oauth_families (
    id text COLLATE "C" PRIMARY KEY,
    app text COLLATE "C" NOT NULL,
    organisation text COLLATE "C" NOT NULL,
    "user" text COLLATE "C",
    grant_id text COLLATE "C",
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    ended text
);
CREATE INDEX oauth_families_app ON oauth_families (app);
CREATE INDEX oauth_families_expire ON oauth_families (expires_at);
CREATE INDEX oauth_families_organisation ON oauth_families (organisation);

CREATE TABLE oauth_tokens (
    digest bytea PRIMARY KEY,
    family text COLLATE "C" NOT NULL REFERENCES oauth_families (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('access', 'refresh')),
    scopes text[] NOT NULL,
    audience text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    parent bytea,
    used_at timestamptz,
    ended_at timestamptz
);
CREATE INDEX oauth_tokens_expire ON oauth_tokens (expires_at);
CREATE INDEX oauth_tokens_family ON oauth_tokens (family);
CREATE INDEX oauth_tokens_parent ON oauth_tokens (parent) WHERE parent IS NOT NULL;

CREATE TABLE oauth_codes (
    digest bytea PRIMARY KEY,
    app text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    organisation text COLLATE "C" NOT NULL,
    grant_id text COLLATE "C" NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    scopes text[] NOT NULL,
    audience text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    family text COLLATE "C" NOT NULL,
    used_at timestamptz
);
CREATE INDEX oauth_codes_expire ON oauth_codes (expires_at);

CREATE TABLE oauth_devices (
    digest bytea PRIMARY KEY,
    user_code bytea NOT NULL UNIQUE,
    app text COLLATE "C" NOT NULL,
    scopes text[] NOT NULL,
    audience text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    family text COLLATE "C" NOT NULL,
    "interval" integer NOT NULL,
    polled_at timestamptz,
    approved boolean,
    "user" text COLLATE "C",
    organisation text COLLATE "C",
    grant_id text COLLATE "C",
    used_at timestamptz
);
CREATE INDEX oauth_devices_expire ON oauth_devices (expires_at);

-- Passkeys (WebAuthn) of people, and the challenges that they sign, each once.
CREATE TABLE passkeys (
    id text COLLATE "C" PRIMARY KEY,
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    backed_up boolean NOT NULL,
    created_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX passkeys_user ON passkeys ("user", id);

CREATE TABLE passkey_challenges (
    digest bytea PRIMARY KEY,
    "user" text COLLATE "C",
    expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_expire ON passkey_challenges (expires_at);

-- Mail to people. The text is sealed, since links in it sign somebody in, and emptied once it was sent.
CREATE TABLE outgoing_mail (
    id text COLLATE "C" PRIMARY KEY,
    "to" text NOT NULL,
    subject text NOT NULL,
    purpose text NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    next_at timestamptz,
    attempts integer NOT NULL,
    sent_at timestamptz,
    failure text NOT NULL
);
CREATE INDEX outgoing_mail_next ON outgoing_mail (next_at) WHERE next_at IS NOT NULL;

-- Invitations lie on every node of a cluster beside members; when a key was last used lies with its organisation, for it is written often.
CREATE TABLE invitations (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    id text COLLATE "C" NOT NULL,
    email text NOT NULL,
    email_key text COLLATE "C" NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'editor', 'billing', 'viewer')),
    invited_by text COLLATE "C" NOT NULL,
    digest bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    revoked_at timestamptz,
    PRIMARY KEY (org, id)
);
CREATE INDEX invitations_over ON invitations (expires_at);

CREATE TABLE key_uses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, key)
);
SELECT protect_tenant_table('key_uses');

-- Single sign-on of organisations, on every node of a cluster: read before it is known who signs in.
CREATE TABLE sso_connections (
    org text COLLATE "C" PRIMARY KEY REFERENCES organisations (id),
    issuer text NOT NULL,
    client_id text NOT NULL,
    secret bytea NOT NULL,
    joins_as text CHECK (joins_as <> 'owner'),
    enforced boolean NOT NULL,
    enabled boolean NOT NULL,
    tried_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- One organisation's proof of a domain counts at a time.
CREATE TABLE sso_domains (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    domain text COLLATE "C" NOT NULL,
    token text NOT NULL,
    proven_at timestamptz,
    lost_at timestamptz,
    looked_at timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, domain)
);
CREATE INDEX sso_domains_looked ON sso_domains (looked_at) WHERE proven_at IS NOT NULL;
CREATE UNIQUE INDEX sso_domains_proven ON sso_domains (domain) WHERE proven_at IS NOT NULL;

-- Which user a provider's subject is.
CREATE TABLE sso_subjects (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    email text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (org, issuer, subject),
    UNIQUE (org, issuer, "user")
);

-- Processes that are alive, by role, by the database's clock.
CREATE TABLE platform_instances (
    instance text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    answered bigint NOT NULL,
    failed bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (instance, role)
);

-- The newest backup that `joinery backup` finished. One row.
CREATE TABLE platform_backups (
    id boolean DEFAULT true PRIMARY KEY CHECK (id),
    finished_at timestamptz NOT NULL
);

-- When rows and objects were last purged by age: the clock that purges must not have jumped since (docs/operations.md#clocks). One row.
CREATE TABLE purges (
    id boolean DEFAULT true PRIMARY KEY CHECK (id),
    last_at timestamptz NOT NULL
);

-- Rows of an organisation whatever the mode.
DO $$
DECLARE
    tenant_table regclass;
BEGIN
    FOREACH tenant_table IN ARRAY '{organisations, members, oauth_apps, oauth_grants, invitations, sso_connections, sso_domains, sso_subjects}'::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %s TO joinery_app USING (%s = current_setting(''joinery.org''))',
            tenant_table, CASE tenant_table WHEN 'organisations'::regclass THEN 'id' ELSE 'org' END
        );
        EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', tenant_table);
        EXECUTE format(
            'CREATE POLICY owner ON %s TO %I USING (true)',
            tenant_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = tenant_table)
        );
    END LOOP;
END
$$;

INSERT INTO purges (last_at) VALUES (now());
INSERT INTO plans (code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days, position) VALUES
    ('free', 'Free', 'standard', 'usd', 0, '{stream}',
     '{"records": {"per": 1000, "amount": 0, "included": 10000}, "sources": {"per": 1, "amount": 0, "included": 2}, "ai_tokens": {"per": 1000, "amount": 0, "included": 0}, "deliveries": {"per": 1000, "amount": 0, "included": 10000}, "export_rows": {"per": 1000, "amount": 0, "included": 0}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 10737418240}}', 7, 7, 1),
    ('standard', 'Standard', 'standard', 'usd', 9900, '{bulk_exports,stream}',
     '{"records": {"per": 1000, "amount": 10, "included": 500000}, "sources": {"per": 1, "amount": 900, "included": 10}, "ai_tokens": {"per": 1000, "amount": 0, "included": 0}, "deliveries": {"per": 1000, "amount": 5, "included": 1000000}, "export_rows": {"per": 1000, "amount": 10, "included": 1000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 107374182400}}', 30, 30, 2),
    ('high', 'High', 'high', 'usd', 49900, '{bulk_exports,fat_webhooks,assistant,stream}',
     '{"records": {"per": 1000, "amount": 5, "included": 10000000}, "sources": {"per": 1, "amount": 500, "included": 100}, "ai_tokens": {"per": 1000, "amount": 2, "included": 2000000}, "deliveries": {"per": 1000, "amount": 2, "included": 20000000}, "export_rows": {"per": 1000, "amount": 5, "included": 20000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 1099511627776}}', 30, 30, 3),
    ('max', 'Max', 'max', 'usd', 199900, '{bulk_exports,fat_webhooks,assistant,stream}',
     '{"records": {"per": 1000, "amount": 2, "included": 100000000}, "sources": {"per": 1, "amount": 200, "included": 1000}, "ai_tokens": {"per": 1000, "amount": 1, "included": 20000000}, "deliveries": {"per": 1000, "amount": 1, "included": 200000000}, "export_rows": {"per": 1000, "amount": 2, "included": 200000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 10995116277760}}', 30, 90, 4);
