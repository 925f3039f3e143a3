-- Pairs of variants that may be the same item, merges, and what is shown of products and variants that are merged.

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
CREATE INDEX match_pairs_right ON match_pairs (org, livemode, right_variant);
CREATE INDEX match_pairs_left_product ON match_pairs (org, livemode, left_product);
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
CREATE INDEX merges_survivor ON merges (org, livemode, survivor, id);
CREATE INDEX merges_merged ON merges (org, livemode, merged, id);
CREATE INDEX merges_kind ON merges (org, livemode, kind, id);
CREATE INDEX merges_resting ON merges USING gin (rests_on);
CREATE INDEX merges_pair ON merges (org, livemode, pair, id);
CREATE INDEX merges_status ON merges (org, livemode, status, id);
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

-- How many times anything was merged or unmerged: what was read before the last time is read again.
CREATE TABLE merge_counts (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (org, livemode)
);
SELECT protect_tenant_table('merge_counts');

-- Products are found by their source as by their words: also those that others are merged into (domain/catalogue/search.py).
INSERT INTO product_terms (org, livemode, term, product) SELECT org, livemode, 's:' || source, id FROM products ON CONFLICT DO NOTHING;

-- The columns that were there say what readers see; where a source has it otherwise, it stands in those that begin with `home_`.
ALTER TABLE products
    ADD COLUMN stated_at timestamptz,
    ADD COLUMN merged_into text COLLATE "C",
    ADD COLUMN family text COLLATE "C",
    ADD COLUMN home_status text COLLATE "C",
    ADD COLUMN home_data bytea;
CREATE INDEX products_family ON products (org, livemode, family) WHERE family IS NOT NULL;
CREATE INDEX products_merged ON products (org, livemode, merged_into) WHERE merged_into IS NOT NULL;
ALTER TABLE variants
    ADD COLUMN stated_at timestamptz,
    ADD COLUMN merged_into text COLLATE "C",
    ADD COLUMN home_product text COLLATE "C",
    ADD COLUMN home_status text COLLATE "C",
    ADD COLUMN home_data bytea;
CREATE INDEX variants_home ON variants (org, livemode, home_product) WHERE home_product IS NOT NULL;
CREATE INDEX variants_merged ON variants (org, livemode, merged_into) WHERE merged_into IS NOT NULL;
ALTER TABLE offers
    ADD COLUMN home_variant text COLLATE "C",
    ADD COLUMN home_product text COLLATE "C";
CREATE INDEX offers_home ON offers (org, livemode, home_product) WHERE home_product IS NOT NULL;
CREATE INDEX offers_home_variant ON offers (org, livemode, home_variant) WHERE home_variant IS NOT NULL;
