-- newest --
SELECT {run}
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = ANY(%(statuses)s)
    AND stream = %(stream)s --? stream
    AND snapshot IS NOT NULL --? snapshot
    AND trigger NOT IN ('category_rules', 'stock_check') --? read
    AND trigger <> 'stock_check' --? whole
ORDER BY id DESC LIMIT 1

-- open_checks --
SELECT {run}
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND trigger = 'stock_check'
    AND status IN ('queued', 'running', 'waiting')
ORDER BY id LIMIT %(most)s

-- days --
SELECT source, day, count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed')
FROM (
    SELECT source, status, (created_at AT TIME ZONE 'UTC')::date AS day, trigger
    FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(since)s
    ORDER BY id DESC LIMIT %(most)s
) AS newest
WHERE trigger NOT IN ('category_rules', 'stock_check') AND status IN ('succeeded', 'failed')
GROUP BY source, day ORDER BY source, day

-- newest_of --
SELECT DISTINCT ON (source) source, id, status
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = ANY(%(sources)s) AND created_at >= %(since)s
    AND trigger <> 'stock_check'
ORDER BY source, id DESC
