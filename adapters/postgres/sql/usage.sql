-- add_usage --
-- Usage against a reservation counts on the reservation's day and month, because usage and reservation are one row.
INSERT INTO usage_entries AS e (org, livemode, meter, subject, day, amount)
SELECT %(org)s, %(livemode)s, %(meter)s, %(cause)s, coalesce((
    SELECT max(day) FROM usage_entries
    WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND subject = %(cause)s AND reserved > 0
), (%(now)s::timestamptz AT TIME ZONE 'UTC')::date), %(amount)s
ON CONFLICT (org, livemode, meter, subject, day) DO UPDATE SET amount = e.amount + excluded.amount

-- sum_used_and_reserved --
SELECT coalesce((
        SELECT sum(amount) FROM usage_days
        WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND day >= %(month)s AND day < %(next)s), 0)
    + coalesce((
        SELECT sum(greatest(amount, reserved)) FROM usage_entries
        WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND subject <> %(subject)s
            AND day >= %(month)s AND day < %(next)s), 0)

-- reserve --
INSERT INTO usage_entries AS e (org, livemode, meter, subject, day, amount, reserved)
VALUES (%(org)s, %(livemode)s, %(meter)s, %(subject)s, %(day)s, 0, %(amount)s)
ON CONFLICT (org, livemode, meter, subject, day) DO UPDATE SET reserved = excluded.reserved

-- release --
UPDATE usage_entries SET reserved = 0
WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND subject = %(cause)s AND reserved > 0

-- get_month_usage --
SELECT meter, sum(amount) FROM (
    SELECT meter, amount FROM usage_days
    WHERE org = %(org)s AND livemode = %(livemode)s AND day >= %(month)s AND day < %(next)s AND meter = ANY(%(meters)s)
    UNION ALL
    SELECT meter, amount FROM usage_entries
    WHERE org = %(org)s AND livemode = %(livemode)s AND day >= %(month)s AND day < %(next)s AND meter = ANY(%(meters)s)
) AS amounts GROUP BY meter

-- list_days --
SELECT meter, day, sum(amount)::bigint FROM (
    SELECT meter, day, amount FROM usage_days
    WHERE org = %(org)s AND livemode = %(livemode)s AND meter = ANY(%(meters)s) AND day >= %(since)s AND day <= %(until)s
    UNION ALL
    SELECT meter, day, amount FROM usage_entries
    WHERE org = %(org)s AND livemode = %(livemode)s AND meter = ANY(%(meters)s) AND day >= %(since)s AND day <= %(until)s
) AS amounts GROUP BY meter, day ORDER BY day, meter

-- get_last_level --
SELECT meter, day, amount FROM usage_days
WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND day < %(before)s ORDER BY day DESC LIMIT 1

-- aggregate --
WITH ended AS (
    DELETE FROM usage_entries
    WHERE org = %(org)s AND livemode = %(livemode)s AND (reserved = 0 OR day < %(long_ago)s)
    RETURNING meter, day, amount
)
INSERT INTO usage_days AS d (org, livemode, meter, day, amount)
SELECT %(org)s, %(livemode)s, meter, day, sum(amount) FROM ended GROUP BY meter, day HAVING sum(amount) > 0
ON CONFLICT (org, livemode, meter, day) DO UPDATE SET amount = d.amount + excluded.amount

-- record_level --
INSERT INTO usage_days (org, livemode, meter, day, amount)
VALUES (%(org)s, %(livemode)s, %(meter)s, (%(now)s::timestamptz AT TIME ZONE 'UTC')::date, %(amount)s)
ON CONFLICT (org, livemode, meter, day) DO UPDATE SET amount = excluded.amount

-- list_thresholds --
SELECT meter, month, percent, included, reached_at FROM usage_thresholds
WHERE org = %(org)s AND livemode = %(livemode)s AND month = %(month)s ORDER BY meter, percent

-- record_threshold --
INSERT INTO usage_thresholds (org, livemode, meter, month, percent, included, reached_at, held_back)
VALUES (%(org)s, %(livemode)s, %(meter)s, %(month)s, %(percent)s, %(included)s, %(reached_at)s, %(held_back)s)
ON CONFLICT (org, livemode, meter, month, percent) DO NOTHING

-- suspend_deliveries --
UPDATE usage_thresholds SET held_back = true, included = %(included)s
WHERE org = %(org)s AND livemode = %(livemode)s AND meter = %(meter)s AND month = %(month)s AND percent = %(percent)s

-- resume_deliveries --
UPDATE usage_thresholds SET held_back = false WHERE org = %(org)s AND livemode = %(livemode)s AND held_back

-- find_unaggregated --
-- In random order, so that every tenant is processed eventually if there are more than the limit.
SELECT e.org, e.livemode FROM here.usage_entries AS e WHERE e.reserved = 0 OR e.day < %(long_ago)s
GROUP BY e.org, e.livemode ORDER BY random() LIMIT %(limit)s

-- list_resumable --
SELECT DISTINCT t.org, t.livemode FROM here.usage_thresholds AS t
JOIN organisations o ON o.id = t.org JOIN plans p ON p.code = o.plan
WHERE t.held_back AND (t.month < %(month)s OR o.bills_overage OR t.included < coalesce((p.meters -> t.meter ->> 'included')::bigint, 1::bigint << 62))
