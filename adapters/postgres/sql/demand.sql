-- find_own_products --
SELECT id FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(product_ids)s)

-- find_own_variants --
SELECT id FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(variant_ids)s)

-- find_publishers --
SELECT id, nullif(org, %(org)s) FROM published_products WHERE livemode = %(livemode)s AND id = ANY(%(product_ids)s)

-- add_signal_ids --
INSERT INTO demand_signal_ids AS s (org, livemode, id, seen_at, expires_at)
SELECT %(org)s, %(livemode)s, decode(hash, 'hex'), %(now)s, %(expires_at)s FROM jsonb_array_elements_text(%(hashes)s) AS hash ORDER BY 3
ON CONFLICT (org, livemode, id) DO UPDATE SET seen_at = excluded.seen_at, expires_at = excluded.expires_at
WHERE s.expires_at <= excluded.seen_at
RETURNING id

-- add_counts --
INSERT INTO demand_hours AS h (org, livemode, hour, vendor, subject, type, amount)
SELECT %(org)s, %(livemode)s, to_timestamp(hour), vendor, subject, type, amount
FROM jsonb_to_recordset(%(rows)s) AS r (hour bigint, vendor text, subject text, type text, amount bigint)
ON CONFLICT (org, livemode, hour, vendor, subject, type) DO UPDATE SET amount = h.amount + excluded.amount

-- add_cells --
INSERT INTO demand_cells (org, livemode, product, day, type, amount, organisations)
SELECT %(org)s, %(livemode)s, subject, %(day)s, type, amount, organisations
FROM jsonb_to_recordset(%(rows)s) AS r (subject text, type text, amount bigint, organisations integer)
WHERE EXISTS (SELECT FROM organisations AS o WHERE o.id = %(org)s)
    AND NOT EXISTS (SELECT FROM demand_cells AS c WHERE c.org = %(org)s AND c.livemode = %(livemode)s AND c.day = %(day)s)
ON CONFLICT (org, livemode, product, day, type) DO NOTHING

-- sum_by_type --
SELECT type, coalesce(sum(amount), 0)::bigint, max(organisations), bool_or(amount IS NULL) FROM demand_cells
WHERE org = %(org)s AND livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s GROUP BY type
UNION ALL
SELECT %(miss)s, coalesce(sum(amount), 0)::bigint, 0, coalesce(bool_or(amount IS NULL), false) FROM demand_queries
WHERE livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s

-- sum_by_day --
SELECT day, sum(amount)::bigint FROM demand_cells
WHERE org = %(org)s AND livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s AND type = %(kind)s AND amount IS NOT NULL
GROUP BY day ORDER BY day

-- sum_queries_by_day --
SELECT day, sum(amount)::bigint FROM demand_queries
WHERE livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s AND amount IS NOT NULL
GROUP BY day ORDER BY day

-- page_products --
SELECT product, (
        SELECT convert_from(p.data, 'UTF8')::json ->> 'title' FROM products AS p
        WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = product
    ), coalesce(sum(amount) FILTER (WHERE type = 'view'), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE type = 'save'), 0)::bigint, coalesce(sum(amount) FILTER (WHERE type = 'quote'), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE type = 'cart'), 0)::bigint, coalesce(sum(amount) FILTER (WHERE type = 'order'), 0)::bigint
FROM demand_cells
WHERE org = %(org)s AND livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s AND product <> ''
    AND product < %(page_key)s --? after
GROUP BY product
ORDER BY product DESC LIMIT {limit} --? forwards

-- list_top_queries --
SELECT query, sum(amount)::bigint AS amount FROM demand_queries
WHERE livemode = %(livemode)s AND day BETWEEN %(since)s AND %(until)s AND query <> ''
GROUP BY query ORDER BY amount DESC, query LIMIT %(limit)s

-- list_days --
SELECT DISTINCT vendor, livemode, (hour AT TIME ZONE 'UTC')::date FROM here.demand_hours AS h WHERE hour < %(before)s

-- summarise_subjects --
-- The first subjects after `after`; all subjects could be too many for the memory of the scheduler.
SELECT subject, count(*), sum(amount)::bigint, max(amount)::bigint, coalesce((array_agg(amount ORDER BY amount DESC))[2], 0)::bigint
FROM (
    SELECT h.subject, h.org, sum(h.amount) AS amount FROM here.demand_hours AS h
    WHERE h.hour >= %(start)s AND h.hour < %(end)s AND h.vendor = %(vendor)s AND h.livemode = %(livemode)s AND h.type = %(kind)s
        AND h.org <> h.vendor AND h.subject > %(after)s
    GROUP BY h.subject, h.org
) AS contributions GROUP BY subject ORDER BY subject LIMIT %(limit)s

-- summarise_rest --
SELECT count(*), coalesce(sum(amount), 0)::bigint, coalesce(max(amount), 0)::bigint,
    coalesce((array_agg(amount ORDER BY amount DESC))[2], 0)::bigint
FROM (
    SELECT h.org, sum(h.amount) AS amount FROM here.demand_hours AS h
    WHERE h.hour >= %(start)s AND h.hour < %(end)s AND h.vendor = %(vendor)s AND h.livemode = %(livemode)s AND h.type = %(kind)s
        AND h.org <> h.vendor AND h.subject <> ALL(%(released)s)
    GROUP BY h.org
) AS contributions

-- add_query_cells --
INSERT INTO demand_queries (livemode, day, query, amount)
SELECT %(livemode)s, %(day)s, subject, amount FROM jsonb_to_recordset(%(rows)s) AS r (subject text, amount bigint)
WHERE NOT EXISTS (SELECT FROM demand_queries AS q WHERE q.livemode = %(livemode)s AND q.day = %(day)s)
ON CONFLICT (livemode, day, query) DO NOTHING

-- list_orgs_of_day --
SELECT DISTINCT org FROM here.demand_hours AS h
WHERE hour >= %(start)s AND hour < %(end)s AND vendor = %(vendor)s AND livemode = %(livemode)s

-- remove_signals --
DELETE FROM demand_hours
WHERE org = ANY(%(orgs)s) AND hour >= %(start)s AND hour < %(end)s AND vendor = %(vendor)s AND livemode = %(livemode)s

-- list_orgs_with_old_ids --
SELECT DISTINCT org FROM here.demand_signal_ids AS h WHERE expires_at <= %(before)s

-- delete_ids --
DELETE FROM demand_signal_ids WHERE org = ANY(%(orgs)s) AND expires_at <= %(before)s

-- list_orgs_with_old_cells --
SELECT DISTINCT org FROM here.demand_cells AS h WHERE day < %(before)s

-- delete_cells --
DELETE FROM demand_cells WHERE org = ANY(%(orgs)s) AND day < %(before)s

-- delete_query_cells --
DELETE FROM demand_queries WHERE day < %(before)s
