-- add --
INSERT INTO jobs (org, livemode, id, kind, lane, key, args, run_at, created_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(kind)s, %(lane)s, %(key)s, %(args)s, %(run_at)s, %(now)s)
ON CONFLICT (org, livemode, kind, key) WHERE key IS NOT NULL DO NOTHING

-- by_key --
SELECT id FROM jobs WHERE org = %(org)s AND livemode = %(livemode)s AND kind = %(kind)s AND key = %(key)s

-- finish --
DELETE FROM jobs WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- put_off --
UPDATE jobs SET run_at = %(run_at)s, lease_until = NULL, dispatched_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- lanes_due --
WITH due AS (
    SELECT org, livemode, id, lane FROM jobs
    WHERE run_at <= now() AND (lease_until < now() OR (lease_until IS NULL AND dispatched_at IS NULL))
    ORDER BY run_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE jobs j SET dispatched_at = now() FROM due
    WHERE j.org = due.org AND j.livemode = due.livemode AND j.id = due.id AND j.lease_until IS NULL
)
SELECT DISTINCT lane FROM due

-- next_due --
SELECT min(coalesce(lease_until, run_at)) FROM jobs WHERE dispatched_at IS NULL OR lease_until IS NOT NULL

-- lock_lane --
SELECT pg_advisory_xact_lock(%(lock)s)

-- claim --
WITH free AS (
    SELECT 1 WHERE NOT EXISTS (SELECT FROM jobs WHERE lane = %(lane)s AND lease_until >= now())
), taken AS (
    SELECT org, livemode, id, lease_until IS NOT NULL AS lapsed FROM jobs, free
    WHERE lane = %(lane)s AND run_at <= now()
    ORDER BY id LIMIT %(limit)s
)
UPDATE jobs j SET attempt = attempt + 1, lease_until = now() + %(lease)s, dispatched_at = now()
FROM taken WHERE j.org = taken.org AND j.livemode = taken.livemode AND j.id = taken.id
RETURNING j.id, j.kind, j.lane, j.org, j.livemode, j.args, j.attempt, taken.lapsed

-- renew --
UPDATE jobs SET lease_until = now() + %(lease)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- reset_dispatched --
UPDATE jobs SET dispatched_at = NULL WHERE dispatched_at IS NOT NULL AND lease_until IS NULL
