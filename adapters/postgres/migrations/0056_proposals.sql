-- Settings of agents, their proposals, and answers of language models about category paths.

CREATE TABLE agents (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    autonomy text NOT NULL,
    model text,
    daily_budget_micros bigint NOT NULL,
    last_run_at timestamptz,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('agents');

CREATE TABLE proposals (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    subject_type text NOT NULL,
    subject text COLLATE "C" NOT NULL,
    source text COLLATE "C",
    summary text NOT NULL,
    change jsonb NOT NULL,
    operation text,
    proof jsonb NOT NULL,
    risk text NOT NULL,
    reason text,
    decided_by text,
    decided_at timestamptz,
    expires_at timestamptz NOT NULL,
    fingerprint text NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('proposals');
CREATE INDEX proposals_subject ON proposals (org, livemode, subject, id);
CREATE INDEX proposals_source ON proposals (org, livemode, source) WHERE status = 'proposed';
-- at most one proposal of an agent about a subject waits
CREATE UNIQUE INDEX proposals_waiting ON proposals (org, livemode, agent, subject) WHERE status = 'proposed';
CREATE INDEX proposals_expiry ON proposals (expires_at) WHERE status = 'proposed';
CREATE INDEX proposals_decided ON proposals (decided_at) WHERE decided_at IS NOT NULL;

-- `id` is the source
CREATE TABLE category_answers (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    answers jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('category_answers');
