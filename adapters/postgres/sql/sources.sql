-- seal --
UPDATE sources SET credentials = %(sealed)s WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- sealed --
SELECT credentials FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- due --
SELECT at, org, livemode, id, stream FROM (
    SELECT c.org, c.livemode, c.id, 'catalogue' AS stream, c.next_pull AS at FROM here.sources AS c
    WHERE c.next_pull <= %(now)s AND c.status IN ('active', 'degraded')
    UNION ALL
    SELECT s.org, s.livemode, s.id, 'stock', s.next_stock_pull FROM here.sources AS s
    WHERE s.next_stock_pull <= %(now)s AND s.status IN ('active', 'degraded')
) due ORDER BY at LIMIT %(limit)s

-- next_due --
SELECT min(at) FROM (
    SELECT min(c.next_pull) AS at FROM here.sources AS c
    WHERE c.next_pull IS NOT NULL AND c.status IN ('active', 'degraded')
    UNION ALL
    SELECT min(s.next_stock_pull) FROM here.sources AS s
    WHERE s.next_stock_pull IS NOT NULL AND s.status IN ('active', 'degraded')
) next

-- take_turns --
SELECT pg_advisory_xact_lock(%(lock)s)

-- count --
SELECT count(*) FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND status <> %(disabled)s
