-- newest --
SELECT {run}
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = ANY(%(statuses)s)
    AND stream = %(stream)s --? stream
    AND snapshot IS NOT NULL --? snapshot
    AND trigger <> 'category_rules' --? read
ORDER BY id DESC LIMIT 1
