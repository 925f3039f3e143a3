-- add_app --
INSERT INTO oauth_apps (org, id, kind, name, redirect_uris, scopes, made_by, digest, last4, home, created_at, updated_at)
VALUES (%(org)s, %(id)s, %(kind)s, %(name)s, %(redirect_uris)s, %(scopes)s, %(made_by)s, %(digest)s, %(last4)s, %(home)s,
        %(created_at)s, %(updated_at)s)

-- get_own_app --
SELECT id, id, kind, 'organisation', name, redirect_uris, scopes, created_at, updated_at, org, made_by, digest, last4, home,
       NULL::timestamptz, NULL::timestamptz
FROM oauth_apps WHERE org = %(org)s AND id = %(id)s

-- list_apps --
SELECT id, id, kind, 'organisation', name, redirect_uris, scopes, created_at, updated_at, org, made_by, digest, last4, home,
       NULL::timestamptz, NULL::timestamptz
FROM oauth_apps WHERE org = %(org)s ORDER BY id

-- save_app --
UPDATE oauth_apps SET name = %(name)s, redirect_uris = %(redirect_uris)s, scopes = %(scopes)s, digest = %(digest)s,
    last4 = %(last4)s, home = %(home)s, updated_at = %(updated_at)s
WHERE org = %(org)s AND id = %(id)s

-- remove_app --
DELETE FROM oauth_apps WHERE org = %(org)s AND id = %(id)s

-- list_consents --
SELECT id, org, app, app_name, "user", scopes, created_at, updated_at, revoked_at FROM oauth_grants
WHERE org = %(org)s AND revoked_at IS NULL AND "user" = coalesce(%(user)s::text, "user") ORDER BY id

-- find_consent --
SELECT id, org, app, app_name, "user", scopes, created_at, updated_at, revoked_at FROM oauth_grants
WHERE org = %(org)s AND app = %(app)s AND "user" = %(user)s AND revoked_at IS NULL

-- save_consent --
INSERT INTO oauth_grants (org, id, app, app_name, "user", scopes, created_at, updated_at, revoked_at)
VALUES (%(org)s, %(id)s, %(app)s, %(app_name)s, %(user)s, %(scopes)s, %(created_at)s, %(updated_at)s, %(revoked_at)s)
ON CONFLICT (org, id) DO UPDATE SET app_name = excluded.app_name, scopes = excluded.scopes, updated_at = excluded.updated_at,
    revoked_at = excluded.revoked_at

-- find_app --
SELECT id, id, kind, 'organisation', name, redirect_uris, scopes, created_at, updated_at, org, made_by, digest, last4, home,
       NULL::timestamptz, NULL::timestamptz
FROM oauth_apps WHERE id = %(client_id)s
UNION ALL
SELECT id, client_id, kind, origin, name, redirect_uris, scopes, created_at, updated_at, NULL, NULL, digest, last4, home,
       used_at, fresh_until
FROM oauth_clients WHERE client_id = %(client_id)s

-- get_app --
SELECT id, id, kind, 'organisation', name, redirect_uris, scopes, created_at, updated_at, org, made_by, digest, last4, home,
       NULL::timestamptz, NULL::timestamptz
FROM oauth_apps WHERE id = %(id)s
UNION ALL
SELECT id, client_id, kind, origin, name, redirect_uris, scopes, created_at, updated_at, NULL, NULL, digest, last4, home,
       used_at, fresh_until
FROM oauth_clients WHERE id = %(id)s

-- save_client --
INSERT INTO oauth_clients (id, client_id, kind, origin, name, redirect_uris, scopes, digest, last4, home, created_at, updated_at,
                           used_at, fresh_until)
VALUES (%(id)s, %(client_id)s, %(kind)s, %(origin)s, %(name)s, %(redirect_uris)s, %(scopes)s, %(digest)s, %(last4)s, %(home)s,
        %(created_at)s, %(updated_at)s, %(used_at)s, %(fresh_until)s)
ON CONFLICT (client_id) DO UPDATE SET kind = excluded.kind, name = excluded.name, redirect_uris = excluded.redirect_uris,
    scopes = excluded.scopes, home = excluded.home, updated_at = excluded.updated_at, fresh_until = excluded.fresh_until
RETURNING id, client_id, kind, origin, name, redirect_uris, scopes, created_at, updated_at, NULL, NULL, digest, last4, home,
    used_at, fresh_until

-- add_code --
INSERT INTO oauth_codes (digest, app, "user", organisation, grant_id, redirect_uri, challenge, scopes, audience, created_at,
                         expires_at, family, used_at)
VALUES (%(digest)s, %(app)s, %(user)s, %(organisation)s, %(grant_id)s, %(redirect_uri)s, %(challenge)s, %(scopes)s, %(audience)s,
        %(created_at)s, %(expires_at)s, %(family)s, %(used_at)s)

-- find_code --
SELECT digest, app, "user", organisation, grant_id, redirect_uri, challenge, scopes, audience, created_at, expires_at, family, used_at
FROM oauth_codes WHERE digest = %(digest)s

-- use_code --
UPDATE oauth_codes SET used_at = %(now)s WHERE digest = %(digest)s AND used_at IS NULL

-- add_family --
INSERT INTO oauth_families (id, app, organisation, "user", grant_id, created_at, expires_at)
VALUES (%(id)s, %(app)s, %(organisation)s, %(user)s, %(grant_id)s, %(created_at)s, %(expires_at)s)

-- add_token --
INSERT INTO oauth_tokens (digest, family, kind, scopes, audience, created_at, expires_at, parent, used_at, ended_at)
VALUES (%(digest)s, %(family)s, %(kind)s, %(scopes)s, %(audience)s, %(created_at)s, %(expires_at)s, %(parent)s, %(used_at)s,
        %(ended_at)s)

-- lock_family --
SELECT FROM oauth_families WHERE id = %(family)s FOR NO KEY UPDATE

-- find_token --
SELECT t.digest, t.family, t.kind, t.scopes, t.audience, t.created_at, t.expires_at, t.parent, t.used_at, t.ended_at,
       f.id, f.app, f.organisation, f."user", f.grant_id, f.created_at, f.expires_at,
       coalesce(f.ended_at, g.revoked_at, CASE WHEN (a.id IS NULL AND c.id IS NULL)
           OR (f."user" IS NOT NULL AND (m.role IS NULL OR g.id IS NULL)) THEN t.created_at END),
       f.ended, EXISTS (SELECT FROM oauth_tokens n WHERE n.parent = t.digest AND n.used_at IS NOT NULL)
FROM oauth_tokens t
JOIN oauth_families f ON f.id = t.family
LEFT JOIN oauth_apps a ON a.id = f.app
LEFT JOIN oauth_clients c ON c.id = f.app
LEFT JOIN oauth_grants g ON g.org = f.organisation AND g.id = f.grant_id
LEFT JOIN members m ON m.org = f.organisation AND m."user" = f."user"
WHERE t.digest = %(digest)s

-- use_token --
UPDATE oauth_tokens SET used_at = coalesce(used_at, %(now)s)
WHERE digest = %(digest)s AND used_at IS NOT DISTINCT FROM %(used_at)s::timestamptz AND ended_at IS NULL
    AND NOT EXISTS (SELECT FROM oauth_tokens n WHERE n.parent = %(digest)s AND n.used_at IS NOT NULL)
    AND EXISTS (SELECT FROM oauth_families f WHERE f.id = oauth_tokens.family AND f.ended_at IS NULL)

-- end_child_tokens --
UPDATE oauth_tokens SET ended_at = %(now)s WHERE parent = %(digest)s AND ended_at IS NULL

-- revoke_family --
UPDATE oauth_families SET ended_at = %(now)s, ended = %(reason)s WHERE id = %(family)s AND ended_at IS NULL

-- revoke_token --
UPDATE oauth_tokens SET ended_at = %(now)s WHERE digest = %(digest)s AND ended_at IS NULL

-- add_device --
INSERT INTO oauth_devices (digest, user_code, app, scopes, audience, created_at, expires_at, family, "interval")
VALUES (%(digest)s, %(user_code)s, %(app)s, %(scopes)s, %(audience)s, %(created_at)s, %(expires_at)s, %(family)s, %(interval)s)
ON CONFLICT (user_code) DO NOTHING

-- find_device --
SELECT digest, user_code, app, scopes, audience, created_at, expires_at, family, "interval", polled_at, approved, "user",
       organisation, grant_id, used_at
FROM oauth_devices WHERE digest = %(digest)s

-- find_device_by_user_code --
SELECT digest, user_code, app, scopes, audience, created_at, expires_at, family, "interval", polled_at, approved, "user",
       organisation, grant_id, used_at
FROM oauth_devices WHERE user_code = %(digest)s AND expires_at > %(now)s

-- save_poll --
UPDATE oauth_devices SET polled_at = %(polled_at)s, "interval" = %(interval)s WHERE digest = %(digest)s

-- save_decision --
UPDATE oauth_devices SET approved = %(approved)s, "user" = %(user)s, organisation = %(organisation)s, grant_id = %(grant_id)s
WHERE digest = %(digest)s AND approved IS NULL

-- use_device --
UPDATE oauth_devices SET used_at = %(now)s WHERE digest = %(digest)s AND approved AND used_at IS NULL

-- record_client_use --
UPDATE oauth_clients SET used_at = %(now)s WHERE client_id = %(client_id)s

-- purge_families --
DELETE FROM oauth_families WHERE expires_at <= %(now)s

-- purge_tokens --
DELETE FROM oauth_tokens WHERE expires_at <= %(now)s

-- purge_codes --
DELETE FROM oauth_codes c WHERE c.expires_at <= %(now)s AND NOT EXISTS (SELECT FROM oauth_families f WHERE f.id = c.family)

-- purge_devices --
DELETE FROM oauth_devices WHERE expires_at <= %(now)s

-- purge_clients --
DELETE FROM oauth_clients c WHERE coalesce(c.used_at, c.created_at) < %(unused_since)s
    AND NOT EXISTS (SELECT FROM oauth_families f WHERE f.app = c.id)

-- find_access_tokens --
SELECT t.digest, t.scopes, t.audience, t.expires_at, coalesce(t.ended_at, f.ended_at, g.revoked_at), f.app, f."user",
       coalesce(m.role, 'admin'),
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days, o.bills_overage
FROM oauth_tokens t
JOIN oauth_families f ON f.id = t.family
JOIN organisations o ON o.id = f.organisation
JOIN plans p ON p.code = o.plan
LEFT JOIN oauth_apps a ON a.id = f.app
LEFT JOIN oauth_clients c ON c.id = f.app
LEFT JOIN oauth_grants g ON g.org = f.organisation AND g.id = f.grant_id
LEFT JOIN members m ON m.org = f.organisation AND m."user" = f."user"
WHERE t.digest = ANY(%(digests)s) AND t.kind = 'access' AND (a.id IS NOT NULL OR c.id IS NOT NULL)
    AND (f."user" IS NULL OR (m.role IS NOT NULL AND g.id IS NOT NULL))
