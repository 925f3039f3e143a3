-- Pairs of variants that may be the same item, merges, and what is shown of products and variants that are merged.

CREATE TABLE match_pairs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    "left" text COLLATE "C" NOT NULL,
    left_product text COLLATE "C" NOT NULL,
    "right" text COLLATE "C" NOT NULL,
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
CREATE UNIQUE INDEX match_pairs_key ON match_pairs (org, livemode, "left", "right");
CREATE INDEX match_pairs_right ON match_pairs (org, livemode, "right");
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
CREATE INDEX merges_survivor ON merges (org, livemode, survivor);
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
