-- add --
INSERT INTO jobs (org, livemode, id, kind, lane, key, args, run_at, created_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(kind)s, %(lane)s, %(key)s, %(args)s, %(run_at)s, %(now)s)
ON CONFLICT (org, livemode, kind, key) WHERE key IS NOT NULL DO NOTHING

-- find_by_key --
SELECT id FROM jobs WHERE org = %(org)s AND livemode = %(livemode)s AND kind = %(kind)s AND key = %(key)s

-- finish --
DELETE FROM jobs WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- reschedule --
UPDATE jobs SET run_at = %(run_at)s, lease_until = NULL, dispatched_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- list_due_lanes --
WITH RECURSIVE orgs AS (
    (SELECT j.org FROM here.jobs AS j ORDER BY j.org LIMIT 1)
    UNION ALL
    SELECT (SELECT j.org FROM here.jobs AS j WHERE j.org > o.org ORDER BY j.org LIMIT 1) FROM orgs o WHERE o.org IS NOT NULL
), capacity AS (  -- number of further lanes per organisation that can be dispatched
    SELECT o.org, %(max_lanes)s - count(DISTINCT j.lane) AS lanes
    FROM orgs o LEFT JOIN here.jobs AS j ON j.org = o.org AND j.dispatched_at IS NOT NULL
        AND (j.lease_until >= now() OR (j.lease_until IS NULL AND j.run_at <= now()))
    WHERE o.org IS NOT NULL GROUP BY o.org
), due AS (
    SELECT c.org, waiting.*, row_number() OVER (PARTITION BY c.org ORDER BY waiting.run_at) AS rank
    FROM capacity c CROSS JOIN LATERAL (
        SELECT j.lane, min(j.run_at) AS run_at, bool_or(j.lease_until IS NOT NULL) AS has_expired_lease FROM here.jobs AS j
        WHERE j.org = c.org AND j.run_at <= now()
            AND (j.lease_until < now() OR (j.lease_until IS NULL AND j.dispatched_at IS NULL))
        GROUP BY j.lane ORDER BY 2 LIMIT greatest(c.lanes, 0)
    ) waiting
)
SELECT rank, run_at, org, lane, has_expired_lease FROM due ORDER BY rank, run_at LIMIT %(limit)s

-- mark_dispatched --
UPDATE jobs SET dispatched_at = now()
WHERE org = ANY(%(orgs)s) AND lane = ANY(%(lanes)s) AND run_at <= now() AND dispatched_at IS NULL AND lease_until IS NULL
RETURNING org, lane

-- find_next_due --
SELECT min(coalesce(j.lease_until, j.run_at)) FROM here.jobs AS j WHERE j.dispatched_at IS NULL OR j.lease_until IS NOT NULL

-- count_backlog --
SELECT split_part(j.lane, ':', 1), count(*) FILTER (WHERE j.lease_until IS NULL OR j.lease_until < now()),
    count(*) FILTER (WHERE j.lease_until >= now()), min(j.run_at) FILTER (WHERE j.lease_until IS NULL OR j.lease_until < now())
FROM (
    SELECT o.lane, o.lease_until, o.run_at FROM here.jobs AS o WHERE o.run_at <= now() OR o.lease_until >= now() LIMIT %(max_jobs)s
) j GROUP BY 1

-- list_orgs_of_lane --
SELECT DISTINCT j.org FROM here.jobs AS j WHERE j.lane = %(lane)s

-- lock_lane --
SELECT pg_advisory_xact_lock(%(lock)s)

-- claim --
WITH free AS (
    SELECT 1 WHERE NOT EXISTS (SELECT FROM jobs WHERE org = %(org)s AND lane = %(lane)s AND lease_until >= now())
), claimed AS (
    SELECT livemode, id, lease_until IS NOT NULL AS has_expired_lease FROM jobs, free
    WHERE org = %(org)s AND lane = %(lane)s AND run_at <= now()
    ORDER BY id LIMIT %(limit)s
)
UPDATE jobs j SET attempt = attempt + 1, lease_until = now() + %(lease)s, dispatched_at = now()
FROM claimed WHERE j.org = %(org)s AND j.livemode = claimed.livemode AND j.id = claimed.id
RETURNING j.id, j.kind, j.lane, j.org, j.livemode, j.args, j.attempt, claimed.has_expired_lease

-- renew_lease --
UPDATE jobs SET lease_until = now() + %(lease)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND attempt = %(attempt)s

-- list_orgs_with_dispatched --
SELECT DISTINCT j.org FROM here.jobs AS j WHERE j.dispatched_at IS NOT NULL AND j.lease_until IS NULL

-- reset_dispatched --
UPDATE jobs SET dispatched_at = NULL WHERE org = ANY(%(orgs)s) AND dispatched_at IS NOT NULL AND lease_until IS NULL
