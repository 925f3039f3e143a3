-- add_part --
WITH room AS (
    UPDATE storage_usage u SET bytes = u.bytes + %(bytes)s FROM organisations o, plans p
    WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND o.id = u.org AND p.code = o.plan
        AND u.bytes + %(bytes)s <= coalesce((p.meters -> %(meter)s ->> 'included')::bigint, u.bytes + %(bytes)s)
    RETURNING u.org, u.livemode
)
INSERT INTO push_parts (org, livemode, run, sequence, records)
SELECT org, livemode, %(run)s, %(sequence)s, %(records)s FROM room

-- keep_batch --
INSERT INTO stored_objects AS s (org, livemode, key, kind, bytes, run, free_after, created_at)
VALUES (%(org)s, %(livemode)s, %(key)s, %(kind)s, 0, %(run)s, %(free_after)s, %(now)s)
ON CONFLICT (org, livemode, key) DO UPDATE SET free_after = excluded.free_after

-- part --
SELECT records FROM push_parts
WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s AND sequence = %(sequence)s

-- forget --
WITH parts AS (
    DELETE FROM push_parts WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s
    RETURNING CASE WHEN counted THEN octet_length(records) + 1 ELSE 0 END AS bytes
), entry AS (
    DELETE FROM stored_objects WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(key)s
)
UPDATE storage_usage SET bytes = bytes - (SELECT sum(parts.bytes) FROM parts)
WHERE org = %(org)s AND livemode = %(livemode)s AND EXISTS (SELECT FROM parts)

-- collecting --
SELECT {run} FROM runs
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = %(status)s
    AND trigger = %(trigger)s AND input ->> 'batch' = %(batch)s AND (input ->> 'open')::boolean
ORDER BY id DESC LIMIT 1

-- newest --
SELECT {run} FROM runs
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND input ->> 'batch' = %(batch)s
ORDER BY id DESC LIMIT 1
