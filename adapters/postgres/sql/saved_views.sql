-- list_visible --
SELECT {view} FROM saved_views
WHERE org = %(org)s AND livemode = %(livemode)s AND (is_shared OR person = %(person)s)
ORDER BY lower(name), id LIMIT 100

-- count_of --
SELECT count(*) FROM saved_views
WHERE org = %(org)s AND livemode = %(livemode)s AND is_shared = %(is_shared)s AND (is_shared OR person = %(person)s)

-- delete_own_views --
DELETE FROM saved_views WHERE org = %(org)s AND livemode = %(livemode)s AND person = %(person)s AND NOT is_shared

-- delete_preferences --
DELETE FROM list_preferences WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(person)s
