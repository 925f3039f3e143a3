-- lock_key --
-- Reads a table of the tenant, so that the lock is taken on the tenant's node or the statement fails (the planner would remove
-- an unused column).
SELECT pg_try_advisory_xact_lock(%(lock)s), usage.row_count FROM (
    SELECT count(*) AS row_count FROM storage_usage WHERE org = %(org)s AND livemode = %(livemode)s
) AS usage

-- find_response --
SELECT fingerprint, status, headers, body FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at > %(since)s

-- save_response --
INSERT INTO idempotency_keys (org, livemode, key, fingerprint, status, headers, body, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(fingerprint)s, %(status)s, %(headers)s, %(body)s, %(now)s)
ON CONFLICT (org, livemode, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers, body = excluded.body,
    created_at = excluded.created_at

-- replace_body --
UPDATE idempotency_keys SET body = %(body)s WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s

-- delete_expired_key --
DELETE FROM idempotency_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND created_at <= %(since)s

-- list_orgs_with_expired --
SELECT DISTINCT k.org FROM here.idempotency_keys AS k WHERE k.created_at <= %(since)s

-- purge_expired --
DELETE FROM idempotency_keys WHERE org = ANY(%(orgs)s) AND created_at <= %(since)s
