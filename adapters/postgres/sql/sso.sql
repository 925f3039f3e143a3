-- connection --
SELECT org, issuer, client_id, secret, joins_as, enforced, enabled, tried_at, created_at, updated_at
FROM sso_connections WHERE org = %(org)s

-- save --
INSERT INTO sso_connections (org, issuer, client_id, secret, joins_as, enforced, enabled, tried_at, created_at, updated_at)
VALUES (%(org)s, %(issuer)s, %(client_id)s, %(sealed)s, %(joins_as)s, %(enforced)s, %(enabled)s, %(tried_at)s, %(created_at)s,
        %(updated_at)s)
ON CONFLICT (org) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id, secret = excluded.secret,
    joins_as = excluded.joins_as, enforced = excluded.enforced, enabled = excluded.enabled, tried_at = excluded.tried_at,
    updated_at = excluded.updated_at

-- remove --
DELETE FROM sso_connections WHERE org = %(org)s

-- remove_subjects --
DELETE FROM sso_subjects WHERE org = %(org)s

-- domains --
SELECT org, domain, token, proven_at, lost_at, looked_at, created_at FROM sso_domains WHERE org = %(org)s ORDER BY domain

-- put_domain --
INSERT INTO sso_domains (org, domain, token, proven_at, lost_at, looked_at, created_at)
VALUES (%(org)s, %(domain)s, %(token)s, %(proven_at)s, %(lost_at)s, %(looked_at)s, %(created_at)s)
ON CONFLICT (org, domain) DO UPDATE SET token = excluded.token, proven_at = excluded.proven_at, lost_at = excluded.lost_at,
    looked_at = excluded.looked_at

-- remove_domain --
DELETE FROM sso_domains WHERE org = %(org)s AND domain = %(domain)s

-- subject --
SELECT org, issuer, subject, "user", email, created_at, seen_at FROM sso_subjects
WHERE org = %(org)s AND issuer = %(issuer)s AND subject = %(subject)s

-- subject_of --
SELECT org, issuer, subject, "user", email, created_at, seen_at FROM sso_subjects
WHERE org = %(org)s AND issuer = %(issuer)s AND "user" = %(user)s

-- unbind --
DELETE FROM sso_subjects WHERE org = %(org)s AND issuer = %(issuer)s AND "user" = %(user)s AND subject <> %(subject)s

-- bind --
INSERT INTO sso_subjects (org, issuer, subject, "user", email, created_at, seen_at)
VALUES (%(org)s, %(issuer)s, %(subject)s, %(user)s, %(email)s, %(created_at)s, %(seen_at)s)
ON CONFLICT (org, issuer, subject) DO UPDATE SET "user" = excluded."user", email = excluded.email, seen_at = excluded.seen_at

-- member --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s AND "user" = %(user)s

-- members_of --
SELECT "user", org, email, role, created_at FROM members
WHERE org = %(org)s AND split_part(email_key, '@', 2) = ANY(%(domains)s) ORDER BY "user"

-- of_domain --
SELECT c.org, c.issuer, c.client_id, c.secret, c.joins_as, c.enforced, c.enabled, c.tried_at, c.created_at, c.updated_at
FROM sso_domains d JOIN sso_connections c ON c.org = d.org
WHERE d.domain = %(domain)s AND d.proven_at IS NOT NULL AND c.enabled

-- due --
SELECT org, domain, token, proven_at, lost_at, looked_at, created_at FROM sso_domains
WHERE proven_at IS NOT NULL AND looked_at < %(before)s ORDER BY looked_at LIMIT %(limit)s
