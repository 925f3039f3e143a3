-- add_part --
INSERT INTO push_parts (org, livemode, run, sequence, records)
VALUES (%(org)s, %(livemode)s, %(run)s, %(sequence)s, %(records)s)

-- parts --
SELECT records FROM push_parts WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s ORDER BY sequence

-- forget --
DELETE FROM push_parts WHERE org = %(org)s AND livemode = %(livemode)s AND run = %(run)s
