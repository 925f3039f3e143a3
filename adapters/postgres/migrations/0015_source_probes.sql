-- What websites offer whoever wants their products, as it was found out.

CREATE TABLE source_probes (
    org text NOT NULL,
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
