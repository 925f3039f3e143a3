-- hold --
-- Asked for over a table of the tenant's, so that it is asked for where the tenant is, or fails (what is not answered is not
-- looked at).
SELECT pg_try_advisory_xact_lock(%(lock)s), own.accounts FROM (
    SELECT count(*) AS accounts FROM storage_usage WHERE org = %(org)s AND livemode = %(livemode)s
) AS own

-- stored --
SELECT fingerprint, status, headers, body FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at > %(since)s

-- keep --
INSERT INTO idempotency_keys (org, livemode, key, fingerprint, status, headers, body, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(fingerprint)s, %(status)s, %(headers)s, %(body)s, %(now)s)

-- revise --
UPDATE idempotency_keys SET body = %(body)s WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s

-- forget --
DELETE FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at <= %(since)s

-- expired --
SELECT DISTINCT k.org FROM here.idempotency_keys AS k WHERE k.created_at <= %(since)s

-- purge_expired --
DELETE FROM idempotency_keys WHERE org = ANY(%(orgs)s) AND created_at <= %(since)s
