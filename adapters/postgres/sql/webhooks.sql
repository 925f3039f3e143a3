-- Statuses are parameters, but for those by which a partial index is found (webhook_deliveries_failed, _open): whether it
-- serves is decided when a statement is planned, and the plan of a prepared statement knows no parameter's value.

-- lock_count --
SELECT pg_advisory_xact_lock(%(lock)s)

-- count --
SELECT count(*) FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s

-- secrets --
SELECT secret, previous_secret FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- seal --
UPDATE webhook_endpoints SET secret = %(current)s, previous_secret = %(previous)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- notify --
SELECT pg_notify('joinery_webhooks', %(payload)s)

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
