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

-- plans --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans ORDER BY position

-- plan --
SELECT code, name, tier, currency, monthly, features, meters, delivery_days, request_log_days FROM plans
WHERE code = %(code)s
