-- of_headers --
SELECT {mapping}
FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND digest = ANY(%(digests)s)
ORDER BY id FOR UPDATE

-- confirmed --
SELECT {known}
FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND status = %(confirmed)s
    AND source = %(source)s --? own
    AND source <> %(source)s --? others
ORDER BY confirmed_at DESC, id DESC LIMIT %(most)s

-- prune --
DELETE FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = %(proposed)s
    AND id < (
        SELECT min(id) FROM (
            SELECT id FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s
            ORDER BY id DESC LIMIT %(keep)s
        ) newest
    )
