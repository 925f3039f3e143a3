-- seal --
UPDATE sources SET credentials = %(sealed)s WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- sealed --
SELECT credentials FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- due --
SELECT org, livemode, id, stream FROM (
    SELECT org, livemode, id, 'catalogue' AS stream, next_pull AS at FROM sources
    WHERE next_pull <= %(now)s AND status IN ('active', 'degraded')
    UNION ALL
    SELECT org, livemode, id, 'stock', next_stock_pull FROM sources
    WHERE next_stock_pull <= %(now)s AND status IN ('active', 'degraded')
) due ORDER BY at LIMIT %(limit)s

-- next_due --
SELECT min(at) FROM (
    SELECT min(next_pull) AS at FROM sources WHERE next_pull IS NOT NULL AND status IN ('active', 'degraded')
    UNION ALL
    SELECT min(next_stock_pull) FROM sources WHERE next_stock_pull IS NOT NULL AND status IN ('active', 'degraded')
) next

-- take_turns --
SELECT pg_advisory_xact_lock(%(lock)s)

-- count --
SELECT count(*) FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND status <> %(disabled)s
