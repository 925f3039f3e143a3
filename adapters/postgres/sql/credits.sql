-- apply --
SELECT results, total_before, total_after, low_balance
FROM apply_credit_actions(%(org)s, %(livemode)s, %(now)s::timestamptz, %(actions)s::jsonb, %(seed)s)

-- get_totals --
SELECT available, reserved FROM credit_ledgers WHERE org = %(org)s AND livemode = %(livemode)s

-- list_lots --
SELECT id, remaining, expires_at FROM credit_lots
WHERE org = %(org)s AND livemode = %(livemode)s AND remaining > 0 ORDER BY expires_at, id

-- announce_expiry --
UPDATE credit_lots SET announced = true
WHERE org = %(org)s AND livemode = %(livemode)s AND remaining > 0 AND NOT announced AND NOT expired AND expires_at < %(before)s
RETURNING id, remaining, expires_at

-- page_entries --
SELECT {entry} FROM credit_entries
WHERE org = %(org)s AND livemode = %(livemode)s
    AND number < %(page_key)s::bigint --? after
    AND number > %(page_key)s::bigint --? before
ORDER BY number DESC LIMIT {limit} --? forwards
ORDER BY number ASC LIMIT {limit} --? backwards

-- list_days --
SELECT
    (e.at AT TIME ZONE 'UTC')::date, (array_agg(e.balance_micros ORDER BY e.number DESC))[1], sum(e.amount_micros)::bigint,
    coalesce(-sum(e.amount_micros) FILTER (WHERE e.kind IN ('spend', 'release')), 0)::bigint
FROM (
    SELECT number, kind, amount_micros, balance_micros, at FROM credit_entries
    WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY number DESC LIMIT 100000
) AS e
WHERE e.at >= %(since)s GROUP BY 1 ORDER BY 1

-- list_rates --
SELECT {rate} FROM credit_rates ORDER BY model, effective_at

-- add_rate --
INSERT INTO credit_rates ({rate})
VALUES (%(model)s, %(input_micros_per_1k)s, %(output_micros_per_1k)s, %(effective_at)s)
ON CONFLICT (model, effective_at) DO UPDATE
SET input_micros_per_1k = excluded.input_micros_per_1k, output_micros_per_1k = excluded.output_micros_per_1k

-- list_due --
SELECT r.org, r.livemode FROM here.credit_reservations AS r WHERE r.state = 'open' AND r.expires_at <= %(now)s
UNION
SELECT l.org, l.livemode FROM here.credit_lots AS l
WHERE NOT l.expired AND (l.expires_at <= %(now)s OR l.expires_at < %(announced_before)s AND NOT l.announced AND l.remaining > 0)
LIMIT %(limit)s

-- list_orgs_with_old_reservations --
SELECT DISTINCT r.org FROM here.credit_reservations AS r WHERE r.expires_at < %(before)s AND r.state <> 'open'

-- delete_reservations --
DELETE FROM credit_reservations WHERE org = ANY(%(orgs)s) AND expires_at < %(before)s AND state <> 'open'
