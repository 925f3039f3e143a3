-- Matching after each run: what waits, what each item says, the keys it is found by, and learnt weights.

CREATE TABLE match_queue (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    variant text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    again boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, livemode, variant)
);
INSERT INTO match_queue (org, livemode, variant, stamp) SELECT org, livemode, id, 0 FROM variants;
SELECT protect_tenant_table('match_queue');

CREATE TABLE match_items (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    variant text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    product text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    facts bytea NOT NULL,
    PRIMARY KEY (org, livemode, variant)
);
CREATE UNIQUE INDEX match_items_number ON match_items (org, livemode, number);
SELECT protect_tenant_table('match_items');

-- One row a key and source. `numbers` are items as four bytes each; NULL once more share the key than are ever walked.
CREATE TABLE match_keys (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    items integer NOT NULL,
    numbers bytea,
    PRIMARY KEY (org, livemode, key, source)
);
ALTER TABLE match_keys SET (fillfactor = 70);
ALTER TABLE match_keys ALTER COLUMN numbers SET STORAGE MAIN;
SELECT protect_tenant_table('match_keys');

CREATE TABLE match_models (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    items integer NOT NULL,
    weights jsonb NOT NULL,
    learnt_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode)
);
SELECT protect_tenant_table('match_models');
