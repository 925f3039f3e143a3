-- open --
SELECT count(*) FROM exports WHERE org = %(org)s AND livemode = %(livemode)s AND status = ANY(%(open)s)

-- kept --
SELECT {columns} FROM exports WHERE org = %(org)s AND livemode = %(livemode)s AND status = %(status)s ORDER BY id DESC

-- due --
SELECT e.expires_at, e.org, e.livemode, e.id FROM here.exports AS e
WHERE e.status = 'succeeded' AND e.expires_at <= %(now)s ORDER BY e.expires_at LIMIT %(limit)s

-- waiting_since --
-- Not of those that wait for an earlier one of their own tenant.
SELECT min(e.created_at) FROM here.exports AS e WHERE e.status = 'pending' AND NOT EXISTS (
    SELECT FROM here.exports AS r WHERE r.org = e.org AND r.livemode = e.livemode AND r.status = 'running')
