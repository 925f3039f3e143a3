-- Single sign-on of organisations. Asked before it is known who somebody is, and of nobody's mode: these lie on every node,
-- beside organisations and members.

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
-- One organisation's proof of a domain counts at a time.
CREATE UNIQUE INDEX sso_domains_proven ON sso_domains (domain) WHERE proven_at IS NOT NULL;
CREATE INDEX sso_domains_looked ON sso_domains (looked_at) WHERE proven_at IS NOT NULL;

-- Whom an issuer means by a subject.
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

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sso_connections', 'sso_domains', 'sso_subjects'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO joinery_app USING (org = current_setting(''joinery.org''))', name);
        EXECUTE format('CREATE POLICY system ON %I TO joinery_system USING (true)', name);
        EXECUTE format('CREATE POLICY owner ON %I TO %I USING (true)', name, current_user);
    END LOOP;
END
$$;
