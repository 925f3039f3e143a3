-- get_key_ring --
SELECT sealed, changed_at FROM key_ring

-- add_key_ring --
INSERT INTO key_ring (sealed, changed_at) VALUES (%(sealed)s, now()) ON CONFLICT DO NOTHING

-- replace_key_ring --
UPDATE key_ring SET sealed = %(sealed)s, changed_at = now() WHERE sealed = %(expected)s

-- has_api_keys --
SELECT EXISTS (SELECT FROM api_keys)

-- count_outdated_connections --
SELECT count(*) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.application_name = %(application)s AND NOT EXISTS (
    SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND (l.classid::bigint << 32) | l.objid::bigint = %(lock)s
)

-- count_tenant_values --
SELECT encode(substring(sealed FROM 3 FOR 16), 'escape') AS key, kind, count(*) FROM (
    SELECT 'source_credentials' AS kind, credentials AS sealed FROM here.sources AS s WHERE credentials IS NOT NULL
    UNION ALL SELECT 'webhook_secrets', secret FROM here.webhook_endpoints AS e
    UNION ALL SELECT 'former_webhook_secrets', previous_secret FROM here.webhook_endpoints AS f WHERE previous_secret IS NOT NULL
    UNION ALL SELECT 'kept_for_undoing', sealed FROM here.audit_kept AS a
    UNION ALL SELECT 'notification_addresses', address FROM here.notification_rules AS n WHERE address IS NOT NULL
    UNION ALL SELECT 'export_targets', credentials FROM here.scheduled_exports AS x WHERE credentials <> ''
    UNION ALL SELECT 'answers', body FROM here.idempotency_keys AS k WHERE substring(body FROM 1 FOR 2) = ANY(%(prefixes)s)
) encrypted GROUP BY key, kind

-- list_outdated_source_credentials --
SELECT org, livemode, id, credentials, connector, config FROM here.sources AS s
WHERE (org, livemode, id) > (%(org)s, %(livemode)s, %(owner)s) AND credentials IS NOT NULL
  AND substring(credentials FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, id LIMIT %(limit)s

-- list_outdated_webhook_secrets --
SELECT org, livemode, id, secret FROM here.webhook_endpoints AS e
WHERE (org, livemode, id) > (%(org)s, %(livemode)s, %(owner)s) AND substring(secret FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, id LIMIT %(limit)s

-- list_outdated_notification_addresses --
SELECT org, livemode, id, address FROM here.notification_rules AS n
WHERE (org, livemode, id) > (%(org)s, %(livemode)s, %(owner)s) AND address IS NOT NULL
  AND substring(address FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, id LIMIT %(limit)s

-- list_outdated_former_webhook_secrets --
SELECT org, livemode, id, previous_secret FROM here.webhook_endpoints AS e
WHERE (org, livemode, id) > (%(org)s, %(livemode)s, %(owner)s) AND previous_secret IS NOT NULL
  AND substring(previous_secret FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, id LIMIT %(limit)s

-- list_outdated_export_targets --
SELECT org, livemode, id, credentials FROM here.scheduled_exports AS x
WHERE (org, livemode, id) > (%(org)s, %(livemode)s, %(owner)s) AND credentials <> ''
  AND substring(credentials FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, id LIMIT %(limit)s

-- list_outdated_answers --
SELECT org, livemode, key, body FROM here.idempotency_keys AS k
WHERE (org, livemode, key) > (%(org)s, %(livemode)s, %(owner)s) AND substring(body FROM 1 FOR 2) = ANY(%(prefixes)s)
  AND substring(body FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, key LIMIT %(limit)s

-- list_outdated_kept_for_undoing --
SELECT org, livemode, entry, sealed FROM here.audit_kept AS a
WHERE (org, livemode, entry) > (%(org)s, %(livemode)s, %(owner)s) AND substring(sealed FROM 1 FOR %(length)s) <> %(current_prefix)s
ORDER BY org, livemode, entry LIMIT %(limit)s

-- count_reference_table_values --
SELECT encode(substring(secret FROM 3 FOR 16), 'escape') AS key, 'sso_secrets', count(*) FROM sso_connections GROUP BY key

-- list_outdated_sso_secrets --
SELECT org, true, 'sso:' || org || ' ' || issuer, secret FROM sso_connections
WHERE org > %(org)s AND substring(secret FROM 1 FOR %(length)s) <> %(current_prefix)s ORDER BY org LIMIT %(limit)s

-- replace_sso_secrets --
UPDATE sso_connections SET secret = %(reencrypted)s
WHERE org = %(org)s AND 'sso:' || org || ' ' || issuer = %(owner)s AND secret = %(ciphertext)s

-- replace_kept_for_undoing --
UPDATE audit_kept SET sealed = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND entry = %(owner)s AND sealed = %(ciphertext)s

-- replace_source_credentials --
UPDATE sources SET credentials = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(owner)s AND credentials = %(ciphertext)s

-- replace_export_targets --
UPDATE scheduled_exports SET credentials = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(owner)s AND credentials = %(ciphertext)s

-- replace_webhook_secrets --
UPDATE webhook_endpoints SET secret = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(owner)s AND secret = %(ciphertext)s

-- replace_notification_addresses --
UPDATE notification_rules SET address = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(owner)s AND address = %(ciphertext)s

-- replace_former_webhook_secrets --
UPDATE webhook_endpoints SET previous_secret = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(owner)s AND previous_secret = %(ciphertext)s

-- replace_answers --
UPDATE idempotency_keys SET body = %(reencrypted)s
WHERE org = %(org)s AND livemode = %(livemode)s AND key = %(owner)s AND body = %(ciphertext)s

-- count_user_values --
SELECT encode(substring(sealed FROM 3 FOR 16), 'escape') AS key, kind, count(*) FROM (
    SELECT 'outgoing_mail' AS kind, sealed FROM outgoing_mail WHERE sealed <> ''
    UNION ALL SELECT 'authenticators', secret FROM authenticators
) encrypted GROUP BY key, kind

-- list_outdated_outgoing_mail --
SELECT id, sealed FROM outgoing_mail
WHERE id > %(owner)s AND sealed <> '' AND substring(sealed FROM 1 FOR %(length)s) <> %(current_prefix)s ORDER BY id LIMIT %(limit)s

-- replace_outgoing_mail --
UPDATE outgoing_mail SET sealed = %(reencrypted)s WHERE id = %(owner)s AND sealed = %(ciphertext)s

-- list_outdated_authenticators --
SELECT "user", secret FROM authenticators
WHERE "user" > %(owner)s AND substring(secret FROM 1 FOR %(length)s) <> %(current_prefix)s ORDER BY "user" LIMIT %(limit)s

-- replace_authenticators --
UPDATE authenticators SET secret = %(reencrypted)s WHERE "user" = %(owner)s AND secret = %(ciphertext)s
