-- get --
SELECT {entry} FROM stored_objects
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed

-- get_used_bytes --
SELECT bytes FROM storage_usage WHERE org = %(org)s AND livemode = %(livemode)s

-- create_usage --
INSERT INTO storage_usage (org, livemode, bytes) VALUES (%(org)s, %(livemode)s, 0) ON CONFLICT DO NOTHING

-- lock_usage --
SELECT u.bytes, (p.meters -> %(meter)s ->> 'included')::bigint
FROM storage_usage u, organisations o, plans p
WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND o.id = u.org AND p.code = o.plan
FOR UPDATE OF u

-- add_used_bytes --
UPDATE storage_usage SET bytes = bytes + %(bytes)s WHERE org = %(org)s AND livemode = %(livemode)s

-- reuse_content --
UPDATE stored_objects SET free_after = greatest(free_after, %(free_after)s), run = %(run)s
WHERE org = %(org)s AND livemode = %(livemode)s AND content = %(content)s AND NOT freed
RETURNING {entry}

-- add_entry --
INSERT INTO stored_objects (org, livemode, key, kind, bytes, content, run, free_after, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(kind)s, %(bytes)s, %(content)s, %(run)s, %(free_after)s, %(now)s)

-- sum_replaced_bytes --
SELECT coalesce((
        SELECT bytes FROM stored_objects
        WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed), 0)
    + coalesce((
        SELECT sum(octet_length(records) + 1) FROM push_parts
        WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s AND counted), 0)

-- clear_replaced_bytes --
WITH parts AS (
    UPDATE push_parts SET counted = false
    WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s AND counted
)
UPDATE stored_objects SET bytes = 0 WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed

-- count_unassigned --
SELECT count(*) FROM stored_objects
WHERE org = %(org)s AND livemode = %(livemode)s AND kind = %(kind)s AND run IS NULL AND NOT freed

-- assign_to_run --
UPDATE stored_objects SET run = %(run)s WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed

-- remove_age_limit --
UPDATE stored_objects SET free_after = %(free_after)s
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed

-- is_stored --
SELECT key FROM stored_objects WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed

-- free --
UPDATE stored_objects SET freed = true
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s AND NOT freed
RETURNING bytes

-- free_unneeded --
WITH oldest AS (
    SELECT s.key, s.bytes, s.free_after FROM stored_objects s
    WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.content IS NOT NULL AND s.free_after <= %(unused)s
        AND s.bytes > 0 AND NOT s.freed AND NOT ({needed})
    ORDER BY s.free_after, s.key LIMIT %(limit)s
), unneeded AS (
    SELECT key, sum(bytes) OVER (ORDER BY free_after, key) - bytes AS before FROM oldest
)
UPDATE stored_objects s SET freed = true FROM unneeded u
WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.key = u.key AND u.before < %(bytes)s
RETURNING s.bytes

-- postpone --
UPDATE stored_objects s SET free_after = %(recheck_at)s
WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.key = ANY(%(keys)s) AND s.free_after <= %(now)s
    AND NOT s.freed AND ({needed})

-- free_due --
UPDATE stored_objects SET freed = true
WHERE org = %(org)s AND livemode = %(livemode)s AND key = ANY(%(keys)s) AND free_after <= %(now)s AND NOT freed
RETURNING bytes

-- list_due --
SELECT s.free_after, s.org, s.livemode, s.key FROM here.stored_objects AS s
WHERE s.kind = ANY(%(kinds)s) AND s.free_after <= %(now)s AND NOT s.freed ORDER BY s.free_after LIMIT %(limit)s

-- list_freed --
SELECT s.key, s.org, s.livemode, s.key FROM here.stored_objects AS s
WHERE s.freed AND s.key > %(after)s ORDER BY s.key LIMIT %(limit)s

-- delete_entries --
DELETE FROM stored_objects WHERE org = %(org)s AND livemode = %(livemode)s AND key = ANY(%(keys)s) AND freed

-- select_orphans --
SELECT k.key FROM unnest(%(keys)s::text[]) k (key)
WHERE EXISTS (SELECT FROM organisations o WHERE o.id = %(org)s)
    AND NOT EXISTS (
        SELECT FROM stored_objects s WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.key = k.key)
    AND NOT EXISTS (SELECT FROM runs r WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.snapshot COLLATE "C" = k.key)
    AND NOT EXISTS (
        SELECT FROM uploads u JOIN runs r ON r.org = u.org AND r.livemode = u.livemode AND r.id = u.run
        WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND u.id = split_part(k.key, '/', 4)
            AND r.status = ANY(%(open)s))

-- sum_by_kind --
SELECT kind, count(*), coalesce(sum(bytes), 0), count(*) FILTER (WHERE free_after <= %(now)s),
       coalesce(sum(bytes) FILTER (WHERE free_after <= %(now)s), 0)
FROM here.stored_objects AS o WHERE NOT freed AND kind <> %(push)s GROUP BY kind
UNION ALL
SELECT %(push)s, count(*), coalesce(sum(p.bytes), 0), count(*) FILTER (WHERE s.free_after <= %(now)s),
       coalesce(sum(p.bytes) FILTER (WHERE s.free_after <= %(now)s), 0)
FROM (
    SELECT org, livemode, run, sum(octet_length(records) + 1) AS bytes FROM here.push_parts AS q
    WHERE counted GROUP BY org, livemode, run
) p LEFT JOIN here.stored_objects AS s ON s.org = p.org AND s.livemode = p.livemode AND s.run = p.run AND s.kind = %(push)s
HAVING count(*) > 0
ORDER BY kind

-- sum_freed --
SELECT count(*), coalesce(sum(s.bytes), 0) FROM here.stored_objects AS s WHERE s.freed

-- list_open_batches --
SELECT s.created_at, s.org, s.livemode, s.run, (
    SELECT coalesce(sum(octet_length(p.records) + 1), 0) FROM here.push_parts AS p
    WHERE p.org = s.org AND p.livemode = s.livemode AND p.run = s.run AND p.counted)
FROM here.stored_objects AS s WHERE s.kind = %(kind)s AND NOT s.freed ORDER BY s.created_at LIMIT 100
