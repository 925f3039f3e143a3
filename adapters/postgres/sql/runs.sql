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
