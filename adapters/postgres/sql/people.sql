-- get_user --
SELECT id, email, name, verified_at, created_at, language FROM users WHERE id = %(id)s

-- get_users --
SELECT id, email, name, verified_at, created_at, language FROM users WHERE id = ANY(%(ids)s)

-- find_by_email --
SELECT id, email, name, verified_at, created_at, language FROM users WHERE email_key = %(email_key)s

-- add_user --
INSERT INTO users (id, email, email_key, name, verified_at, created_at)
VALUES (%(id)s, %(email)s, %(email_key)s, %(name)s, %(verified_at)s, %(created_at)s)
ON CONFLICT (email_key) DO NOTHING

-- add_user_with_password --
INSERT INTO users (id, email, email_key, name, verified_at, created_at, password, password_changed_at)
VALUES (%(id)s, %(email)s, %(email_key)s, %(name)s, %(verified_at)s, %(created_at)s, %(password)s, %(now)s)
ON CONFLICT (email_key) DO NOTHING

-- save_user --
UPDATE users SET name = %(name)s, verified_at = %(verified_at)s, language = %(language)s WHERE id = %(id)s

-- get_password_hash --
SELECT password FROM users WHERE id = %(user)s

-- set_password_hash --
UPDATE users SET password = %(password_hash)s, password_changed_at = %(now)s WHERE id = %(user)s

-- record_event --
INSERT INTO security_events ("user", id, kind, detail, address, user_agent, at)
VALUES (%(user)s, %(id)s, %(kind)s, %(detail)s, %(address)s, %(user_agent)s, %(at)s)

-- list_events --
SELECT id, "user", kind, detail, address, user_agent, at FROM security_events
WHERE "user" = %(user)s ORDER BY id DESC LIMIT %(limit)s

-- delete_events --
DELETE FROM security_events WHERE at < %(before)s

-- add_session --
INSERT INTO sessions (id, "user", organisation, livemode, digest, kind, methods, address, user_agent, created_at, seen_at,
                      confirmed_at, expires_at)
VALUES (%(id)s, %(user)s, %(org)s, %(livemode)s, %(digest)s, %(kind)s, %(methods)s, %(address)s, %(user_agent)s, %(created_at)s,
        %(seen_at)s, %(confirmed_at)s, %(expires_at)s)

-- find_sessions --
SELECT s.id, s."user", s.organisation, s.livemode, s.digest, s.kind, s.methods, s.address, s.user_agent, s.created_at, s.seen_at,
       s.confirmed_at, s.expires_at, s.revoked_at,
       u.id, u.email, u.name, u.verified_at, u.created_at, u.language, m.role,
       EXISTS (SELECT FROM sso_connections c JOIN sso_domains d ON d.org = c.org
               WHERE c.org = m.org AND c.enforced AND c.enabled AND d.proven_at IS NOT NULL
                   AND d.domain = split_part(m.email_key, '@', 2)),
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM sessions s
JOIN users u ON u.id = s."user"
-- A token is valid only with the membership that existed at its creation, not with a later one.
LEFT JOIN members m ON m."user" = s."user" AND m.org = s.organisation AND (s.kind <> %(token)s OR m.created_at <= s.created_at)
LEFT JOIN organisations o ON o.id = m.org
LEFT JOIN plans p ON p.code = o.plan
WHERE s.digest = ANY(%(digests)s)

-- list_sessions_by_user --
SELECT id, "user", organisation, livemode, digest, kind, methods, address, user_agent, created_at, seen_at, confirmed_at,
       expires_at, revoked_at
FROM sessions WHERE "user" = %(user)s AND revoked_at IS NULL ORDER BY id DESC

-- save_session --
UPDATE sessions SET organisation = %(org)s, livemode = %(livemode)s, methods = %(methods)s,
    seen_at = greatest(seen_at, %(seen_at)s), confirmed_at = greatest(confirmed_at, %(confirmed_at)s)
WHERE id = %(id)s AND revoked_at IS NULL

-- record_session_use --
UPDATE sessions SET seen_at = greatest(seen_at, %(now)s) WHERE id = %(id)s AND revoked_at IS NULL

-- revoke_sessions --
UPDATE sessions SET revoked_at = %(now)s WHERE id = ANY(%(ids)s) AND revoked_at IS NULL

-- delete_ended_sessions --
DELETE FROM sessions WHERE expires_at < %(before)s OR revoked_at < %(before)s

-- delete_expired_links --
DELETE FROM one_time_links WHERE expires_at < %(before)s

-- delete_superseded_links --
DELETE FROM one_time_links WHERE "user" = %(user)s AND purpose = %(purpose)s AND used_at IS NULL

-- delete_unused_links --
DELETE FROM one_time_links WHERE "user" = %(user)s AND used_at IS NULL

-- add_link --
INSERT INTO one_time_links (digest, purpose, "user", organisation, created_at, expires_at)
VALUES (%(digest)s, %(purpose)s, %(user)s, %(org)s, %(created_at)s, %(expires_at)s)

-- find_link --
SELECT digest, purpose, "user", organisation, created_at, expires_at FROM one_time_links
WHERE digest = %(digest)s AND purpose = %(purpose)s AND used_at IS NULL AND expires_at > %(now)s

-- use_link --
UPDATE one_time_links SET used_at = %(now)s
WHERE digest = %(digest)s AND purpose = %(purpose)s AND used_at IS NULL AND expires_at > %(now)s
RETURNING digest, purpose, "user", organisation, created_at, expires_at

-- find_authenticator --
SELECT "user", secret, confirmed_at, last_step FROM authenticators WHERE "user" = %(user)s

-- add_authenticator --
INSERT INTO authenticators ("user", secret) VALUES (%(user)s, %(sealed)s)
ON CONFLICT ("user") DO NOTHING

-- confirm_authenticator --
UPDATE authenticators SET confirmed_at = %(now)s, last_step = %(step)s
WHERE "user" = %(user)s AND secret = %(sealed)s AND confirmed_at IS NULL

-- lock_authenticator --
-- Locks the authenticator while codes are replaced, so that the later of two requests sees the codes of the earlier request.
SELECT 1 FROM authenticators WHERE "user" = %(user)s AND confirmed_at IS NOT NULL FOR UPDATE

-- use_totp_step --
UPDATE authenticators SET last_step = %(step)s
WHERE "user" = %(user)s AND confirmed_at IS NOT NULL AND last_step < %(step)s

-- delete_authenticator --
DELETE FROM authenticators WHERE "user" = %(user)s

-- delete_codes --
DELETE FROM recovery_codes WHERE "user" = %(user)s

-- add_codes --
INSERT INTO recovery_codes ("user", digest) SELECT %(user)s, unnest(%(digests)s::bytea[])

-- use_code --
UPDATE recovery_codes SET used_at = %(now)s WHERE "user" = %(user)s AND digest = %(digest)s AND used_at IS NULL

-- count_unused_codes --
SELECT count(*) FROM recovery_codes WHERE "user" = %(user)s AND used_at IS NULL

-- add_passkey --
INSERT INTO passkeys (id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at)
VALUES (%(id)s, %(user)s, %(credential)s, %(public_key)s, %(sign_count)s, %(name)s, %(backed_up)s, %(created_at)s, %(used_at)s)
ON CONFLICT (credential) DO NOTHING

-- list_passkeys_by_user --
SELECT id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at FROM passkeys
WHERE "user" = %(user)s ORDER BY id

-- find_passkey --
SELECT id, "user", credential, public_key, sign_count, name, backed_up, created_at, used_at FROM passkeys
WHERE credential = %(credential)s

-- record_signature --
UPDATE passkeys SET sign_count = %(sign_count)s, used_at = %(now)s
WHERE id = %(id)s AND (sign_count < %(sign_count)s OR (sign_count = 0 AND %(sign_count)s = 0))

-- rename_passkey --
UPDATE passkeys SET name = %(name)s WHERE id = %(id)s AND "user" = %(user)s

-- remove_passkey --
DELETE FROM passkeys WHERE id = %(id)s AND "user" = %(user)s

-- add_challenge --
INSERT INTO passkey_challenges (digest, "user", expires_at) VALUES (%(digest)s, %(user)s, %(expires_at)s)

-- use_challenge --
DELETE FROM passkey_challenges
WHERE digest = %(digest)s AND "user" IS NOT DISTINCT FROM %(user)s::text AND expires_at > %(now)s

-- delete_challenges --
DELETE FROM passkey_challenges WHERE expires_at < %(before)s

-- add_mail --
INSERT INTO outgoing_mail (id, "to", subject, purpose, sealed, created_at, next_at, attempts, sent_at, failure)
VALUES (%(id)s, %(to)s, %(subject)s, %(purpose)s, %(sealed)s, %(created_at)s, %(next_at)s, %(attempts)s, %(sent_at)s, %(failure)s)
ON CONFLICT (id) DO NOTHING

-- list_latest_mail --
SELECT id, "to", subject, purpose, sealed, created_at, next_at, attempts, sent_at, failure FROM outgoing_mail
ORDER BY id DESC LIMIT %(limit)s

-- claim_due_mail --
UPDATE outgoing_mail AS m SET next_at = %(until)s, attempts = m.attempts + 1
FROM (
    SELECT id FROM outgoing_mail WHERE next_at <= %(now)s AND created_at >= %(created_after)s
    ORDER BY next_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS due
WHERE m.id = due.id
RETURNING m.id, m."to", m.subject, m.purpose, m.sealed, m.created_at, m.next_at, m.attempts, m.sent_at, m.failure

-- record_mail_sent --
UPDATE outgoing_mail SET sent_at = %(now)s, next_at = NULL, failure = '', sealed = '' WHERE id = %(id)s

-- record_mail_failure --
UPDATE outgoing_mail SET failure = %(failure)s, next_at = %(next_at)s WHERE id = %(id)s

-- delete_mail --
DELETE FROM outgoing_mail WHERE created_at < %(before)s
