-- Conversations of people with the assistant, their turns with the frames that were sent, memories, settings and spend.

CREATE TABLE conversations (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    title text,
    surface text COLLATE "C" NOT NULL,
    context_object text COLLATE "C",
    context_id text COLLATE "C",
    history bytea NOT NULL,
    pending jsonb NOT NULL,
    has_read_data boolean NOT NULL,
    last_turn_at timestamptz,
    active_at timestamptz NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX conversations_person ON conversations (org, livemode, person, id);
CREATE INDEX conversations_active ON conversations (active_at);
SELECT protect_tenant_table('conversations');

-- `request_key` is the Idempotency-Key; `alive_until` is extended by the process that runs the turn. `has_failed` if the model failed.
CREATE TABLE assistant_turns (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    request_key text NOT NULL,
    fingerprint bytea NOT NULL,
    input jsonb NOT NULL,
    answer text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    alive_until timestamptz NOT NULL,
    is_stopping boolean NOT NULL,
    ended_at timestamptz,
    has_failed boolean NOT NULL,
    PRIMARY KEY (org, livemode, conversation, number)
);
CREATE INDEX assistant_turns_ended ON assistant_turns (ended_at);
CREATE UNIQUE INDEX assistant_turns_key ON assistant_turns (org, livemode, conversation, request_key);
SELECT protect_tenant_table('assistant_turns');

-- Frames of a turn, in chunks; deleted a day after they were stored.
CREATE TABLE assistant_frames (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    turn integer NOT NULL,
    number integer NOT NULL,
    data bytea NOT NULL,
    stored_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, conversation, turn, number)
);
CREATE INDEX assistant_frames_stored ON assistant_frames (stored_at);
SELECT protect_tenant_table('assistant_frames');

CREATE TABLE assistant_memories (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    content text NOT NULL,
    source text COLLATE "C" NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    surface text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C",
    tool_data_seen boolean NOT NULL,
    expires_at timestamptz NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX assistant_memories_expiry ON assistant_memories (expires_at);
SELECT protect_tenant_table('assistant_memories');

CREATE TABLE assistant_settings (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    roles text[] COLLATE "C" NOT NULL,
    model text,
    daily_allowance_micros bigint NOT NULL,
    spend_credit boolean NOT NULL,
    per_person_budget_micros bigint,
    version integer NOT NULL,
    created_at timestamptz,
    updated_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('assistant_settings');

CREATE TABLE assistant_preferences (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    personal_budget_micros bigint,
    memory_enabled boolean NOT NULL,
    version integer NOT NULL,
    created_at timestamptz,
    updated_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('assistant_preferences');

-- Cost of a person's turns on a day (UTC) in millionths of a US dollar, including what is reserved for running requests.
CREATE TABLE assistant_spend (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    day date NOT NULL,
    person text COLLATE "C" NOT NULL,
    allowance_micros bigint NOT NULL,
    credit_micros bigint NOT NULL,
    PRIMARY KEY (org, livemode, day, person)
);
SELECT protect_tenant_table('assistant_spend');
