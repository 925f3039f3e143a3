-- get_newest --
SELECT {agreement} FROM agreements WHERE kind = %(kind)s ORDER BY version DESC LIMIT 1

-- find_version --
SELECT {agreement} FROM agreements WHERE kind = %(kind)s AND version = %(version)s

-- list_versions --
SELECT {agreement} FROM agreements ORDER BY kind, version DESC

-- publish --
INSERT INTO agreements (id, kind, version, title, text, sha256, published_at, grace_days)
VALUES (%(id)s, %(kind)s, %(version)s, %(title)s, %(text)s, %(sha256)s, %(published_at)s, %(grace_days)s)
ON CONFLICT DO NOTHING

-- find_newest_acceptance --
SELECT {acceptance} FROM agreement_acceptances
WHERE org = %(org)s AND livemode = %(livemode)s AND kind = %(kind)s ORDER BY version DESC LIMIT 1
