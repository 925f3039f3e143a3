-- authenticator --
SELECT "user", secret, confirmed_at, last_step FROM authenticators WHERE "user" = %(user)s

-- enrol --
INSERT INTO authenticators ("user", secret) VALUES (%(user)s, %(sealed)s)
ON CONFLICT ("user") DO NOTHING

-- confirm --
UPDATE authenticators SET confirmed_at = %(now)s, last_step = %(step)s
WHERE "user" = %(user)s AND secret = %(sealed)s AND confirmed_at IS NULL

-- hold --
-- Whoever replaces the codes holds the app: of two at once the later sees what the earlier has kept.
SELECT 1 FROM authenticators WHERE "user" = %(user)s AND confirmed_at IS NOT NULL FOR UPDATE

-- take_step --
UPDATE authenticators SET last_step = %(step)s
WHERE "user" = %(user)s AND confirmed_at IS NOT NULL AND last_step < %(step)s

-- disenrol --
DELETE FROM authenticators WHERE "user" = %(user)s

-- drop_codes --
DELETE FROM recovery_codes WHERE "user" = %(user)s

-- add_codes --
INSERT INTO recovery_codes ("user", digest) SELECT %(user)s, unnest(%(digests)s::bytea[])

-- use_code --
UPDATE recovery_codes SET used_at = %(now)s WHERE "user" = %(user)s AND digest = %(digest)s AND used_at IS NULL

-- codes_left --
SELECT count(*) FROM recovery_codes WHERE "user" = %(user)s AND used_at IS NULL

-- add_passkey --
INSERT INTO passkeys (id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at)
VALUES (%(id)s, %(user)s, %(credential)s, %(public_key)s, %(sign_count)s, %(name)s, %(backed_up)s, %(created_at)s, %(used_at)s)
ON CONFLICT (credential) DO NOTHING

-- passkeys_of --
SELECT id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at FROM passkeys
WHERE "user" = %(user)s ORDER BY id

-- passkey --
SELECT id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at FROM passkeys
WHERE credential = %(credential)s

-- passkey_used --
UPDATE passkeys SET sign_count = %(sign_count)s, used_at = %(now)s
WHERE id = %(id)s AND (sign_count < %(sign_count)s OR (sign_count = 0 AND %(sign_count)s = 0))

-- rename_passkey --
UPDATE passkeys SET name = %(name)s WHERE id = %(id)s AND "user" = %(user)s

-- remove_passkey --
DELETE FROM passkeys WHERE id = %(id)s AND "user" = %(user)s

-- add_challenge --
INSERT INTO passkey_challenges (digest, "user", expires_at) VALUES (%(digest)s, %(user)s, %(expires_at)s)

-- take_challenge --
DELETE FROM passkey_challenges
WHERE digest = %(digest)s AND "user" IS NOT DISTINCT FROM %(user)s::text AND expires_at > %(now)s

-- forget_challenges --
DELETE FROM passkey_challenges WHERE expires_at < %(before)s
