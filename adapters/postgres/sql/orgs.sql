-- get_organisation --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM organisations o JOIN plans p ON p.code = o.plan
WHERE o.id = %(id)s

-- list_by_name --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM organisations o JOIN plans p ON p.code = o.plan
WHERE %(name)s IN ('', o.name)
ORDER BY o.id

-- find_names --
SELECT id, name FROM organisations WHERE id = ANY(%(ids)s)

-- find_by_catalogue --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM organisations o JOIN plans p ON p.code = o.plan
WHERE %(catalogue)s IN (o.live_catalogue, o.test_catalogue)

-- change_plan --
UPDATE organisations SET plan = %(plan)s WHERE id = %(id)s

-- save_settings --
UPDATE organisations SET name = %(name)s, api_version = %(api_version)s WHERE id = %(org)s

-- list_organisations --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM members m JOIN organisations o ON o.id = m.org JOIN plans p ON p.code = o.plan
WHERE m."user" = %(user)s
    AND o.id > %(page_key)s --? after
    AND o.id < %(page_key)s --? before
ORDER BY o.id ASC LIMIT {limit} --? forwards
ORDER BY o.id DESC LIMIT {limit} --? backwards

-- add_organisation --
INSERT INTO organisations (id, name, kind, plan, api_version, live_catalogue, test_catalogue, created_at)
VALUES (%(id)s, %(name)s, %(kind)s, %(plan)s, %(api_version)s, %(live)s, %(test)s, %(created_at)s)

-- add_member --
INSERT INTO members (org, "user", email, email_key, role, created_at)
VALUES (%(org)s, %(user)s, %(email)s, %(email_key)s, %(role)s, %(created_at)s)

-- find_member_by_email --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s AND email_key = %(email_key)s

-- list_members --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s
    AND "user" > %(page_key)s --? after
    AND "user" < %(page_key)s --? before
ORDER BY "user" ASC LIMIT {limit} --? forwards
ORDER BY "user" DESC LIMIT {limit} --? backwards

-- lock_members --
-- Locks rows in a fixed order, to avoid deadlocks.
SELECT "user", org, email, role, created_at FROM members
WHERE org = %(org)s AND (role = 'owner' OR "user" = ANY(%(users)s)) ORDER BY "user" FOR UPDATE

-- change_role --
UPDATE members SET role = %(role)s WHERE org = %(org)s AND "user" = %(user)s

-- remove_member --
DELETE FROM members WHERE org = %(org)s AND "user" = %(user)s

-- add_invitation --
INSERT INTO invitations (org, id, email, email_key, role, invited_by, digest, created_at, expires_at)
VALUES (%(org)s, %(id)s, %(email)s, %(email_key)s, %(role)s, %(invited_by)s, %(digest)s, %(created_at)s, %(expires_at)s)

-- list_invitations --
SELECT id, org, email, role, invited_by, digest, created_at, expires_at, accepted_at, revoked_at FROM invitations
WHERE org = %(org)s AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > %(now)s
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- lock_invitation --
SELECT id, org, email, role, invited_by, digest, created_at, expires_at, accepted_at, revoked_at FROM invitations
WHERE org = %(org)s AND id = %(id)s FOR UPDATE

-- close_invitation --
UPDATE invitations SET accepted_at = %(accepted_at)s, revoked_at = %(revoked_at)s WHERE org = %(org)s AND id = %(id)s

-- find_invitation --
SELECT i.id, i.org, i.email, i.role, i.invited_by, i.digest, i.created_at, i.expires_at, i.accepted_at, i.revoked_at,
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM invitations i JOIN organisations o ON o.id = i.org JOIN plans p ON p.code = o.plan
WHERE i.digest = %(digest)s

-- delete_invitations --
DELETE FROM invitations WHERE least(expires_at, accepted_at, revoked_at) < %(before)s

-- list_plans --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans ORDER BY position

-- find_plan --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans
WHERE code = %(code)s

-- add_key --
INSERT INTO api_keys (org, livemode, id, name, digest, last4, restricted, scopes, member, networks, expires_at, created_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(name)s, %(digest)s, %(last4)s, %(restricted)s, %(scopes)s, %(member)s,
        %(networks)s, %(expires_at)s, %(created_at)s)

-- revoke_key --
UPDATE api_keys SET revoked_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND revoked_at IS NULL

-- get_key --
SELECT k.id, k.org, k.livemode, k.name, k.digest, k.last4, k.restricted, k.scopes, coalesce(m.role, 'owner'), k.networks,
       k.expires_at, k.revoked_at, k.created_at, k.member
FROM api_keys k LEFT JOIN members m ON m.org = k.org AND m."user" = k.member
WHERE k.org = %(org)s AND k.livemode = %(livemode)s AND k.id = %(id)s

-- list_keys --
SELECT k.id, k.org, k.livemode, k.name, k.digest, k.last4, k.restricted, k.scopes, coalesce(m.role, 'owner'), k.networks,
       k.expires_at, k.revoked_at, k.created_at, k.member
FROM api_keys k LEFT JOIN members m ON m.org = k.org AND m."user" = k.member
WHERE k.org = %(org)s AND k.livemode = %(livemode)s
    AND k.revoked_at IS NULL --? open
    AND k.revoked_at IS NOT NULL --? ended
    AND k.id < %(page_key)s --? after
    AND k.id > %(page_key)s --? before
ORDER BY k.id DESC LIMIT {limit} --? forwards
ORDER BY k.id ASC LIMIT {limit} --? backwards

-- get_last_uses --
SELECT key, used_at FROM key_uses WHERE org = %(org)s AND livemode = %(livemode)s AND key = ANY(%(ids)s)

-- revoke_keys_by_member --
UPDATE api_keys SET revoked_at = %(now)s
WHERE org = %(org)s AND livemode IN (%(livemode)s, NOT %(livemode)s) AND member = %(member)s AND revoked_at IS NULL
RETURNING id

-- find_keys --
SELECT k.id, k.org, k.livemode, k.name, k.digest, k.last4, k.restricted, k.scopes, coalesce(m.role, 'owner'), k.networks,
       k.expires_at, k.revoked_at, k.created_at, k.member, k.member IS NOT NULL AND m.role IS NULL,
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM api_keys k
JOIN organisations o ON o.id = k.org
JOIN plans p ON p.code = o.plan
LEFT JOIN members m ON m.org = k.org AND m."user" = k.member
WHERE k.digest = ANY(%(digests)s)

-- pin_version --
UPDATE organisations SET api_version = coalesce(api_version, %(version)s) WHERE id = %(org)s RETURNING api_version

-- find_connection --
SELECT org, issuer, client_id, secret, joins_as, enforced, enabled, tried_at, created_at, updated_at
FROM sso_connections WHERE org = %(org)s

-- save_connection --
INSERT INTO sso_connections (org, issuer, client_id, secret, joins_as, enforced, enabled, tried_at, created_at, updated_at)
VALUES (%(org)s, %(issuer)s, %(client_id)s, %(sealed)s, %(joins_as)s, %(enforced)s, %(enabled)s, %(tried_at)s, %(created_at)s,
        %(updated_at)s)
ON CONFLICT (org) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id, secret = excluded.secret,
    joins_as = excluded.joins_as, enforced = excluded.enforced, enabled = excluded.enabled, tried_at = excluded.tried_at,
    updated_at = excluded.updated_at

-- delete_connection --
DELETE FROM sso_connections WHERE org = %(org)s

-- delete_linked_identities --
DELETE FROM sso_subjects WHERE org = %(org)s

-- list_domains --
SELECT org, domain, token, proven_at, lost_at, looked_at, created_at FROM sso_domains WHERE org = %(org)s ORDER BY domain

-- save_domain --
INSERT INTO sso_domains (org, domain, token, proven_at, lost_at, looked_at, created_at)
VALUES (%(org)s, %(domain)s, %(token)s, %(proven_at)s, %(lost_at)s, %(looked_at)s, %(created_at)s)
ON CONFLICT (org, domain) DO UPDATE SET token = excluded.token, proven_at = excluded.proven_at, lost_at = excluded.lost_at,
    looked_at = excluded.looked_at

-- delete_domain --
DELETE FROM sso_domains WHERE org = %(org)s AND domain = %(domain)s

-- find_linked_identity --
SELECT org, issuer, subject, "user", email, created_at, seen_at FROM sso_subjects
WHERE org = %(org)s AND issuer = %(issuer)s AND subject = %(subject)s

-- find_linked_identity_by_user --
SELECT org, issuer, subject, "user", email, created_at, seen_at FROM sso_subjects
WHERE org = %(org)s AND issuer = %(issuer)s AND "user" = %(user)s

-- delete_conflicting_identity --
DELETE FROM sso_subjects WHERE org = %(org)s AND issuer = %(issuer)s AND "user" = %(user)s AND subject <> %(subject)s

-- save_linked_identity --
INSERT INTO sso_subjects (org, issuer, subject, "user", email, created_at, seen_at)
VALUES (%(org)s, %(issuer)s, %(subject)s, %(user)s, %(email)s, %(created_at)s, %(seen_at)s)
ON CONFLICT (org, issuer, subject) DO UPDATE SET "user" = excluded."user", email = excluded.email, seen_at = excluded.seen_at

-- find_member_by_user --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s AND "user" = %(user)s

-- list_members_in_domains --
SELECT "user", org, email, role, created_at FROM members
WHERE org = %(org)s AND split_part(email_key, '@', 2) = ANY(%(domains)s) ORDER BY "user"

-- find_by_domain --
SELECT c.org, c.issuer, c.client_id, c.secret, c.joins_as, c.enforced, c.enabled, c.tried_at, c.created_at, c.updated_at
FROM sso_domains d JOIN sso_connections c ON c.org = d.org
WHERE d.domain = %(domain)s AND d.proven_at IS NOT NULL AND c.enabled

-- list_domains_to_check --
SELECT org, domain, token, proven_at, lost_at, looked_at, created_at FROM sso_domains
WHERE proven_at IS NOT NULL AND looked_at < %(before)s ORDER BY looked_at LIMIT %(limit)s
