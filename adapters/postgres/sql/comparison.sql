-- list_orgs_with_expired --
SELECT DISTINCT l.org FROM here.comparison_links AS l WHERE l.expires_at <= %(before)s

-- delete_expired --
DELETE FROM comparison_links WHERE org = ANY(%(orgs)s) AND expires_at <= %(before)s
