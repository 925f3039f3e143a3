-- Statuses are parameters, except those of partial indexes (webhook_deliveries_failed, _open): the generic plan of a prepared
-- statement does not know parameters' values and could not use the index.

-- count --
SELECT count(*) FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s

-- get_secrets --
SELECT secret, previous_secret FROM webhook_endpoints WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- replace_secrets --
UPDATE webhook_endpoints SET secret = %(current)s, previous_secret = %(previous)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- notify --
SELECT pg_notify('joinery_webhooks', %(payload)s)

-- scan_deliveries --
-- Comparing the whole key as a row forces the index that begins with it: with a simple equality and thirty partitions the
-- planner reads and sorts all rows if it expects less than a page. The sub-select hides the endpoint's value from the planner,
-- which would otherwise estimate that no row precedes it.
SELECT * FROM webhook_deliveries WHERE org = %(org)s AND livemode = %(livemode)s
    AND (endpoint, id) < ((SELECT %(endpoint)s), %(page_key)s) --? by_endpoint forwards
    AND (endpoint, id) > ((SELECT %(endpoint)s), %(page_key)s) --? by_endpoint backwards
    AND (endpoint, status, id) < ((SELECT %(endpoint)s), %(status)s, %(page_key)s) --? by_status forwards
    AND (endpoint, status, id) > ((SELECT %(endpoint)s), %(status)s, %(page_key)s) --? by_status backwards
    AND status <> 'succeeded' --? by_status
    AND (endpoint, type, id) < ((SELECT %(endpoint)s), %(type)s, %(page_key)s) --? by_type forwards
    AND (endpoint, type, id) > ((SELECT %(endpoint)s), %(type)s, %(page_key)s) --? by_type backwards
ORDER BY endpoint DESC, id DESC --? by_endpoint forwards
ORDER BY endpoint ASC, id ASC --? by_endpoint backwards
ORDER BY endpoint DESC, status DESC, id DESC --? by_status forwards
ORDER BY endpoint ASC, status ASC, id ASC --? by_status backwards
ORDER BY endpoint DESC, type DESC, id DESC --? by_type forwards
ORDER BY endpoint ASC, type ASC, id ASC --? by_type backwards

-- list_deliveries --
-- The scan continues into the next endpoint, status or type, where the outer condition removes the rows.
SELECT {delivery} FROM (
    {scan_deliveries}
    LIMIT {limit} --? page_limit
    LIMIT {scan_limit} --? scan_limit
) w WHERE endpoint = %(endpoint)s
    AND status = %(status)s --? status
    AND type = %(type)s --? type
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- find_deliveries_scan_end --
-- The end of a page whose scan reached its limit before the page was full.
SELECT id FROM (
    {scan_deliveries}
    OFFSET {scan_limit} - 1 LIMIT 1
) w WHERE endpoint = %(endpoint)s
    AND status = %(status)s --? by_status
    AND type = %(type)s --? by_type

-- requeue --
UPDATE webhook_deliveries SET status = %(pending)s, tries = 0, next_attempt_at = %(at)s, completed_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- recover --
UPDATE webhook_deliveries SET status = %(pending)s, tries = 0, next_attempt_at = %(at)s, completed_at = NULL
WHERE org = %(org)s AND livemode = %(livemode)s AND id IN (
    SELECT id FROM webhook_deliveries
    WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status = 'failed'
      AND created_at >= %(since)s AND created_at <= %(until)s
    ORDER BY id LIMIT greatest(0, %(max_open)s - (SELECT count(*) FROM webhook_deliveries
        WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status IN ('pending', 'sending')))
)

-- has_failed_deliveries --
SELECT true FROM webhook_deliveries
WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status = 'failed'
  AND created_at >= %(since)s AND created_at <= %(until)s LIMIT 1

-- fail_open_deliveries --
UPDATE webhook_deliveries SET status = %(failed)s, next_attempt_at = NULL, completed_at = %(at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status IN ('pending', 'sending')

-- select_matching_events --
SELECT e.subject, e.type, e.time, e.position FROM events e
WHERE e.org = %(org)s AND e.livemode = %(livemode)s AND e.time >= %(since)s

-- compute_totals --
SELECT count(*), coalesce((SELECT max(events) FROM (SELECT count(*) AS events FROM marked
    GROUP BY date_trunc('minute', time)) minutes), 0), count(*) FILTER (WHERE close) FROM marked

-- list_close_events --
SELECT subject, type, time FROM marked WHERE close ORDER BY subject, position
