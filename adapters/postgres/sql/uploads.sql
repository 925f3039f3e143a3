-- columns --
SELECT id, source, filename, content_type, bytes, status, key, expires_at, created_at, run, completed_at
FROM uploads WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- add --
INSERT INTO uploads (org, livemode, id, source, filename, content_type, bytes, status, key, run, expires_at, created_at,
    completed_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(source)s, %(filename)s, %(content_type)s, %(bytes)s, %(status)s, %(key)s, %(run)s,
    %(expires_at)s, %(created_at)s, %(completed_at)s)

-- save --
UPDATE uploads SET status = %(status)s, run = %(run)s, completed_at = %(completed_at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s
