-- own --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days
FROM organisations o JOIN plans p ON p.code = o.plan
WHERE o.id = %(id)s

-- named --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days
FROM organisations o JOIN plans p ON p.code = o.plan
WHERE %(name)s IN ('', o.name)
ORDER BY o.id

-- change_plan --
UPDATE organisations SET plan = %(plan)s WHERE id = %(id)s

-- change --
UPDATE organisations SET name = %(name)s, api_version = %(api_version)s WHERE id = %(org)s

-- of_user --
SELECT o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days
FROM members m JOIN organisations o ON o.id = m.org JOIN plans p ON p.code = o.plan
WHERE m."user" = %(user)s
    AND o.id > %(page_key)s --? after
    AND o.id < %(page_key)s --? before
ORDER BY o.id ASC LIMIT {limit} --? forwards
ORDER BY o.id DESC LIMIT {limit} --? backwards

-- add --
INSERT INTO organisations (id, name, kind, plan, api_version, live_catalogue, test_catalogue, created_at)
VALUES (%(id)s, %(name)s, %(kind)s, %(plan)s, %(api_version)s, %(live)s, %(test)s, %(created_at)s)

-- add_member --
INSERT INTO members (org, "user", email, email_key, role, created_at)
VALUES (%(org)s, %(user)s, %(email)s, %(email_key)s, %(role)s, %(created_at)s)

-- member --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s AND email_key = %(email_key)s

-- members --
SELECT "user", org, email, role, created_at FROM members WHERE org = %(org)s
    AND "user" > %(page_key)s --? after
    AND "user" < %(page_key)s --? before
ORDER BY "user" ASC LIMIT {limit} --? forwards
ORDER BY "user" DESC LIMIT {limit} --? backwards

-- hold_members --
-- In one order, so that two who hold some at once never wait for each other.
SELECT "user", org, email, role, created_at FROM members
WHERE org = %(org)s AND (role = 'owner' OR "user" = ANY(%(users)s)) ORDER BY "user" FOR UPDATE

-- change_role --
UPDATE members SET role = %(role)s WHERE org = %(org)s AND "user" = %(user)s

-- remove_member --
DELETE FROM members WHERE org = %(org)s AND "user" = %(user)s

-- invite --
INSERT INTO invitations (org, id, email, email_key, role, invited_by, digest, created_at, expires_at)
VALUES (%(org)s, %(id)s, %(email)s, %(email_key)s, %(role)s, %(invited_by)s, %(digest)s, %(created_at)s, %(expires_at)s)

-- invitations --
SELECT id, org, email, role, invited_by, digest, created_at, expires_at, accepted_at, revoked_at FROM invitations
WHERE org = %(org)s AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > %(now)s
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- invitation --
SELECT id, org, email, role, invited_by, digest, created_at, expires_at, accepted_at, revoked_at FROM invitations
WHERE org = %(org)s AND id = %(id)s FOR UPDATE

-- settle_invitation --
UPDATE invitations SET accepted_at = %(accepted_at)s, revoked_at = %(revoked_at)s WHERE org = %(org)s AND id = %(id)s

-- invited --
SELECT i.id, i.org, i.email, i.role, i.invited_by, i.digest, i.created_at, i.expires_at, i.accepted_at, i.revoked_at,
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days
FROM invitations i JOIN organisations o ON o.id = i.org JOIN plans p ON p.code = o.plan
WHERE i.digest = %(digest)s

-- forget_invitations --
DELETE FROM invitations WHERE least(expires_at, accepted_at, revoked_at) < %(before)s

-- plans --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans ORDER BY position

-- plan --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans
WHERE code = %(code)s
