-- People, how they sign in, and their sessions. They are nobody's tenant: a person may belong to many organisations.

CREATE TABLE users (
    id text COLLATE "C" PRIMARY KEY,
    email text NOT NULL,
    email_key text COLLATE "C" NOT NULL UNIQUE,
    name text NOT NULL,
    verified_at timestamptz,
    password text,
    password_changed_at timestamptz,
    created_at timestamptz NOT NULL
);

-- Who was added to several organisations by the same address is one person, known by the oldest id.
INSERT INTO users (id, email, email_key, name, created_at)
SELECT DISTINCT ON (email_key) "user", email, email_key, '', created_at FROM members ORDER BY email_key, created_at, "user";
UPDATE api_keys k SET member = u.id
FROM members m JOIN users u ON u.email_key = m.email_key
WHERE m.org = k.org AND m."user" = k.member AND u.id <> k.member;
UPDATE members m SET "user" = u.id FROM users u WHERE u.email_key = m.email_key AND u.id <> m."user";

-- A time-based one-time password (RFC 6238): the secret is sealed, the last step that was used is not taken again.
CREATE TABLE authenticators (
    "user" text COLLATE "C" PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    secret bytea NOT NULL,
    confirmed_at timestamptz,
    last_step bigint NOT NULL DEFAULT 0
);

CREATE TABLE recovery_codes (
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    used_at timestamptz,
    PRIMARY KEY ("user", digest)
);

-- `organisation` and `livemode`: what its person looks at.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organisation text COLLATE "C",
    livemode boolean NOT NULL,
    digest bytea NOT NULL UNIQUE,
    kind text NOT NULL CHECK (kind IN ('console', 'token')),
    methods text[] NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    confirmed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX sessions_user ON sessions ("user", id);
CREATE INDEX sessions_expire ON sessions (expires_at);

-- Links that are good for one use: to sign in, to set a password, to show that an address is one's own.
CREATE TABLE one_time_links (
    digest bytea PRIMARY KEY,
    purpose text NOT NULL CHECK (purpose IN ('sign_in', 'set_password', 'verify_email')),
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organisation text COLLATE "C",
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX one_time_links_user ON one_time_links ("user");
CREATE INDEX one_time_links_expire ON one_time_links (expires_at);

-- What concerns a person's security, for that person to see.
CREATE TABLE security_events (
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY ("user", id)
);
CREATE INDEX security_events_at ON security_events (at);
