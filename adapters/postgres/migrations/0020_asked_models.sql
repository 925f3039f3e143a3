-- Which columns of a mapping a model was asked about, and what each question took.

ALTER TABLE mappings ADD COLUMN asked integer[] NOT NULL DEFAULT '{}';

CREATE TABLE model_uses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    task text NOT NULL,
    subject text COLLATE "C" NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('model_uses');
