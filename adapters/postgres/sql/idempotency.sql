-- hold --
SELECT pg_try_advisory_xact_lock(%(lock)s)

-- stored --
SELECT fingerprint, status, headers, body FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at > %(since)s

-- keep --
INSERT INTO idempotency_keys (org, livemode, key, fingerprint, status, headers, body, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(fingerprint)s, %(status)s, %(headers)s, %(body)s, %(now)s)

-- forget --
DELETE FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at <= %(since)s

-- purge_expired --
DELETE FROM idempotency_keys WHERE created_at <= %(since)s
