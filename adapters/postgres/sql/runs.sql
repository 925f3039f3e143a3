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
SELECT source, day, count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
    coalesce(sum((stats ->> 'rows')::bigint), 0)::bigint
FROM (
    SELECT source, status, (created_at AT TIME ZONE 'UTC')::date AS day, trigger, stats
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(since)s
    ORDER BY id DESC LIMIT %(max_runs)s
) AS newest
WHERE trigger NOT IN ('category_rules', 'stock_check') AND status IN ('succeeded', 'failed')
GROUP BY source, day ORDER BY source, day

-- list_newest --
SELECT newest.* FROM unnest(%(sources)s::text[]) AS requested (source) CROSS JOIN LATERAL (
    SELECT {summary}
    FROM runs AS r WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.source = requested.source
        AND r.trigger NOT IN ('category_rules', 'stock_check')
        AND r.status IN ('succeeded', 'failed', 'needs_mapping') --? ended
    ORDER BY r.id DESC LIMIT 1
) AS newest

-- list_summaries --
SELECT {summary}
FROM runs AS r WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.source = %(source)s AND r.created_at >= %(since)s
    AND r.trigger NOT IN ('category_rules', 'stock_check')
ORDER BY r.id DESC LIMIT %(max_runs)s

-- summarise_by_source --
SELECT source, count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
    coalesce(sum((stats ->> 'rows')::bigint), 0),
    coalesce(sum((stats ->> 'problems')::bigint) FILTER (WHERE stats ? 'rows'), 0),
    array_agg(coalesce((fetched ->> 'at')::timestamptz, finished_at) ORDER BY id) FILTER (WHERE status = 'succeeded' AND stream = 'catalogue')
FROM (
    SELECT id, source, stream, status, trigger, stats, fetched, finished_at
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(since)s
    ORDER BY id DESC LIMIT %(max_runs)s
) AS newest
WHERE trigger NOT IN ('category_rules', 'stock_check') AND status IN ('succeeded', 'failed')
GROUP BY source ORDER BY source

-- list_open_reviews --
WITH newest AS (
    SELECT DISTINCT ON (source, stream) source, stream, id,
        coalesce((stats ->> 'problems')::bigint, 0) - coalesce((stats ->> 'problems_ignored')::bigint, 0) AS problems
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = ANY(%(sources)s) AND created_at >= %(since)s
        AND status IN ('succeeded', 'needs_mapping') AND trigger NOT IN ('category_rules', 'stock_check')
    ORDER BY source, stream, id DESC
), mapped AS (
    SELECT DISTINCT ON (source, stream) source, stream, mappings
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = ANY(%(sources)s) AND created_at >= %(since)s
        AND cardinality(mappings) > 0
    ORDER BY source, stream, id DESC
), unconfirmed AS (
    SELECT r.source, r.stream, count(*) AS mappings, min(m.id) AS mapping
    FROM mapped AS r JOIN mappings AS m ON m.org = %(org)s AND m.livemode = %(livemode)s AND m.source = r.source
        AND m.id = ANY(r.mappings) AND m.status = 'proposed'
    GROUP BY r.source, r.stream
)
SELECT n.source, n.id, n.problems, coalesce(u.mappings, 0), u.mapping, n.stream
FROM newest AS n LEFT JOIN unconfirmed AS u ON u.source = n.source AND u.stream = n.stream
WHERE n.problems > 0 OR u.mappings > 0
ORDER BY n.problems DESC, n.source

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

-- count_scheduled_exports --
SELECT count(*) FROM scheduled_exports WHERE org = %(org)s AND livemode = %(livemode)s

-- list_due_scheduled_exports --
SELECT x.next_at, x.org, x.livemode, x.id FROM here.scheduled_exports AS x
WHERE x.next_at <= %(now)s ORDER BY x.next_at LIMIT %(limit)s
