-- count_by_person --
SELECT count(*) FROM notification_rules WHERE org = %(org)s AND livemode = %(livemode)s AND person = %(person)s

-- list_visible --
SELECT {rule} FROM notification_rules
WHERE org = %(org)s AND livemode = %(livemode)s AND (person = %(person)s OR channel <> 'email') ORDER BY id

-- list_enabled --
SELECT {rule} FROM notification_rules WHERE org = %(org)s AND livemode = %(livemode)s AND enabled ORDER BY id

-- lock_enabled --
SELECT {rule} FROM notification_rules WHERE org = %(org)s AND livemode = %(livemode)s AND enabled ORDER BY id FOR UPDATE

-- lock_by_person --
SELECT {rule} FROM notification_rules
WHERE org = %(org)s AND livemode = %(livemode)s AND person = %(person)s AND channel = 'email' AND enabled ORDER BY id FOR UPDATE

-- lock_due --
SELECT {rule} FROM notification_rules
WHERE org = %(org)s AND livemode = %(livemode)s AND enabled AND due_at <= %(now)s ORDER BY id LIMIT 1 FOR UPDATE

-- delete_notifications --
DELETE FROM notifications WHERE org = %(org)s AND livemode = %(livemode)s AND rule = %(rule)s

-- list_newest --
SELECT {notification} FROM unnest(%(rules)s::text[]) AS wanted (rule) CROSS JOIN LATERAL (
    SELECT * FROM notifications
    WHERE org = %(org)s AND livemode = %(livemode)s AND rule = wanted.rule ORDER BY id DESC LIMIT 1
) n

-- count_findings --
SELECT rule, count(*) FROM notification_findings WHERE org = %(org)s AND livemode = %(livemode)s GROUP BY rule

-- filter_found --
SELECT subject FROM notification_findings
WHERE org = %(org)s AND livemode = %(livemode)s AND rule = %(rule)s AND subject = ANY(%(subjects)s)

-- save_findings --
-- The earlier old and the later new values of each name are kept.
INSERT INTO notification_findings AS f (org, livemode, rule, subject, product, source, old, new, found_at)
SELECT %(org)s, %(livemode)s, rule, subject, product, source, old, new, found_at
FROM unnest(%(rules)s::text[], %(subjects)s::text[], %(products)s::text[], %(sources)s::text[], %(olds)s::jsonb[],
    %(news)s::jsonb[], %(times)s::timestamptz[]) AS finding (rule, subject, product, source, old, new, found_at)
ON CONFLICT (org, livemode, rule, subject) DO UPDATE SET old = excluded.old || f.old, new = f.new || excluded.new,
    product = excluded.product, source = excluded.source, found_at = excluded.found_at

-- list_findings --
SELECT rule, subject, product, source, old, new, found_at FROM notification_findings
WHERE org = %(org)s AND livemode = %(livemode)s AND rule = %(rule)s

-- delete_findings --
DELETE FROM notification_findings WHERE org = %(org)s AND livemode = %(livemode)s AND rule = %(rule)s

-- filter_products --
SELECT p.id FROM products p
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(%(products)s)
    AND (cardinality(%(brand_keys)s::text[]) = 0 OR p.brand_key = ANY(%(brand_keys)s))
    AND (cardinality(%(terms)s::text[]) = 0 OR EXISTS (SELECT FROM product_terms t
        WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = ANY(%(terms)s)))

-- list_newest_problem_counts --
-- Each source is looked up in the index of its runs.
SELECT s.id, newest.problems FROM sources s CROSS JOIN LATERAL (
    SELECT coalesce((r.stats ->> 'problems')::integer, 0) AS problems FROM runs r
    WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.source = s.id AND r.status = 'succeeded' AND r.stream = 'catalogue'
        AND r.trigger NOT IN ('category_rules', 'stock_check')
    ORDER BY r.id DESC LIMIT 1
) newest WHERE s.org = %(org)s AND s.livemode = %(livemode)s

-- list_problem_counts_since --
SELECT source, coalesce((stats ->> 'problems')::integer, 0) FROM (
    SELECT id, source, stats, status, stream, trigger FROM runs
    WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(since)s ORDER BY id DESC LIMIT %(max_runs)s
) recent
WHERE status = 'succeeded' AND stream = 'catalogue' AND trigger NOT IN ('category_rules', 'stock_check') ORDER BY id

-- list_due --
-- Unread events are looked for only for kinds of rules that examine events.
SELECT DISTINCT r.org, r.livemode FROM here.notification_rules AS r
LEFT JOIN here.event_logs AS l ON l.org = r.org AND l.livemode = r.livemode
WHERE r.enabled AND (r.due_at <= %(now)s OR (r.kind <> ALL(%(kinds_without_events)s) AND l.last > r.position)
    OR (r.kind = ANY(%(source_kinds)s) AND r.checked_at <= %(checked_before)s))
ORDER BY r.org, r.livemode LIMIT %(limit)s

-- list_orgs_with_old --
SELECT DISTINCT n.org FROM here.notifications AS n WHERE n.created_at < %(before)s

-- delete_old --
DELETE FROM notifications WHERE org = ANY(%(orgs)s) AND created_at < %(before)s
