-- Statuses are parameters, but for those by which a partial index is found (webhook_deliveries_failed, _open): whether it
-- serves is decided when a statement is planned, and the plan of a prepared statement knows no parameter's value.

-- lock_count --
SELECT pg_advisory_xact_lock(%(lock)s)

-- count --
SELECT count(*) FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s

-- endpoints --
FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s

-- add --
INSERT INTO webhook_endpoints (org, livemode, id, shard, url, event_types, sources, categories, catalogues, payload,
    coalesce_seconds, api_version, description, status, disabled_for, secret, secret_last4, previous_secret,
    previous_last4, rotation_expires_at, version, created_at, updated_at, last_success_at, failing_since, checkpoint)
VALUES (%(org)s, %(livemode)s, %(id)s, %(shard)s, %(url)s, %(event_types)s, %(sources)s, %(categories)s, %(catalogues)s,
    %(payload)s, %(coalesce_seconds)s, %(api_version)s, %(description)s, %(status)s, %(disabled_for)s, %(secret)s,
    %(secret_last4)s, %(previous_secret)s, %(previous_last4)s, %(rotation_expires_at)s, %(version)s, %(created_at)s,
    %(updated_at)s, %(last_success_at)s, %(failing_since)s, %(checkpoint)s)

-- save --
UPDATE webhook_endpoints SET url = %(url)s, event_types = %(event_types)s, sources = %(sources)s,
    categories = %(categories)s, catalogues = %(catalogues)s, payload = %(payload)s,
    coalesce_seconds = %(coalesce_seconds)s, api_version = %(api_version)s, description = %(description)s,
    status = %(status)s, disabled_for = %(disabled_for)s, secret_last4 = %(secret_last4)s,
    previous_last4 = %(previous_last4)s, rotation_expires_at = %(rotation_expires_at)s, version = %(version)s,
    updated_at = %(updated_at)s, last_success_at = %(last_success_at)s, failing_since = %(failing_since)s,
    checkpoint = COALESCE(%(checkpoint)s::bigint, checkpoint)
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s
  AND (%(expected)s::integer IS NULL OR version = %(expected)s)

-- remove --
DELETE FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- secrets --
SELECT secret, previous_secret FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- seal --
UPDATE webhook_endpoints SET secret = %(current)s, previous_secret = %(previous)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- notify --
SELECT pg_notify('joinery_webhooks', %(payload)s)

-- deliveries --
FROM webhook_deliveries WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s

-- add_delivery --
INSERT INTO webhook_deliveries (org, livemode, id, endpoint, event, type, subject, positions, status, body, attempts,
    tries, next_attempt_at, created_at, completed_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(endpoint)s, %(event)s, %(type)s, %(subject)s, %(positions)s, %(status)s,
    %(body)s, %(attempts)s, %(tries)s, %(next_attempt_at)s, %(created_at)s, %(completed_at)s)

-- resend --
UPDATE webhook_deliveries SET status = %(pending)s, tries = 0, next_attempt_at = %(at)s, completed_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- recover --
UPDATE webhook_deliveries SET status = %(pending)s, tries = 0, next_attempt_at = %(at)s, completed_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id IN (
    SELECT id FROM webhook_deliveries
    WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status = 'failed'
      AND created_at >= %(since)s AND created_at <= %(until)s
    ORDER BY id LIMIT greatest(0, %(most)s - (SELECT count(*) FROM webhook_deliveries
        WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status IN ('pending', 'sending')))
)

-- failed_in --
SELECT true FROM webhook_deliveries
WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status = 'failed'
  AND created_at >= %(since)s AND created_at <= %(until)s LIMIT 1

-- fail_open --
UPDATE webhook_deliveries SET status = %(failed)s, next_attempt_at = NULL, completed_at = %(at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status IN ('pending', 'sending')

-- wanted --
SELECT e.subject, e.type, e.time, e.position FROM events e
WHERE e.org = %(org)s AND e.livemode = %(livemode)s AND e.time >= %(since)s

-- totals --
SELECT count(*), coalesce((SELECT max(events) FROM (SELECT count(*) AS events FROM near
    GROUP BY date_trunc('minute', time)) minutes), 0), count(*) FILTER (WHERE close) FROM near

-- bursts --
SELECT subject, type, time FROM near WHERE close ORDER BY subject, position
