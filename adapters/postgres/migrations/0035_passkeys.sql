-- Passkeys (WebAuthn) of people, and the challenges that they are to sign, each once.

CREATE TABLE passkeys (
    id text COLLATE "C" PRIMARY KEY,
    "user" text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    backed_up boolean NOT NULL,
    created_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX passkeys_user ON passkeys ("user", id);

CREATE TABLE passkey_challenges (
    digest bytea PRIMARY KEY,
    "user" text COLLATE "C",
    expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_expire ON passkey_challenges (expires_at);
