-- add --
INSERT INTO api_keys (org, livemode, id, name, digest, last4, restricted, scopes, member, networks, expires_at, created_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(name)s, %(digest)s, %(last4)s, %(restricted)s, %(scopes)s, %(member)s,
        %(networks)s, %(expires_at)s, %(created_at)s)

-- revoke --
UPDATE api_keys SET revoked_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s AND revoked_at IS NULL

-- get --
SELECT k.id, k.org, k.livemode, k.name, k.digest, k.last4, k.restricted, k.scopes, coalesce(m.role, 'owner'), k.networks,
       k.expires_at, k.revoked_at, k.created_at, k.member
FROM api_keys k LEFT JOIN members m ON m.org = k.org AND m."user" = k.member
WHERE k.org = %(org)s AND k.livemode = %(livemode)s AND k.id = %(id)s

-- list --
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

-- used --
SELECT key, used_at FROM key_uses WHERE org = %(org)s AND livemode = %(livemode)s AND key = ANY(%(ids)s)

-- revoke_of --
UPDATE api_keys SET revoked_at = %(now)s
WHERE org = %(org)s AND livemode IN (%(livemode)s, NOT %(livemode)s) AND member = %(member)s AND revoked_at IS NULL
RETURNING id

-- keys --
SELECT k.id, k.org, k.livemode, k.name, k.digest, k.last4, k.restricted, k.scopes, coalesce(m.role, 'owner'), k.networks,
       k.expires_at, k.revoked_at, k.created_at, k.member, k.member IS NOT NULL AND m.role IS NULL,
       o.id, o.name, o.kind, o.api_version, o.live_catalogue, o.test_catalogue, o.created_at,
       p.code, p.name, p.tier, p.currency, p.monthly, p.features, p.meters, p.delivery_days, p.request_log_days
FROM api_keys k
JOIN organisations o ON o.id = k.org
JOIN plans p ON p.code = o.plan
LEFT JOIN members m ON m.org = k.org AND m."user" = k.member
WHERE k.digest = ANY(%(digests)s)

-- pin --
UPDATE organisations SET api_version = coalesce(api_version, %(version)s) WHERE id = %(org)s RETURNING api_version
