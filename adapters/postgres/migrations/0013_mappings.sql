-- What the columns of a source's header sets mean, as proposed by runs and confirmed by people; and what a run read of
-- each column.

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
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX mappings_headers ON mappings (org, livemode, source, digest);
CREATE INDEX mappings_source ON mappings (org, livemode, source, id);
CREATE INDEX mappings_confirmed ON mappings (org, livemode, confirmed_at) WHERE status = 'confirmed';
SELECT protect_tenant_table('mappings');

ALTER TABLE runs ADD COLUMN columns jsonb NOT NULL DEFAULT '[]', ADD COLUMN mappings text[] NOT NULL DEFAULT '{}';
