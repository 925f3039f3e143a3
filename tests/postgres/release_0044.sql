SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.expect_large_tenants(tenant_table regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1, n_distinct_inherited = 1)', tenant_table);
END
$$;
CREATE FUNCTION public.protect_tenant_table(tenant_table regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_keys (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    digest bytea NOT NULL,
    last4 text NOT NULL,
    restricted boolean NOT NULL,
    scopes text[] NOT NULL,
    member text COLLATE pg_catalog."C",
    networks text[] NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;
CREATE TABLE public.audit_chains (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    last bigint NOT NULL,
    hash bytea NOT NULL,
    began bigint NOT NULL,
    anchor bytea NOT NULL
)
WITH (fillfactor='20');
ALTER TABLE ONLY public.audit_chains ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.audit_chains FORCE ROW LEVEL SECURITY;
CREATE TABLE public.audit_entries (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    actor jsonb NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL,
    target_id text NOT NULL COLLATE pg_catalog."C",
    change text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    request_id text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    act text COLLATE pg_catalog."C",
    undoes text COLLATE pg_catalog."C",
    undone bigint[],
    reversible boolean DEFAULT false NOT NULL,
    kept boolean DEFAULT false NOT NULL,
    sequence bigint NOT NULL,
    hash bytea,
    actor_id text GENERATED ALWAYS AS ((actor ->> 'id'::text)) STORED COLLATE pg_catalog."C"
);
ALTER TABLE ONLY public.audit_entries ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.audit_entries FORCE ROW LEVEL SECURITY;
CREATE TABLE public.audit_kept (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    entry text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.audit_kept ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.audit_kept FORCE ROW LEVEL SECURITY;
CREATE TABLE public.authenticators (
    "user" text NOT NULL COLLATE pg_catalog."C",
    secret bytea NOT NULL,
    confirmed_at timestamp with time zone,
    last_step bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.category_rules (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    rules jsonb NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.category_rules ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.category_rules FORCE ROW LEVEL SECURITY;
CREATE TABLE public.event_log_terms (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    term text NOT NULL COLLATE pg_catalog."C",
    block bigint NOT NULL
);
ALTER TABLE ONLY public.event_log_terms ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.event_log_terms FORCE ROW LEVEL SECURITY;
CREATE TABLE public.event_logs (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    epoch integer NOT NULL,
    last bigint NOT NULL,
    "time" timestamp with time zone,
    began bigint DEFAULT 0 NOT NULL,
    low bigint DEFAULT 0 NOT NULL,
    publishes boolean DEFAULT false NOT NULL
)
WITH (fillfactor='20');
ALTER TABLE ONLY public.event_logs ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.event_logs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.events (
    "position" bigint NOT NULL,
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    product text COLLATE pg_catalog."C",
    source text COLLATE pg_catalog."C",
    catalogue text COLLATE pg_catalog."C",
    version integer NOT NULL,
    "time" timestamp with time zone NOT NULL,
    body bytea NOT NULL,
    network boolean DEFAULT false NOT NULL,
    owner text COLLATE pg_catalog."C"
)
PARTITION BY RANGE ("time");
ALTER TABLE ONLY public.events ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.events ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.events FORCE ROW LEVEL SECURITY;
CREATE TABLE public.events_default (
    "position" bigint NOT NULL,
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    product text COLLATE pg_catalog."C",
    source text COLLATE pg_catalog."C",
    catalogue text COLLATE pg_catalog."C",
    version integer NOT NULL,
    "time" timestamp with time zone NOT NULL,
    body bytea NOT NULL,
    network boolean DEFAULT false NOT NULL,
    owner text COLLATE pg_catalog."C"
);
ALTER TABLE ONLY public.events_default ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.events_default ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE public.exports (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
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
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    expires_at timestamp with time zone
);
ALTER TABLE ONLY public.exports ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.exports FORCE ROW LEVEL SECURITY;
CREATE TABLE public.idempotency_keys (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    headers jsonb NOT NULL,
    body bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE TABLE public.image_addresses (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    host text NOT NULL COLLATE pg_catalog."C",
    run text NOT NULL COLLATE pg_catalog."C",
    tries integer DEFAULT 0 NOT NULL,
    image text COLLATE pg_catalog."C",
    etag text,
    last_modified text,
    failure text,
    due_at timestamp with time zone,
    checked_at timestamp with time zone NOT NULL
)
WITH (fillfactor='80');
ALTER TABLE ONLY public.image_addresses ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.image_addresses FORCE ROW LEVEL SECURITY;
CREATE TABLE public.image_uses (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    product text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    stale boolean NOT NULL
)
WITH (fillfactor='80');
ALTER TABLE ONLY public.image_uses ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.image_uses FORCE ROW LEVEL SECURITY;
CREATE TABLE public.images (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    renditions jsonb DEFAULT '[]'::jsonb NOT NULL
);
ALTER TABLE ONLY public.images ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.images FORCE ROW LEVEL SECURITY;
CREATE TABLE public.inbound_messages (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL,
    subject text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    status text NOT NULL,
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    attachments jsonb NOT NULL,
    authentication jsonb,
    reason text,
    detail text
);
ALTER TABLE ONLY public.inbound_messages ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.inbound_messages FORCE ROW LEVEL SECURITY;
CREATE TABLE public.invitations (
    org text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL,
    email_key text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    invited_by text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'editor'::text, 'billing'::text, 'viewer'::text])))
);
ALTER TABLE ONLY public.invitations FORCE ROW LEVEL SECURITY;
CREATE TABLE public.jobs (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    lane text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    args jsonb NOT NULL,
    run_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    dispatched_at timestamp with time zone,
    lease_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.jobs ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.jobs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.judge_settings (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    model text,
    auto_merge_at double precision NOT NULL,
    auto_dismiss_at double precision NOT NULL,
    daily_budget_micros bigint NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone
);
ALTER TABLE ONLY public.judge_settings ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.judge_settings FORCE ROW LEVEL SECURITY;
CREATE TABLE public.key_ring (
    id boolean DEFAULT true NOT NULL,
    sealed bytea NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    CONSTRAINT key_ring_id_check CHECK (id)
);
CREATE TABLE public.key_uses (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    used_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.key_uses ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.key_uses FORCE ROW LEVEL SECURITY;
CREATE TABLE public.licences (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    catalogue text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    groups text[] NOT NULL
);
ALTER TABLE ONLY public.licences FORCE ROW LEVEL SECURITY;
CREATE TABLE public.log_server (
    id boolean DEFAULT true NOT NULL,
    identity text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT log_server_id_check CHECK (id)
);
CREATE TABLE public.mappings (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL,
    status text NOT NULL,
    headers text[] NOT NULL,
    samples jsonb NOT NULL,
    columns jsonb NOT NULL,
    unmapped jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    asked integer[] DEFAULT '{}'::integer[] NOT NULL
);
ALTER TABLE ONLY public.mappings ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.mappings FORCE ROW LEVEL SECURITY;
CREATE TABLE public.match_items (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    variant text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    product text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    stamp bigint NOT NULL,
    facts bytea NOT NULL
);
ALTER TABLE ONLY public.match_items ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.match_items FORCE ROW LEVEL SECURITY;
CREATE TABLE public.match_keys (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    items integer NOT NULL,
    numbers bytea,
    codes integer DEFAULT 0 NOT NULL,
    stems integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.match_keys ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.match_keys ALTER COLUMN numbers SET STORAGE MAIN;
ALTER TABLE ONLY public.match_keys FORCE ROW LEVEL SECURITY;
CREATE TABLE public.match_models (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    items integer NOT NULL,
    weights jsonb NOT NULL,
    learnt_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.match_models ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.match_models FORCE ROW LEVEL SECURITY;
CREATE TABLE public.match_pairs (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    left_variant text NOT NULL COLLATE pg_catalog."C",
    left_product text NOT NULL COLLATE pg_catalog."C",
    right_variant text NOT NULL COLLATE pg_catalog."C",
    right_product text NOT NULL COLLATE pg_catalog."C",
    probability double precision NOT NULL,
    prior double precision NOT NULL,
    evidence jsonb NOT NULL,
    conflicts text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    judgement jsonb,
    merge text COLLATE pg_catalog."C",
    held boolean NOT NULL
);
ALTER TABLE ONLY public.match_pairs ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.match_pairs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.match_queue (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    variant text NOT NULL COLLATE pg_catalog."C",
    stamp bigint NOT NULL,
    again boolean DEFAULT false NOT NULL,
    queued_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.match_queue ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.match_queue FORCE ROW LEVEL SECURITY;
CREATE TABLE public.members (
    org text NOT NULL COLLATE pg_catalog."C",
    "user" text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL,
    email_key text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'editor'::text, 'billing'::text, 'viewer'::text])))
);
ALTER TABLE ONLY public.members FORCE ROW LEVEL SECURITY;
CREATE TABLE public.merge_counts (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    count bigint NOT NULL
);
ALTER TABLE ONLY public.merge_counts ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.merge_counts FORCE ROW LEVEL SECURITY;
CREATE TABLE public.merges (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    survivor text NOT NULL COLLATE pg_catalog."C",
    merged text NOT NULL COLLATE pg_catalog."C",
    decided_by text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    pair text COLLATE pg_catalog."C",
    reason text,
    rests_on text[] NOT NULL,
    undone_at timestamp with time zone
);
ALTER TABLE ONLY public.merges ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.merges FORCE ROW LEVEL SECURITY;
CREATE TABLE public.model_uses (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL,
    subject text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.model_uses ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.model_uses FORCE ROW LEVEL SECURITY;
CREATE TABLE public.network_checkpoints (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    epoch integer NOT NULL,
    "position" bigint NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY public.network_checkpoints ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.network_checkpoints FORCE ROW LEVEL SECURITY;
CREATE TABLE public.oauth_apps (
    org text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    scopes text[] NOT NULL,
    made_by text COLLATE pg_catalog."C",
    digest bytea,
    last4 text,
    home text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT oauth_apps_kind_check CHECK ((kind = ANY (ARRAY['web'::text, 'single_page'::text, 'native'::text, 'machine'::text])))
);
ALTER TABLE ONLY public.oauth_apps FORCE ROW LEVEL SECURITY;
CREATE TABLE public.oauth_clients (
    id text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    origin text NOT NULL,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    scopes text[] NOT NULL,
    digest bytea,
    last4 text,
    home text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    fresh_until timestamp with time zone,
    CONSTRAINT oauth_clients_kind_check CHECK ((kind = ANY (ARRAY['web'::text, 'native'::text]))),
    CONSTRAINT oauth_clients_origin_check CHECK ((origin = ANY (ARRAY['registered'::text, 'document'::text])))
);
CREATE TABLE public.oauth_codes (
    digest bytea NOT NULL,
    app text NOT NULL COLLATE pg_catalog."C",
    "user" text NOT NULL COLLATE pg_catalog."C",
    organisation text NOT NULL COLLATE pg_catalog."C",
    grant_id text NOT NULL COLLATE pg_catalog."C",
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    scopes text[] NOT NULL,
    audience text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    family text NOT NULL COLLATE pg_catalog."C",
    used_at timestamp with time zone
);
CREATE TABLE public.oauth_devices (
    digest bytea NOT NULL,
    user_code bytea NOT NULL,
    app text NOT NULL COLLATE pg_catalog."C",
    scopes text[] NOT NULL,
    audience text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    family text NOT NULL COLLATE pg_catalog."C",
    "interval" integer NOT NULL,
    polled_at timestamp with time zone,
    approved boolean,
    "user" text COLLATE pg_catalog."C",
    organisation text COLLATE pg_catalog."C",
    grant_id text COLLATE pg_catalog."C",
    used_at timestamp with time zone
);
CREATE TABLE public.oauth_families (
    id text NOT NULL COLLATE pg_catalog."C",
    app text NOT NULL COLLATE pg_catalog."C",
    organisation text NOT NULL COLLATE pg_catalog."C",
    "user" text COLLATE pg_catalog."C",
    grant_id text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended text
);
CREATE TABLE public.oauth_grants (
    org text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    app text NOT NULL COLLATE pg_catalog."C",
    app_name text NOT NULL,
    "user" text NOT NULL COLLATE pg_catalog."C",
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);
ALTER TABLE ONLY public.oauth_grants FORCE ROW LEVEL SECURITY;
CREATE TABLE public.oauth_tokens (
    digest bytea NOT NULL,
    family text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    scopes text[] NOT NULL,
    audience text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    parent bytea,
    used_at timestamp with time zone,
    ended_at timestamp with time zone,
    CONSTRAINT oauth_tokens_kind_check CHECK ((kind = ANY (ARRAY['access'::text, 'refresh'::text])))
);
CREATE TABLE public.offers (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    variant text NOT NULL COLLATE pg_catalog."C",
    product text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    location text NOT NULL COLLATE pg_catalog."C",
    currency text COLLATE pg_catalog."C",
    cost bigint,
    msrp bigint,
    map bigint,
    price bigint,
    compare_at bigint,
    quantity bigint,
    incoming bytea,
    availability text NOT NULL COLLATE pg_catalog."C",
    lead_time_days integer,
    version integer NOT NULL,
    stated smallint NOT NULL,
    observed_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    withdrawn_at timestamp with time zone,
    home_variant text COLLATE pg_catalog."C",
    home_product text COLLATE pg_catalog."C"
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.offers ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.offers FORCE ROW LEVEL SECURITY;
CREATE TABLE public.one_time_links (
    digest bytea NOT NULL,
    purpose text NOT NULL,
    "user" text NOT NULL COLLATE pg_catalog."C",
    organisation text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT one_time_links_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'set_password'::text, 'verify_email'::text])))
);
CREATE TABLE public.organisations (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    kind text NOT NULL,
    plan text NOT NULL COLLATE pg_catalog."C",
    api_version text,
    live_catalogue text NOT NULL COLLATE pg_catalog."C",
    test_catalogue text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT organisations_kind_check CHECK ((kind = ANY (ARRAY['retailer'::text, 'vendor'::text])))
);
ALTER TABLE ONLY public.organisations FORCE ROW LEVEL SECURITY;
CREATE TABLE public.outgoing_mail (
    id text NOT NULL COLLATE pg_catalog."C",
    "to" text NOT NULL,
    subject text NOT NULL,
    purpose text NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    next_at timestamp with time zone,
    attempts integer NOT NULL,
    sent_at timestamp with time zone,
    failure text NOT NULL
);
CREATE TABLE public.passkey_challenges (
    digest bytea NOT NULL,
    "user" text COLLATE pg_catalog."C",
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.passkeys (
    id text NOT NULL COLLATE pg_catalog."C",
    "user" text NOT NULL COLLATE pg_catalog."C",
    credential bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    backed_up boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE public.plans (
    code text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    tier text NOT NULL,
    currency text NOT NULL,
    monthly integer NOT NULL,
    features text[] NOT NULL,
    meters jsonb NOT NULL,
    delivery_days integer NOT NULL,
    request_log_days integer NOT NULL,
    "position" integer NOT NULL,
    CONSTRAINT plans_tier_check CHECK ((tier = ANY (ARRAY['standard'::text, 'high'::text, 'max'::text])))
);
CREATE TABLE public.platform_backups (
    id boolean DEFAULT true NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    CONSTRAINT platform_backups_id_check CHECK (id)
);
CREATE TABLE public.platform_checks (
    component text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    passed integer NOT NULL,
    failed integer NOT NULL,
    state text NOT NULL,
    checked_at timestamp with time zone NOT NULL
);
CREATE TABLE public.platform_incidents (
    id text NOT NULL COLLATE pg_catalog."C",
    component text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    title text NOT NULL,
    opened_by text NOT NULL,
    updates jsonb NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone
);
CREATE TABLE public.platform_instances (
    instance text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    answered bigint NOT NULL,
    failed bigint NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.product_documents (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    product text NOT NULL COLLATE pg_catalog."C",
    view text DEFAULT 'own'::text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    etag text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='80', toast_tuple_target='8160');
ALTER TABLE ONLY public.product_documents ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.product_documents ALTER COLUMN body SET STORAGE MAIN;
ALTER TABLE ONLY public.product_documents FORCE ROW LEVEL SECURITY;
CREATE TABLE public.product_terms (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    term text NOT NULL COLLATE pg_catalog."C",
    product text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY public.product_terms ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.product_terms ALTER COLUMN term SET STATISTICS 1000;
ALTER TABLE ONLY public.product_terms FORCE ROW LEVEL SECURITY;
CREATE TABLE public.products (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    catalogue text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    visibility text NOT NULL COLLATE pg_catalog."C",
    brand_key text COLLATE pg_catalog."C",
    data bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    stated_category text COLLATE pg_catalog."C",
    stated_at timestamp with time zone,
    merged_into text COLLATE pg_catalog."C",
    family text COLLATE pg_catalog."C",
    home_status text COLLATE pg_catalog."C",
    home_data bytea
)
WITH (fillfactor='90');
ALTER TABLE ONLY public.products ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.products FORCE ROW LEVEL SECURITY;
CREATE TABLE public.purges (
    id boolean DEFAULT true NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT purges_id_check CHECK (id)
);
CREATE TABLE public.push_parts (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    run text NOT NULL COLLATE pg_catalog."C",
    sequence integer NOT NULL,
    records bytea NOT NULL,
    counted boolean DEFAULT true NOT NULL
);
ALTER TABLE ONLY public.push_parts ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.push_parts FORCE ROW LEVEL SECURITY;
CREATE TABLE public.recovery_codes (
    "user" text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE public.request_logs (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    "position" text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
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
    created_at timestamp with time zone NOT NULL
)
PARTITION BY RANGE (created_at);
ALTER TABLE ONLY public.request_logs ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.request_logs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.request_logs_default (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    "position" text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
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
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.request_logs_default ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
CREATE TABLE public.row_fingerprints (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    source text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    slot integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    product text NOT NULL COLLATE pg_catalog."C",
    absent_since timestamp with time zone,
    absent_runs integer DEFAULT 0 NOT NULL,
    problems integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='80');
ALTER TABLE ONLY public.row_fingerprints ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.row_fingerprints FORCE ROW LEVEL SECURITY;
CREATE TABLE public.runs (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
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
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    fetched jsonb,
    checkpoint jsonb,
    waits integer DEFAULT 0 NOT NULL,
    deaths integer DEFAULT 0 NOT NULL,
    columns jsonb DEFAULT '[]'::jsonb NOT NULL,
    mappings text[] DEFAULT '{}'::text[] NOT NULL,
    turns integer DEFAULT 0 NOT NULL,
    trace text
);
ALTER TABLE ONLY public.runs ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.runs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now(),
    oldest_compatible integer DEFAULT 40 NOT NULL
);
CREATE TABLE public.security_events (
    "user" text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    detail text NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    "user" text NOT NULL COLLATE pg_catalog."C",
    organisation text COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    digest bytea NOT NULL,
    kind text NOT NULL,
    methods text[] NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT sessions_kind_check CHECK ((kind = ANY (ARRAY['console'::text, 'token'::text])))
);
CREATE TABLE public.source_probes (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    status text NOT NULL,
    report jsonb,
    failure jsonb,
    proposal jsonb,
    deaths integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone
);
ALTER TABLE ONLY public.source_probes ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.source_probes FORCE ROW LEVEL SECURITY;
CREATE TABLE public.sources (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    catalogue text NOT NULL COLLATE pg_catalog."C",
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
    catalogue_at timestamp with time zone,
    stock_at timestamp with time zone,
    next_pull timestamp with time zone,
    next_stock_pull timestamp with time zone,
    interval_factor jsonb NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    checked_at timestamp with time zone
);
ALTER TABLE ONLY public.sources ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.sources FORCE ROW LEVEL SECURITY;
CREATE TABLE public.sso_connections (
    org text NOT NULL COLLATE pg_catalog."C",
    issuer text NOT NULL,
    client_id text NOT NULL,
    secret bytea NOT NULL,
    joins_as text,
    enforced boolean NOT NULL,
    enabled boolean NOT NULL,
    tried_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT sso_connections_joins_as_check CHECK ((joins_as <> 'owner'::text))
);
ALTER TABLE ONLY public.sso_connections FORCE ROW LEVEL SECURITY;
CREATE TABLE public.sso_domains (
    org text NOT NULL COLLATE pg_catalog."C",
    domain text NOT NULL COLLATE pg_catalog."C",
    token text NOT NULL,
    proven_at timestamp with time zone,
    lost_at timestamp with time zone,
    looked_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.sso_domains FORCE ROW LEVEL SECURITY;
CREATE TABLE public.sso_subjects (
    org text NOT NULL COLLATE pg_catalog."C",
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    "user" text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.sso_subjects FORCE ROW LEVEL SECURITY;
CREATE TABLE public.storage_usage (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT storage_usage_bytes_check CHECK ((bytes >= 0))
)
WITH (fillfactor='50');
ALTER TABLE ONLY public.storage_usage ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.storage_usage FORCE ROW LEVEL SECURITY;
CREATE TABLE public.stored_objects (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    content text COLLATE pg_catalog."C",
    run text COLLATE pg_catalog."C",
    free_after timestamp with time zone NOT NULL,
    freed boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT stored_objects_bytes_check CHECK ((bytes >= 0))
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.stored_objects ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.stored_objects FORCE ROW LEVEL SECURITY;
CREATE TABLE public.uploads (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    filename text NOT NULL,
    content_type text NOT NULL,
    bytes bigint NOT NULL,
    status text NOT NULL,
    key text NOT NULL,
    run text COLLATE pg_catalog."C",
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone
);
ALTER TABLE ONLY public.uploads ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.uploads FORCE ROW LEVEL SECURITY;
CREATE TABLE public.usage_days (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    amount bigint NOT NULL
);
ALTER TABLE ONLY public.usage_days ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.usage_days FORCE ROW LEVEL SECURITY;
CREATE TABLE public.usage_entries (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    amount bigint NOT NULL,
    reserved bigint DEFAULT 0 NOT NULL
);
ALTER TABLE ONLY public.usage_entries ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.usage_entries FORCE ROW LEVEL SECURITY;
CREATE TABLE public.usage_thresholds (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    month date NOT NULL,
    percent smallint NOT NULL,
    included bigint NOT NULL,
    reached_at timestamp with time zone NOT NULL,
    held_back boolean DEFAULT false NOT NULL
);
ALTER TABLE ONLY public.usage_thresholds ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.usage_thresholds FORCE ROW LEVEL SECURITY;
CREATE TABLE public.users (
    id text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL,
    email_key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    verified_at timestamp with time zone,
    password text,
    password_changed_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.variants (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    product text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    sku_code text COLLATE pg_catalog."C",
    mpn_code text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    data bytea NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    gtin_key text COLLATE pg_catalog."C",
    stated_at timestamp with time zone,
    merged_into text COLLATE pg_catalog."C",
    home_product text COLLATE pg_catalog."C",
    home_status text COLLATE pg_catalog."C",
    home_data bytea
);
ALTER TABLE ONLY public.variants ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.variants FORCE ROW LEVEL SECURITY;
CREATE TABLE public.webhook_deliveries (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    endpoint text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    positions bigint[] NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    body bytea,
    attempts jsonb NOT NULL,
    tries integer NOT NULL,
    next_attempt_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    network boolean DEFAULT false NOT NULL
)
PARTITION BY RANGE (id);
ALTER TABLE ONLY public.webhook_deliveries ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.webhook_deliveries FORCE ROW LEVEL SECURITY;
CREATE TABLE public.webhook_deliveries_default (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    endpoint text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    positions bigint[] NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    body bytea,
    attempts jsonb NOT NULL,
    tries integer NOT NULL,
    next_attempt_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    network boolean DEFAULT false NOT NULL
);
ALTER TABLE ONLY public.webhook_deliveries_default ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
CREATE TABLE public.webhook_endpoints (
    org text NOT NULL COLLATE pg_catalog."C",
    livemode boolean NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
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
    status text NOT NULL COLLATE pg_catalog."C",
    disabled_for text,
    secret bytea NOT NULL,
    secret_last4 text NOT NULL,
    previous_secret bytea,
    previous_last4 text,
    rotation_expires_at timestamp with time zone,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    last_success_at timestamp with time zone,
    failing_since timestamp with time zone,
    checkpoint bigint NOT NULL,
    network_epoch integer DEFAULT 0 NOT NULL,
    network_checkpoint bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY public.webhook_endpoints ALTER COLUMN org SET (n_distinct=1, n_distinct_inherited=1);
ALTER TABLE ONLY public.webhook_endpoints FORCE ROW LEVEL SECURITY;
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_default DEFAULT;
ALTER TABLE ONLY public.request_logs ATTACH PARTITION public.request_logs_default DEFAULT;
ALTER TABLE ONLY public.webhook_deliveries ATTACH PARTITION public.webhook_deliveries_default DEFAULT;
INSERT INTO public.plans VALUES ('standard', 'Standard', 'standard', 'usd', 9900, '{bulk_exports,stream}', '{"records": {"per": 1000, "amount": 10, "included": 500000}, "sources": {"per": 1, "amount": 900, "included": 10}, "ai_tokens": {"per": 1000, "amount": 0, "included": 0}, "deliveries": {"per": 1000, "amount": 5, "included": 1000000}, "export_rows": {"per": 1000, "amount": 10, "included": 1000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 107374182400}}', 30, 30, 2);
INSERT INTO public.plans VALUES ('high', 'High', 'high', 'usd', 49900, '{bulk_exports,fat_webhooks,assistant,stream}', '{"records": {"per": 1000, "amount": 5, "included": 10000000}, "sources": {"per": 1, "amount": 500, "included": 100}, "ai_tokens": {"per": 1000, "amount": 2, "included": 2000000}, "deliveries": {"per": 1000, "amount": 2, "included": 20000000}, "export_rows": {"per": 1000, "amount": 5, "included": 20000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 1099511627776}}', 30, 30, 3);
INSERT INTO public.plans VALUES ('max', 'Max', 'max', 'usd', 199900, '{bulk_exports,fat_webhooks,assistant,stream}', '{"records": {"per": 1000, "amount": 2, "included": 100000000}, "sources": {"per": 1, "amount": 200, "included": 1000}, "ai_tokens": {"per": 1000, "amount": 1, "included": 20000000}, "deliveries": {"per": 1000, "amount": 1, "included": 200000000}, "export_rows": {"per": 1000, "amount": 2, "included": 200000000}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 10995116277760}}', 30, 90, 4);
INSERT INTO public.plans VALUES ('free', 'Free', 'standard', 'usd', 0, '{stream}', '{"records": {"per": 1000, "amount": 0, "included": 10000}, "sources": {"per": 1, "amount": 0, "included": 2}, "ai_tokens": {"per": 1000, "amount": 0, "included": 0}, "deliveries": {"per": 1000, "amount": 0, "included": 10000}, "export_rows": {"per": 1000, "amount": 0, "included": 0}, "stored_bytes": {"per": 1073741824, "amount": 0, "included": 10737418240}}', 7, 7, 1);
INSERT INTO public.purges VALUES (true, '2026-11-24 12:05:16.151767+00');
INSERT INTO public.schema_migrations VALUES ('0001_foundation', '2026-11-24 12:05:16.151767+00', 1);
INSERT INTO public.schema_migrations VALUES ('0002_organisations', '2026-11-24 12:05:16.151767+00', 2);
INSERT INTO public.schema_migrations VALUES ('0003_webhooks', '2026-11-24 12:05:16.151767+00', 3);
INSERT INTO public.schema_migrations VALUES ('0004_names', '2026-11-24 12:05:16.151767+00', 4);
INSERT INTO public.schema_migrations VALUES ('0005_run_inputs', '2026-11-24 12:05:16.151767+00', 5);
INSERT INTO public.schema_migrations VALUES ('0006_search_path', '2026-11-24 12:05:16.151767+00', 6);
INSERT INTO public.schema_migrations VALUES ('0007_storage', '2026-11-24 12:05:16.151767+00', 7);
INSERT INTO public.schema_migrations VALUES ('0008_key_ring', '2026-11-24 12:05:16.151767+00', 8);
INSERT INTO public.schema_migrations VALUES ('0009_runs_that_die', '2026-11-24 12:05:16.151767+00', 9);
INSERT INTO public.schema_migrations VALUES ('0010_two_roles', '2026-11-24 12:05:16.151767+00', 10);
INSERT INTO public.schema_migrations VALUES ('0011_event_logs', '2026-11-24 12:05:16.151767+00', 11);
INSERT INTO public.schema_migrations VALUES ('0012_flat_lists', '2026-11-24 12:05:16.151767+00', 12);
INSERT INTO public.schema_migrations VALUES ('0013_mappings', '2026-11-24 12:05:16.151767+00', 13);
INSERT INTO public.schema_migrations VALUES ('0014_mail', '2026-11-24 12:05:16.151767+00', 14);
INSERT INTO public.schema_migrations VALUES ('0015_source_probes', '2026-11-24 12:05:16.151767+00', 15);
INSERT INTO public.schema_migrations VALUES ('0016_category_rules', '2026-11-24 12:05:16.151767+00', 16);
INSERT INTO public.schema_migrations VALUES ('0017_problems_of_rows', '2026-11-24 12:05:16.151767+00', 17);
INSERT INTO public.schema_migrations VALUES ('0018_media', '2026-11-24 12:05:16.151767+00', 18);
INSERT INTO public.schema_migrations VALUES ('0019_stock_checks', '2026-11-24 12:05:16.151767+00', 19);
INSERT INTO public.schema_migrations VALUES ('0020_asked_models', '2026-11-24 12:05:16.151767+00', 20);
INSERT INTO public.schema_migrations VALUES ('0021_renditions', '2026-11-24 12:05:16.151767+00', 21);
INSERT INTO public.schema_migrations VALUES ('0022_finding', '2026-11-24 12:05:16.151767+00', 22);
INSERT INTO public.schema_migrations VALUES ('0023_matching', '2026-11-24 12:05:16.151767+00', 23);
INSERT INTO public.schema_migrations VALUES ('0024_match_stage', '2026-11-24 12:05:16.151767+00', 24);
INSERT INTO public.schema_migrations VALUES ('0025_codes_counted_once', '2026-11-24 12:05:16.151767+00', 25);
INSERT INTO public.schema_migrations VALUES ('0026_exports', '2026-11-24 12:05:16.151767+00', 26);
INSERT INTO public.schema_migrations VALUES ('0027_audit_chain', '2026-11-24 12:05:16.151767+00', 27);
INSERT INTO public.schema_migrations VALUES ('0028_usage', '2026-11-24 12:05:16.151767+00', 28);
INSERT INTO public.schema_migrations VALUES ('0029_incidents', '2026-11-24 12:05:16.151767+00', 29);
INSERT INTO public.schema_migrations VALUES ('0030_failed_requests', '2026-11-24 12:05:16.151767+00', 30);
INSERT INTO public.schema_migrations VALUES ('0032_traced_runs', '2026-11-24 12:05:16.151767+00', 32);
INSERT INTO public.schema_migrations VALUES ('0033_people', '2026-11-24 12:05:16.151767+00', 33);
INSERT INTO public.schema_migrations VALUES ('0034_oauth', '2026-11-24 12:05:16.151767+00', 34);
INSERT INTO public.schema_migrations VALUES ('0035_passkeys', '2026-11-24 12:05:16.151767+00', 35);
INSERT INTO public.schema_migrations VALUES ('0036_outgoing_mail', '2026-11-24 12:05:16.151767+00', 36);
INSERT INTO public.schema_migrations VALUES ('0037_invitations', '2026-11-24 12:05:16.151767+00', 37);
INSERT INTO public.schema_migrations VALUES ('0038_sso', '2026-11-24 12:05:16.151767+00', 38);
INSERT INTO public.schema_migrations VALUES ('0039_mail_addresses', '2026-11-24 12:05:16.151767+00', 39);
INSERT INTO public.schema_migrations VALUES ('0040_usage_of_a_day', '2026-11-24 12:05:16.151767+00', 40);
INSERT INTO public.schema_migrations VALUES ('0041_probes_by_organisation', '2026-11-24 12:05:16.151767+00', 40);
INSERT INTO public.schema_migrations VALUES ('0042_instances', '2026-11-24 12:05:16.151767+00', 40);
INSERT INTO public.schema_migrations VALUES ('0043_purges', '2026-11-24 12:05:16.151767+00', 40);
INSERT INTO public.schema_migrations VALUES ('0044_first_party', '2026-11-24 12:05:16.151767+00', 40);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.audit_chains
    ADD CONSTRAINT audit_chains_pkey PRIMARY KEY (org, livemode);
ALTER TABLE ONLY public.audit_entries
    ADD CONSTRAINT audit_entries_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.audit_kept
    ADD CONSTRAINT audit_kept_pkey PRIMARY KEY (org, livemode, entry);
ALTER TABLE ONLY public.authenticators
    ADD CONSTRAINT authenticators_pkey PRIMARY KEY ("user");
ALTER TABLE ONLY public.category_rules
    ADD CONSTRAINT category_rules_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.event_log_terms
    ADD CONSTRAINT event_log_terms_pkey PRIMARY KEY (org, livemode, term, block);
ALTER TABLE ONLY public.event_logs
    ADD CONSTRAINT event_logs_pkey PRIMARY KEY (org, livemode);
ALTER TABLE ONLY public.exports
    ADD CONSTRAINT exports_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (org, livemode, key);
ALTER TABLE ONLY public.image_addresses
    ADD CONSTRAINT image_addresses_pkey PRIMARY KEY (org, livemode, address);
ALTER TABLE ONLY public.image_uses
    ADD CONSTRAINT image_uses_pkey PRIMARY KEY (org, livemode, product, address);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.inbound_messages
    ADD CONSTRAINT inbound_messages_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (org, id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.judge_settings
    ADD CONSTRAINT judge_settings_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.key_ring
    ADD CONSTRAINT key_ring_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_pkey PRIMARY KEY (org, livemode, key);
ALTER TABLE ONLY public.licences
    ADD CONSTRAINT licences_pkey PRIMARY KEY (org, livemode, catalogue, holder);
ALTER TABLE ONLY public.log_server
    ADD CONSTRAINT log_server_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.mappings
    ADD CONSTRAINT mappings_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.match_items
    ADD CONSTRAINT match_items_pkey PRIMARY KEY (org, livemode, variant);
ALTER TABLE ONLY public.match_keys
    ADD CONSTRAINT match_keys_pkey PRIMARY KEY (org, livemode, key, source);
ALTER TABLE ONLY public.match_models
    ADD CONSTRAINT match_models_pkey PRIMARY KEY (org, livemode);
ALTER TABLE ONLY public.match_pairs
    ADD CONSTRAINT match_pairs_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.match_queue
    ADD CONSTRAINT match_queue_pkey PRIMARY KEY (org, livemode, variant);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_org_email_key_key UNIQUE (org, email_key);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (org, "user");
ALTER TABLE ONLY public.merge_counts
    ADD CONSTRAINT merge_counts_pkey PRIMARY KEY (org, livemode);
ALTER TABLE ONLY public.merges
    ADD CONSTRAINT merges_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.model_uses
    ADD CONSTRAINT model_uses_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.network_checkpoints
    ADD CONSTRAINT network_checkpoints_pkey PRIMARY KEY (org, livemode, owner);
ALTER TABLE ONLY public.oauth_apps
    ADD CONSTRAINT oauth_apps_id_key UNIQUE (id);
ALTER TABLE ONLY public.oauth_apps
    ADD CONSTRAINT oauth_apps_pkey PRIMARY KEY (org, id);
ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_client_id_key UNIQUE (client_id);
ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.oauth_devices
    ADD CONSTRAINT oauth_devices_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.oauth_devices
    ADD CONSTRAINT oauth_devices_user_code_key UNIQUE (user_code);
ALTER TABLE ONLY public.oauth_families
    ADD CONSTRAINT oauth_families_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (org, id);
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.offers
    ADD CONSTRAINT offers_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_live_catalogue_key UNIQUE (live_catalogue);
ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_test_catalogue_key UNIQUE (test_catalogue);
ALTER TABLE ONLY public.outgoing_mail
    ADD CONSTRAINT outgoing_mail_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.passkey_challenges
    ADD CONSTRAINT passkey_challenges_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_credential_key UNIQUE (credential);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (code);
ALTER TABLE ONLY public.platform_backups
    ADD CONSTRAINT platform_backups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.platform_checks
    ADD CONSTRAINT platform_checks_pkey PRIMARY KEY (component, day);
ALTER TABLE ONLY public.platform_incidents
    ADD CONSTRAINT platform_incidents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.platform_instances
    ADD CONSTRAINT platform_instances_pkey PRIMARY KEY (instance, role);
ALTER TABLE ONLY public.product_documents
    ADD CONSTRAINT product_documents_pkey PRIMARY KEY (org, livemode, view, product);
ALTER TABLE ONLY public.product_terms
    ADD CONSTRAINT product_terms_pkey PRIMARY KEY (org, livemode, term, product);
ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.purges
    ADD CONSTRAINT purges_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.push_parts
    ADD CONSTRAINT push_parts_pkey PRIMARY KEY (org, livemode, run, sequence);
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY ("user", digest);
ALTER TABLE ONLY public.row_fingerprints
    ADD CONSTRAINT row_fingerprints_pkey PRIMARY KEY (org, livemode, source, stream, slot, key);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.security_events
    ADD CONSTRAINT security_events_pkey PRIMARY KEY ("user", id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.source_probes
    ADD CONSTRAINT source_probes_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.sso_connections
    ADD CONSTRAINT sso_connections_pkey PRIMARY KEY (org);
ALTER TABLE ONLY public.sso_domains
    ADD CONSTRAINT sso_domains_pkey PRIMARY KEY (org, domain);
ALTER TABLE ONLY public.sso_subjects
    ADD CONSTRAINT sso_subjects_org_issuer_user_key UNIQUE (org, issuer, "user");
ALTER TABLE ONLY public.sso_subjects
    ADD CONSTRAINT sso_subjects_pkey PRIMARY KEY (org, issuer, subject);
ALTER TABLE ONLY public.storage_usage
    ADD CONSTRAINT storage_usage_pkey PRIMARY KEY (org, livemode);
ALTER TABLE ONLY public.stored_objects
    ADD CONSTRAINT stored_objects_pkey PRIMARY KEY (org, livemode, key);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.usage_days
    ADD CONSTRAINT usage_days_pkey PRIMARY KEY (org, livemode, meter, day);
ALTER TABLE ONLY public.usage_entries
    ADD CONSTRAINT usage_entries_pkey PRIMARY KEY (org, livemode, meter, subject, day);
ALTER TABLE ONLY public.usage_thresholds
    ADD CONSTRAINT usage_thresholds_pkey PRIMARY KEY (org, livemode, meter, month, percent);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key_key UNIQUE (email_key);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.variants
    ADD CONSTRAINT variants_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.webhook_deliveries_default
    ADD CONSTRAINT webhook_deliveries_default_pkey PRIMARY KEY (org, livemode, id);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (org, livemode, id);
CREATE INDEX audit_entries_act ON public.audit_entries USING btree (org, livemode, act) WHERE (act IS NOT NULL);
CREATE INDEX audit_entries_action ON public.audit_entries USING btree (org, livemode, action, id);
CREATE INDEX audit_entries_actor ON public.audit_entries USING btree (org, livemode, actor_id, id);
CREATE INDEX audit_entries_reversible ON public.audit_entries USING btree (org, livemode, id) WHERE reversible;
CREATE UNIQUE INDEX audit_entries_sequence ON public.audit_entries USING btree (org, livemode, sequence);
CREATE INDEX audit_entries_target ON public.audit_entries USING btree (org, livemode, target, id);
CREATE INDEX audit_entries_target_id ON public.audit_entries USING btree (org, livemode, target_id, id);
CREATE UNIQUE INDEX audit_entries_undoes ON public.audit_entries USING btree (org, livemode, undoes) WHERE (undoes IS NOT NULL);
CREATE INDEX audit_kept_expiry ON public.audit_kept USING btree (expires_at);
CREATE INDEX event_logs_publishing ON public.event_logs USING btree (org, livemode) WHERE publishes;
CREATE INDEX events_position ON ONLY public.events USING btree (org, livemode, "position");
CREATE INDEX events_default_org_livemode_position_idx ON public.events_default USING btree (org, livemode, "position");
CREATE INDEX events_network ON ONLY public.events USING btree (org, livemode, "position") WHERE network;
CREATE INDEX events_default_org_livemode_position_idx1 ON public.events_default USING btree (org, livemode, "position") WHERE network;
CREATE INDEX exports_by_status ON public.exports USING btree (org, livemode, status, id);
CREATE INDEX exports_due ON public.exports USING btree (expires_at) WHERE (status = 'succeeded'::text);
CREATE INDEX exports_waiting ON public.exports USING btree (created_at) WHERE (status = 'pending'::text);
CREATE INDEX idempotency_keys_age ON public.idempotency_keys USING btree (created_at);
CREATE INDEX image_addresses_due ON public.image_addresses USING btree (org, livemode, host, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX image_addresses_image ON public.image_addresses USING btree (org, livemode, image) WHERE (image IS NOT NULL);
CREATE INDEX image_uses_address ON public.image_uses USING btree (org, livemode, address, product);
CREATE INDEX image_uses_stale ON public.image_uses USING btree (org, livemode, product) WHERE stale;
CREATE UNIQUE INDEX images_content ON public.images USING btree (org, livemode, content);
CREATE INDEX inbound_messages_age ON public.inbound_messages USING btree (received_at);
CREATE INDEX inbound_messages_same ON public.inbound_messages USING btree (org, livemode, source, fingerprint, id);
CREATE INDEX inbound_messages_source ON public.inbound_messages USING btree (org, livemode, source, id);
CREATE INDEX invitations_over ON public.invitations USING btree (expires_at);
CREATE INDEX jobs_due ON public.jobs USING btree (run_at);
CREATE UNIQUE INDEX jobs_key ON public.jobs USING btree (org, livemode, kind, key) WHERE (key IS NOT NULL);
CREATE INDEX jobs_lane ON public.jobs USING btree (lane, id);
CREATE INDEX jobs_of_org ON public.jobs USING btree (org, run_at);
CREATE INDEX jobs_under_way ON public.jobs USING btree (org, lane) WHERE (dispatched_at IS NOT NULL);
CREATE INDEX licences_holder ON public.licences USING btree (holder, livemode);
CREATE INDEX mappings_confirmed ON public.mappings USING btree (org, livemode, confirmed_at) WHERE (status = 'confirmed'::text);
CREATE UNIQUE INDEX mappings_headers ON public.mappings USING btree (org, livemode, source, digest);
CREATE INDEX mappings_source ON public.mappings USING btree (org, livemode, source, id);
CREATE UNIQUE INDEX match_items_number ON public.match_items USING btree (org, livemode, number);
CREATE UNIQUE INDEX match_pairs_key ON public.match_pairs USING btree (org, livemode, left_variant, right_variant);
CREATE INDEX match_pairs_left_product ON public.match_pairs USING btree (org, livemode, left_product);
CREATE INDEX match_pairs_right ON public.match_pairs USING btree (org, livemode, right_variant);
CREATE INDEX match_pairs_right_product ON public.match_pairs USING btree (org, livemode, right_product);
CREATE INDEX match_pairs_status ON public.match_pairs USING btree (org, livemode, status, id);
CREATE INDEX members_user ON public.members USING btree ("user", org);
CREATE UNIQUE INDEX merges_applied ON public.merges USING btree (org, livemode, merged) WHERE (status = 'applied'::text);
CREATE INDEX merges_kind ON public.merges USING btree (org, livemode, kind, id);
CREATE INDEX merges_merged ON public.merges USING btree (org, livemode, merged, id);
CREATE INDEX merges_pair ON public.merges USING btree (org, livemode, pair, id);
CREATE INDEX merges_status ON public.merges USING btree (org, livemode, status, id);
CREATE INDEX merges_survivor ON public.merges USING btree (org, livemode, survivor, id);
CREATE INDEX model_uses_created ON public.model_uses USING btree (created_at);
CREATE INDEX oauth_clients_unused ON public.oauth_clients USING btree (COALESCE(used_at, created_at));
CREATE INDEX oauth_codes_expire ON public.oauth_codes USING btree (expires_at);
CREATE INDEX oauth_devices_expire ON public.oauth_devices USING btree (expires_at);
CREATE INDEX oauth_families_app ON public.oauth_families USING btree (app);
CREATE INDEX oauth_families_expire ON public.oauth_families USING btree (expires_at);
CREATE INDEX oauth_families_organisation ON public.oauth_families USING btree (organisation);
CREATE UNIQUE INDEX oauth_grants_in_force ON public.oauth_grants USING btree (org, app, "user") WHERE (revoked_at IS NULL);
CREATE INDEX oauth_tokens_expire ON public.oauth_tokens USING btree (expires_at);
CREATE INDEX oauth_tokens_family ON public.oauth_tokens USING btree (family);
CREATE INDEX oauth_tokens_parent ON public.oauth_tokens USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX offers_availability ON public.offers USING btree (org, livemode, availability, id);
CREATE INDEX offers_home ON public.offers USING btree (org, livemode, home_product) WHERE (home_product IS NOT NULL);
CREATE INDEX offers_home_variant ON public.offers USING btree (org, livemode, home_variant) WHERE (home_variant IS NOT NULL);
CREATE INDEX offers_product ON public.offers USING btree (org, livemode, product);
CREATE INDEX offers_source ON public.offers USING btree (org, livemode, source, id);
CREATE UNIQUE INDEX offers_variant ON public.offers USING btree (org, livemode, variant, source, location);
CREATE INDEX one_time_links_expire ON public.one_time_links USING btree (expires_at);
CREATE INDEX one_time_links_user ON public.one_time_links USING btree ("user");
CREATE INDEX outgoing_mail_next ON public.outgoing_mail USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX passkey_challenges_expire ON public.passkey_challenges USING btree (expires_at);
CREATE INDEX passkeys_user ON public.passkeys USING btree ("user", id);
CREATE INDEX platform_incidents_open ON public.platform_incidents USING btree (id) WHERE (closed_at IS NULL);
CREATE INDEX product_terms_product ON public.product_terms USING btree (org, livemode, product);
CREATE INDEX products_brand ON public.products USING btree (org, livemode, brand_key, id);
CREATE INDEX products_family ON public.products USING btree (org, livemode, family) WHERE (family IS NOT NULL);
CREATE UNIQUE INDEX products_key ON public.products USING btree (org, livemode, key, source);
CREATE INDEX products_merged ON public.products USING btree (org, livemode, merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX products_source ON public.products USING btree (org, livemode, source, id);
CREATE INDEX products_status ON public.products USING btree (org, livemode, status, id);
CREATE INDEX products_updated ON public.products USING btree (org, livemode, updated_at);
CREATE INDEX request_logs_id ON ONLY public.request_logs USING btree (org, livemode, id);
CREATE INDEX request_logs_default_org_livemode_id_idx ON public.request_logs_default USING btree (org, livemode, id);
CREATE INDEX request_logs_position ON ONLY public.request_logs USING btree (org, livemode, "position");
CREATE INDEX request_logs_default_org_livemode_position_idx ON public.request_logs_default USING btree (org, livemode, "position");
CREATE INDEX request_logs_failed ON ONLY public.request_logs USING btree (org, livemode, "position") WHERE (status >= 400);
CREATE INDEX request_logs_default_org_livemode_position_idx1 ON public.request_logs_default USING btree (org, livemode, "position") WHERE (status >= 400);
CREATE INDEX row_fingerprints_absent ON public.row_fingerprints USING btree (org, livemode, source, stream) WHERE (absent_since IS NOT NULL);
CREATE INDEX runs_batch ON public.runs USING btree (org, livemode, source, ((input ->> 'batch'::text)), id) WHERE ((input ->> 'batch'::text) IS NOT NULL);
CREATE INDEX runs_checks ON public.runs USING btree (org, livemode, source, id) WHERE ((trigger = 'stock_check'::text) AND (status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text])));
CREATE UNIQUE INDEX runs_open ON public.runs USING btree (org, livemode, source, stream) WHERE ((status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text])) AND (trigger <> ALL (ARRAY['push'::text, 'mail'::text, 'stock_check'::text])));
CREATE INDEX runs_snapshot ON public.runs USING btree (org, livemode, snapshot COLLATE "C") WHERE (snapshot IS NOT NULL);
CREATE INDEX runs_source ON public.runs USING btree (org, livemode, source, id);
CREATE INDEX security_events_at ON public.security_events USING btree (at);
CREATE INDEX sessions_expire ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_user ON public.sessions USING btree ("user", id);
CREATE INDEX source_probes_by_status ON public.source_probes USING btree (org, livemode, status, id);
CREATE UNIQUE INDEX sources_inbound_address ON public.sources USING btree (inbound_address, org) WHERE (inbound_address IS NOT NULL);
CREATE INDEX sources_next_pull ON public.sources USING btree (next_pull) WHERE (next_pull IS NOT NULL);
CREATE INDEX sources_next_stock_pull ON public.sources USING btree (next_stock_pull) WHERE (next_stock_pull IS NOT NULL);
CREATE INDEX sso_domains_looked ON public.sso_domains USING btree (looked_at) WHERE (proven_at IS NOT NULL);
CREATE UNIQUE INDEX sso_domains_proven ON public.sso_domains USING btree (domain) WHERE (proven_at IS NOT NULL);
CREATE UNIQUE INDEX stored_objects_content ON public.stored_objects USING btree (org, livemode, content) WHERE ((content IS NOT NULL) AND (NOT freed));
CREATE INDEX stored_objects_due ON public.stored_objects USING btree (kind, free_after) WHERE (NOT freed);
CREATE INDEX stored_objects_freed ON public.stored_objects USING btree (key) WHERE freed;
CREATE INDEX stored_objects_oldest ON public.stored_objects USING btree (org, livemode, free_after, key) WHERE ((content IS NOT NULL) AND (NOT freed));
CREATE INDEX usage_days_day ON public.usage_days USING btree (day, meter);
CREATE INDEX variants_gtin ON public.variants USING btree (org, livemode, gtin_key) WHERE (gtin_key IS NOT NULL);
CREATE INDEX variants_home ON public.variants USING btree (org, livemode, home_product) WHERE (home_product IS NOT NULL);
CREATE UNIQUE INDEX variants_key ON public.variants USING btree (org, livemode, key, source);
CREATE INDEX variants_merged ON public.variants USING btree (org, livemode, merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX variants_mpn ON public.variants USING btree (org, livemode, mpn_code) WHERE (mpn_code IS NOT NULL);
CREATE INDEX variants_product ON public.variants USING btree (org, livemode, product);
CREATE INDEX variants_sku ON public.variants USING btree (org, livemode, sku_code) WHERE (sku_code IS NOT NULL);
CREATE INDEX webhook_deliveries_endpoint ON ONLY public.webhook_deliveries USING btree (org, livemode, endpoint, id);
CREATE INDEX webhook_deliveries_default_org_livemode_endpoint_id_idx ON public.webhook_deliveries_default USING btree (org, livemode, endpoint, id);
CREATE INDEX webhook_deliveries_failed ON ONLY public.webhook_deliveries USING btree (org, livemode, endpoint, id) WHERE (status = 'failed'::text);
CREATE INDEX webhook_deliveries_default_org_livemode_endpoint_id_idx1 ON public.webhook_deliveries_default USING btree (org, livemode, endpoint, id) WHERE (status = 'failed'::text);
CREATE INDEX webhook_deliveries_open ON ONLY public.webhook_deliveries USING btree (org, livemode, endpoint) WHERE (status = ANY (ARRAY['pending'::text, 'sending'::text]));
CREATE INDEX webhook_deliveries_default_org_livemode_endpoint_idx ON public.webhook_deliveries_default USING btree (org, livemode, endpoint) WHERE (status = ANY (ARRAY['pending'::text, 'sending'::text]));
CREATE INDEX webhook_deliveries_status ON ONLY public.webhook_deliveries USING btree (org, livemode, endpoint, status, id) WHERE (status <> 'succeeded'::text);
CREATE INDEX webhook_deliveries_default_org_livemode_endpoint_status_id_idx ON public.webhook_deliveries_default USING btree (org, livemode, endpoint, status, id) WHERE (status <> 'succeeded'::text);
CREATE INDEX webhook_deliveries_type ON ONLY public.webhook_deliveries USING btree (org, livemode, endpoint, type, id);
CREATE INDEX webhook_deliveries_default_org_livemode_endpoint_type_id_idx ON public.webhook_deliveries_default USING btree (org, livemode, endpoint, type, id);
CREATE INDEX webhook_deliveries_event ON ONLY public.webhook_deliveries USING btree (org, livemode, event);
CREATE INDEX webhook_deliveries_default_org_livemode_event_idx ON public.webhook_deliveries_default USING btree (org, livemode, event);
CREATE INDEX webhook_endpoints_rotation ON public.webhook_endpoints USING btree (rotation_expires_at) WHERE (rotation_expires_at IS NOT NULL);
CREATE INDEX webhook_endpoints_shard ON public.webhook_endpoints USING btree (shard) WHERE (status = 'enabled'::text);
ALTER INDEX public.events_position ATTACH PARTITION public.events_default_org_livemode_position_idx;
ALTER INDEX public.events_network ATTACH PARTITION public.events_default_org_livemode_position_idx1;
ALTER INDEX public.request_logs_id ATTACH PARTITION public.request_logs_default_org_livemode_id_idx;
ALTER INDEX public.request_logs_position ATTACH PARTITION public.request_logs_default_org_livemode_position_idx;
ALTER INDEX public.request_logs_failed ATTACH PARTITION public.request_logs_default_org_livemode_position_idx1;
ALTER INDEX public.webhook_deliveries_endpoint ATTACH PARTITION public.webhook_deliveries_default_org_livemode_endpoint_id_idx;
ALTER INDEX public.webhook_deliveries_failed ATTACH PARTITION public.webhook_deliveries_default_org_livemode_endpoint_id_idx1;
ALTER INDEX public.webhook_deliveries_open ATTACH PARTITION public.webhook_deliveries_default_org_livemode_endpoint_idx;
ALTER INDEX public.webhook_deliveries_status ATTACH PARTITION public.webhook_deliveries_default_org_livemode_endpoint_status_id_idx;
ALTER INDEX public.webhook_deliveries_type ATTACH PARTITION public.webhook_deliveries_default_org_livemode_endpoint_type_id_idx;
ALTER INDEX public.webhook_deliveries_event ATTACH PARTITION public.webhook_deliveries_default_org_livemode_event_idx;
ALTER INDEX public.webhook_deliveries_pkey ATTACH PARTITION public.webhook_deliveries_default_pkey;
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.authenticators
    ADD CONSTRAINT authenticators_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.oauth_apps
    ADD CONSTRAINT oauth_apps_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_family_fkey FOREIGN KEY (family) REFERENCES public.oauth_families(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_plan_fkey FOREIGN KEY (plan) REFERENCES public.plans(code);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.security_events
    ADD CONSTRAINT security_events_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_fkey FOREIGN KEY ("user") REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sso_connections
    ADD CONSTRAINT sso_connections_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.sso_domains
    ADD CONSTRAINT sso_domains_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE ONLY public.sso_subjects
    ADD CONSTRAINT sso_subjects_org_fkey FOREIGN KEY (org) REFERENCES public.organisations(id);
ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_chains ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_kept ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.category_rules ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.event_log_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.event_logs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.exports ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.image_addresses ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.image_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.images ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.inbound_messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.judge_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.key_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.licences ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.mappings ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.match_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.match_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.match_models ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.match_pairs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.match_queue ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.members ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.merge_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.merges ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.model_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.network_checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.oauth_apps ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.oauth_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.offers ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.organisations ENABLE ROW LEVEL SECURITY;
CREATE POLICY owner ON public.api_keys TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.audit_chains TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.audit_entries TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.audit_kept TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.category_rules TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.event_log_terms TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.event_logs TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.events TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.exports TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.idempotency_keys TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.image_addresses TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.image_uses TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.images TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.inbound_messages TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.invitations TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.jobs TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.judge_settings TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.key_uses TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.licences TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.mappings TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.match_items TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.match_keys TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.match_models TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.match_pairs TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.match_queue TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.members TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.merge_counts TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.merges TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.model_uses TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.network_checkpoints TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.oauth_apps TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.oauth_grants TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.offers TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.organisations TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.product_documents TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.product_terms TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.products TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.push_parts TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.request_logs TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.row_fingerprints TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.runs TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.source_probes TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.sources TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.sso_connections TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.sso_domains TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.sso_subjects TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.storage_usage TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.stored_objects TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.uploads TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.usage_days TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.usage_entries TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.usage_thresholds TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.variants TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.webhook_deliveries TO CURRENT_USER USING (true);
CREATE POLICY owner ON public.webhook_endpoints TO CURRENT_USER USING (true);
ALTER TABLE public.product_documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.product_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.products ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.push_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.request_logs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.row_fingerprints ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.source_probes ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sso_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sso_domains ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sso_subjects ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.storage_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.stored_objects ENABLE ROW LEVEL SECURITY;
CREATE POLICY system ON public.api_keys TO joinery_system USING (true);
CREATE POLICY system ON public.audit_chains TO joinery_system USING (true);
CREATE POLICY system ON public.audit_entries TO joinery_system USING (true);
CREATE POLICY system ON public.audit_kept TO joinery_system USING (true);
CREATE POLICY system ON public.category_rules TO joinery_system USING (true);
CREATE POLICY system ON public.event_log_terms TO joinery_system USING (true);
CREATE POLICY system ON public.event_logs TO joinery_system USING (true);
CREATE POLICY system ON public.events TO joinery_system USING (true);
CREATE POLICY system ON public.exports TO joinery_system USING (true);
CREATE POLICY system ON public.idempotency_keys TO joinery_system USING (true);
CREATE POLICY system ON public.image_addresses TO joinery_system USING (true);
CREATE POLICY system ON public.image_uses TO joinery_system USING (true);
CREATE POLICY system ON public.images TO joinery_system USING (true);
CREATE POLICY system ON public.inbound_messages TO joinery_system USING (true);
CREATE POLICY system ON public.invitations TO joinery_system USING (true);
CREATE POLICY system ON public.jobs TO joinery_system USING (true);
CREATE POLICY system ON public.judge_settings TO joinery_system USING (true);
CREATE POLICY system ON public.key_uses TO joinery_system USING (true);
CREATE POLICY system ON public.licences TO joinery_system USING (true);
CREATE POLICY system ON public.mappings TO joinery_system USING (true);
CREATE POLICY system ON public.match_items TO joinery_system USING (true);
CREATE POLICY system ON public.match_keys TO joinery_system USING (true);
CREATE POLICY system ON public.match_models TO joinery_system USING (true);
CREATE POLICY system ON public.match_pairs TO joinery_system USING (true);
CREATE POLICY system ON public.match_queue TO joinery_system USING (true);
CREATE POLICY system ON public.members TO joinery_system USING (true);
CREATE POLICY system ON public.merge_counts TO joinery_system USING (true);
CREATE POLICY system ON public.merges TO joinery_system USING (true);
CREATE POLICY system ON public.model_uses TO joinery_system USING (true);
CREATE POLICY system ON public.network_checkpoints TO joinery_system USING (true);
CREATE POLICY system ON public.oauth_apps TO joinery_system USING (true);
CREATE POLICY system ON public.oauth_grants TO joinery_system USING (true);
CREATE POLICY system ON public.offers TO joinery_system USING (true);
CREATE POLICY system ON public.organisations TO joinery_system USING (true);
CREATE POLICY system ON public.product_documents TO joinery_system USING (true);
CREATE POLICY system ON public.product_terms TO joinery_system USING (true);
CREATE POLICY system ON public.products TO joinery_system USING (true);
CREATE POLICY system ON public.push_parts TO joinery_system USING (true);
CREATE POLICY system ON public.request_logs TO joinery_system USING (true);
CREATE POLICY system ON public.row_fingerprints TO joinery_system USING (true);
CREATE POLICY system ON public.runs TO joinery_system USING (true);
CREATE POLICY system ON public.source_probes TO joinery_system USING (true);
CREATE POLICY system ON public.sources TO joinery_system USING (true);
CREATE POLICY system ON public.sso_connections TO joinery_system USING (true);
CREATE POLICY system ON public.sso_domains TO joinery_system USING (true);
CREATE POLICY system ON public.sso_subjects TO joinery_system USING (true);
CREATE POLICY system ON public.storage_usage TO joinery_system USING (true);
CREATE POLICY system ON public.stored_objects TO joinery_system USING (true);
CREATE POLICY system ON public.uploads TO joinery_system USING (true);
CREATE POLICY system ON public.usage_days TO joinery_system USING (true);
CREATE POLICY system ON public.usage_entries TO joinery_system USING (true);
CREATE POLICY system ON public.usage_thresholds TO joinery_system USING (true);
CREATE POLICY system ON public.variants TO joinery_system USING (true);
CREATE POLICY system ON public.webhook_deliveries TO joinery_system USING (true);
CREATE POLICY system ON public.webhook_endpoints TO joinery_system USING (true);
CREATE POLICY tenant ON public.api_keys TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.audit_chains TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.audit_entries TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.audit_kept TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.category_rules TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.event_log_terms TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.event_logs TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.events TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.exports TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.idempotency_keys TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.image_addresses TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.image_uses TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.images TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.inbound_messages TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.invitations TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.jobs TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.judge_settings TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.key_uses TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.licences TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.mappings TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.match_items TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.match_keys TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.match_models TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.match_pairs TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.match_queue TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.members TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.merge_counts TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.merges TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.model_uses TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.network_checkpoints TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.oauth_apps TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.oauth_grants TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.offers TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.organisations TO joinery_app USING ((id = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.product_documents TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.product_terms TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.products TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.push_parts TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.request_logs TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.row_fingerprints TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.runs TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.source_probes TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.sources TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.sso_connections TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.sso_domains TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.sso_subjects TO joinery_app USING ((org = current_setting('joinery.org'::text)));
CREATE POLICY tenant ON public.storage_usage TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.stored_objects TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.uploads TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.usage_days TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.usage_entries TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.usage_thresholds TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.variants TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.webhook_deliveries TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
CREATE POLICY tenant ON public.webhook_endpoints TO joinery_app USING (((org = current_setting('joinery.org'::text)) AND (livemode = (current_setting('joinery.livemode'::text) = 't'::text))));
ALTER TABLE public.uploads ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.usage_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.usage_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.usage_thresholds ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.variants ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.webhook_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.webhook_endpoints ENABLE ROW LEVEL SECURITY;
REVOKE ALL ON FUNCTION public.expect_large_tenants(regclass), public.protect_tenant_table(regclass) FROM PUBLIC;
