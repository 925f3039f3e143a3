-- What was asked for as files: everything there is at one moment, to download.

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
