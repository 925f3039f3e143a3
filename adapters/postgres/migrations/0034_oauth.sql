-- OAuth: an organisation's apps and what people granted to any lie on every node, as its API keys do, and are changed in its
-- transactions; codes, tokens and sign-ins, which come and go, lie in one place, as people's sessions do.

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

DO $$
DECLARE
    own_table regclass;
BEGIN
    FOREACH own_table IN ARRAY ARRAY['oauth_apps', 'oauth_grants']::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', own_table);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', own_table);
        EXECUTE format('CREATE POLICY tenant ON %s TO joinery_app USING (org = current_setting(''joinery.org''))', own_table);
        EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', own_table);
        EXECUTE format(
            'CREATE POLICY owner ON %s TO %I USING (true)',
            own_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = own_table)
        );
    END LOOP;
END
$$;

-- Apps that no organisation made: they registered themselves, or describe themselves at the URL that is their client_id.
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
CREATE INDEX oauth_clients_unused ON oauth_clients (coalesce(used_at, created_at));

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
CREATE INDEX oauth_families_expire ON oauth_families (expires_at);
CREATE INDEX oauth_families_app ON oauth_families (app);
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
CREATE INDEX oauth_tokens_family ON oauth_tokens (family);
CREATE INDEX oauth_tokens_parent ON oauth_tokens (parent) WHERE parent IS NOT NULL;
CREATE INDEX oauth_tokens_expire ON oauth_tokens (expires_at);

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
