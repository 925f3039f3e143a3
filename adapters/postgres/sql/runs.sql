-- find_newest_run --
SELECT {run}
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = ANY(%(statuses)s)
    AND stream = %(stream)s --? stream
    AND snapshot IS NOT NULL --? has_snapshot
    AND trigger NOT IN ('category_rules', 'stock_check') --? is_import
    AND trigger <> 'stock_check' --? not_stock_check
ORDER BY id DESC LIMIT 1

-- list_open_checks --
SELECT {run}
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND trigger = 'stock_check'
    AND status IN ('queued', 'running', 'waiting')
ORDER BY id LIMIT %(limit)s

-- count_by_day --
SELECT source, day, count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed')
FROM (
    SELECT source, status, (created_at AT TIME ZONE 'UTC')::date AS day, trigger
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(since)s
    ORDER BY id DESC LIMIT %(max_runs)s
) AS newest
WHERE trigger NOT IN ('category_rules', 'stock_check') AND status IN ('succeeded', 'failed')
GROUP BY source, day ORDER BY source, day

-- list_newest --
SELECT DISTINCT ON (source) source, id, status
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = ANY(%(sources)s) AND created_at >= %(since)s
    AND trigger <> 'stock_check'
ORDER BY source, id DESC

-- add_part --
WITH charged AS (
    UPDATE storage_usage u SET bytes = u.bytes + %(bytes)s FROM organisations o, plans p
    WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND o.id = u.org AND p.code = o.plan
        AND u.bytes + %(bytes)s <= coalesce((p.meters -> %(meter)s ->> 'included')::bigint, u.bytes + %(bytes)s)
    RETURNING u.org, u.livemode
)
INSERT INTO push_parts (org, livemode, run, sequence, records)
SELECT org, livemode, %(run)s, %(sequence)s, %(records)s FROM charged

-- save_batch_entry --
INSERT INTO stored_objects AS s (org, livemode, key, kind, bytes, run, free_after, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(kind)s, 0, %(run)s, %(free_after)s, %(now)s)
ON CONFLICT (org, livemode, key) DO UPDATE SET free_after = excluded.free_after

-- get_part --
SELECT records FROM push_parts
WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s AND sequence = %(part_number)s

-- delete_parts --
WITH parts AS (
    DELETE FROM push_parts WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s
    RETURNING CASE WHEN counted THEN octet_length(records) + 1 ELSE 0 END AS bytes
), entry AS (
    DELETE FROM stored_objects WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s
)
UPDATE storage_usage SET bytes = bytes - (SELECT sum(parts.bytes) FROM parts)
WHERE org = %(org)s AND livemode = %(livemode)s AND EXISTS (SELECT FROM parts)

-- find_collecting --
SELECT {run} FROM runs
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = %(status)s
    AND trigger = %(trigger)s AND input ->> 'batch' = %(batch)s AND (input ->> 'open')::boolean
ORDER BY id DESC LIMIT 1

-- find_newest_batch --
SELECT {run} FROM runs
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND input ->> 'batch' = %(batch)s
ORDER BY id DESC LIMIT 1

-- count_open_exports --
SELECT count(*) FROM exports WHERE org = %(org)s AND livemode = %(livemode)s AND status = ANY(%(open)s)

-- list_exports_with_files --
SELECT {export} FROM exports WHERE org = %(org)s AND livemode = %(livemode)s AND status = %(status)s ORDER BY id DESC

-- list_due_exports --
SELECT e.expires_at, e.org, e.livemode, e.id FROM here.exports AS e
WHERE e.status = 'succeeded' AND e.expires_at <= %(now)s ORDER BY e.expires_at LIMIT %(limit)s

-- find_oldest_waiting --
-- Exports that wait for a running export of the same tenant do not count.
SELECT min(e.created_at) FROM here.exports AS e WHERE e.status = 'pending' AND NOT EXISTS (
    SELECT FROM here.exports AS r WHERE r.org = e.org AND r.livemode = e.livemode AND r.status = 'running')
