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
WITH RECURSIVE orgs AS (
    (SELECT org FROM jobs ORDER BY org LIMIT 1)
    UNION ALL
    SELECT (SELECT j.org FROM jobs j WHERE j.org > o.org ORDER BY j.org LIMIT 1) FROM orgs o WHERE o.org IS NOT NULL
), room AS (  -- how many more lanes of each organisation may be under way
    SELECT o.org, %(most)s - count(DISTINCT j.lane) AS lanes
    FROM orgs o LEFT JOIN jobs j ON j.org = o.org AND j.dispatched_at IS NOT NULL
        AND (j.lease_until >= now() OR (j.lease_until IS NULL AND j.run_at <= now()))
    WHERE o.org IS NOT NULL GROUP BY o.org
), due AS (
    SELECT r.org, waiting.lane, waiting.run_at, row_number() OVER (PARTITION BY r.org ORDER BY waiting.run_at) AS turn
    FROM room r CROSS JOIN LATERAL (
        SELECT j.lane, min(j.run_at) AS run_at FROM jobs j
        WHERE j.org = r.org AND j.run_at <= now()
            AND (j.lease_until < now() OR (j.lease_until IS NULL AND j.dispatched_at IS NULL))
        GROUP BY j.lane ORDER BY 2 LIMIT greatest(r.lanes, 0)
    ) waiting
), chosen AS (SELECT * FROM due ORDER BY turn, run_at LIMIT %(limit)s
), locked AS (
    SELECT j.org, j.livemode, j.id, j.lane FROM jobs j JOIN chosen c ON c.org = j.org AND c.lane = j.lane
    WHERE j.run_at <= now() AND (j.lease_until < now() OR (j.lease_until IS NULL AND j.dispatched_at IS NULL))
    FOR UPDATE OF j SKIP LOCKED
), marked AS (
    UPDATE jobs j SET dispatched_at = now() FROM locked l
    WHERE j.org = l.org AND j.livemode = l.livemode AND j.id = l.id AND j.lease_until IS NULL
)
SELECT c.lane FROM chosen c WHERE EXISTS (SELECT FROM locked l WHERE l.org = c.org AND l.lane = c.lane)
ORDER BY c.turn, c.run_at

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
