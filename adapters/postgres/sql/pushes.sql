-- add_part --
INSERT INTO push_parts (org, livemode, run, sequence, records)
VALUES (%(org)s, %(livemode)s, %(run)s, %(sequence)s, %(records)s)

-- part --
SELECT records FROM push_parts
WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s AND sequence = %(sequence)s

-- forget --
DELETE FROM push_parts WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s

-- collecting --
SELECT {run} FROM runs
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = %(status)s
    AND trigger = %(trigger)s AND input ->> 'batch' = %(batch)s AND (input ->> 'open')::boolean
ORDER BY id DESC LIMIT 1
