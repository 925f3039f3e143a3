-- Values that people set, lock or clear; they take precedence over the values of all sources.

CREATE TABLE corrections (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL,
    action text NOT NULL,
    -- JSON as text, because numbers must keep their digits
    value text,
    stated_value text,
    feed_value text,
    feed_state text COLLATE "C" NOT NULL,
    feed_changed_at timestamptz,
    made_by text COLLATE "C" NOT NULL,
    made_at timestamptz NOT NULL,
    batch text COLLATE "C",
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('corrections');
CREATE UNIQUE INDEX corrections_object ON corrections (org, livemode, object, field);
CREATE INDEX corrections_product ON corrections (org, livemode, product);
CREATE INDEX corrections_field ON corrections (org, livemode, field, id);
CREATE INDEX corrections_person ON corrections (org, livemode, made_by, id);
CREATE INDEX corrections_state ON corrections (org, livemode, feed_state, id);

-- Corrections of many products at once, which a job makes in portions.
CREATE TABLE correction_batches (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    level text NOT NULL,
    field text NOT NULL,
    action text NOT NULL,
    value text,
    products text[] NOT NULL,
    undoes text COLLATE "C",
    status text NOT NULL,
    done integer NOT NULL,
    changed integer NOT NULL,
    unchanged integer NOT NULL,
    problems jsonb NOT NULL,
    made_by text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('correction_batches');

-- What a batch has changed, for undoing: the correction of the field before, NULL if there was none, and after.
CREATE TABLE correction_changes (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    batch text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL,
    before text,
    after text,
    PRIMARY KEY (org, livemode, batch, product, object, field)
);
SELECT protect_tenant_table('correction_changes');

-- the data of the source, if the offer is corrected
ALTER TABLE offers ADD COLUMN home_data bytea;
