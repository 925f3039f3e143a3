-- columns --
SELECT id, catalogue, name, kind, connector, config, schedule, status, licence_basis, first_party,
       credentials IS NOT NULL, version, created_at, updated_at, status_reason, inbound_address, failures, catalogue_at,
       stock_at, next_pull, next_stock_pull, interval_factor
FROM sources WHERE org = %(org)s AND livemode = %(livemode)s

-- add --
INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, status_reason,
    licence_basis, first_party, inbound_address, failures, catalogue_at, stock_at, next_pull, next_stock_pull,
    interval_factor, version, created_at, updated_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(catalogue)s, %(name)s, %(kind)s, %(connector)s, %(config)s, %(schedule)s,
    %(status)s, %(status_reason)s, %(licence_basis)s, %(first_party)s, %(inbound_address)s, %(failures)s, %(catalogue_at)s,
    %(stock_at)s, %(next_pull)s, %(next_stock_pull)s, %(interval_factor)s, %(version)s, %(created_at)s, %(updated_at)s)

-- save --
UPDATE sources SET name = %(name)s, connector = %(connector)s, config = %(config)s, schedule = %(schedule)s,
    status = %(status)s, status_reason = %(status_reason)s, licence_basis = %(licence_basis)s,
    first_party = %(first_party)s, inbound_address = %(inbound_address)s, failures = %(failures)s,
    catalogue_at = %(catalogue_at)s, stock_at = %(stock_at)s, next_pull = %(next_pull)s,
    next_stock_pull = %(next_stock_pull)s, interval_factor = %(interval_factor)s, version = %(version)s,
    updated_at = %(updated_at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s
  AND (%(expected)s::integer IS NULL OR version = %(expected)s)

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
