-- Invitations lie on every node beside members, for nobody knows whose a secret is before it was found. When keys were last used lies
-- with each organisation, for it is written often.

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

DO $$
DECLARE
    own text := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'invitations'::regclass);
BEGIN
    ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
    ALTER TABLE invitations FORCE ROW LEVEL SECURITY;
    CREATE POLICY tenant ON invitations TO joinery_app USING (org = current_setting('joinery.org'));
    CREATE POLICY system ON invitations TO joinery_system USING (true);
    EXECUTE format('CREATE POLICY owner ON invitations TO %I USING (true)', own);
END
$$;
