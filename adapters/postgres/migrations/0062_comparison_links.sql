-- Links to comparisons of products, with the items as they were shown.

CREATE TABLE comparison_links (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    title text NOT NULL,
    author text COLLATE "C" NOT NULL,
    includes_cost boolean NOT NULL,
    units text NOT NULL,
    only_differences boolean NOT NULL,
    items jsonb NOT NULL,
    expires_at timestamptz NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX comparison_links_expiry ON comparison_links (expires_at);
SELECT protect_tenant_table('comparison_links');
