-- Layouts of exports of products, and exports that a schedule creates and delivers.

ALTER TABLE exports ADD COLUMN layout jsonb NOT NULL DEFAULT '{}';
ALTER TABLE exports ADD COLUMN schedule text COLLATE "C";

CREATE TABLE scheduled_exports (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    owner text COLLATE "C" NOT NULL,
    filters jsonb NOT NULL,
    layout jsonb NOT NULL,
    clock jsonb NOT NULL,
    target jsonb NOT NULL,
    file_name text NOT NULL,
    credentials bytea NOT NULL,
    next_at timestamptz,
    last_export text COLLATE "C",
    last_status text,
    last_error text,
    last_at timestamptz,
    failures integer NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX scheduled_exports_due ON scheduled_exports (next_at) WHERE next_at IS NOT NULL;
SELECT protect_tenant_table('scheduled_exports');
