-- record_check --
INSERT INTO platform_checks (component, day, passed, failed, state, checked_at)
VALUES (%(component)s, %(day)s, %(passed)s, %(failed)s, %(state)s, %(at)s)
ON CONFLICT (component, day) DO UPDATE
SET passed = platform_checks.passed + excluded.passed, failed = platform_checks.failed + excluded.failed,
    state = excluded.state, checked_at = excluded.checked_at

-- list_latest --
SELECT DISTINCT ON (component) component, checked_at, state FROM platform_checks ORDER BY component, day DESC

-- count_by_day --
SELECT component, day, passed, passed + failed FROM platform_checks WHERE day >= %(since)s ORDER BY day, component

-- delete_checks --
DELETE FROM platform_checks WHERE day < %(day)s

-- list_open_incidents --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents
WHERE closed_at IS NULL ORDER BY id DESC

-- get_incident --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents WHERE id = %(id)s

-- list_incidents --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents
WHERE true
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- save_incident --
INSERT INTO platform_incidents (id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at)
VALUES (%(id)s, %(component)s, %(state)s, %(title)s, %(opened_by)s, %(updates)s, %(opened_at)s, %(updated_at)s, %(closed_at)s)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, updates = excluded.updates, updated_at = excluded.updated_at,
    closed_at = excluded.closed_at
WHERE jsonb_array_length(platform_incidents.updates) = %(known)s

-- record_heartbeat --
INSERT INTO platform_instances (instance, role, answered, failed, seen_at)
VALUES (%(instance)s, %(role)s, %(answered)s, %(failed)s, now())
ON CONFLICT (instance, role) DO UPDATE
SET answered = excluded.answered, failed = excluded.failed, seen_at = excluded.seen_at

-- remove --
DELETE FROM platform_instances WHERE instance = %(instance)s OR seen_at < now() - interval '1 hour'

-- list_alive --
SELECT instance, role, answered, failed FROM platform_instances WHERE seen_at > now() - %(alive)s::interval

-- read_coordinator_metrics --
SELECT
    (SELECT count(*) FROM outgoing_mail WHERE next_at IS NOT NULL AND sent_at IS NULL),
    (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float FROM outgoing_mail
        WHERE next_at IS NOT NULL AND sent_at IS NULL),
    (SELECT extract(epoch FROM now() - finished_at)::float FROM platform_backups)

-- read_tenant_metrics --
-- Clock times count as their average interval, and a third of the days of the week without any: stale after three times that.
WITH scheduled AS (
    SELECT s.created_at, greatest(s.catalogue_at, s.stock_at) AS succeeded_at, stream.at, stream.minutes
        * CASE WHEN (s.schedule ->> 'adaptive')::boolean
            THEN greatest(1, coalesce((s.interval_factor ->> stream.name)::float, 1)) ELSE 1 END AS minutes
    FROM here.sources AS s CROSS JOIN LATERAL (VALUES
        ('catalogue', s.catalogue_at, coalesce((s.schedule ->> 'interval_minutes')::float,
            10080.0 / (jsonb_array_length(s.schedule -> 'at') * coalesce(jsonb_array_length(s.schedule -> 'weekdays'), 7))
                + 480 * (7 - coalesce(jsonb_array_length(s.schedule -> 'weekdays'), 7)))),
        ('stock', s.stock_at, (s.schedule ->> 'stock_interval_minutes')::float)
    ) AS stream (name, at, minutes)
    WHERE s.status = ANY(%(runnable)s) AND stream.minutes IS NOT NULL
)
SELECT
    (SELECT count(*) FROM scheduled),
    (SELECT count(*) FROM scheduled
        WHERE coalesce(at, created_at) < now() - make_interval(secs => 60 * %(stale)s * minutes)),
    (SELECT extract(epoch FROM now() - max(coalesce(succeeded_at, created_at)))::float FROM scheduled),
    (SELECT count(*) FROM here.webhook_endpoints AS e WHERE disabled_for IS NOT NULL),
    open.count, open.oldest,
    (SELECT coalesce(sum(cost_micros), 0)::float / 1000000 FROM here.model_uses AS u WHERE created_at > now() - interval '1 day')
FROM (
    SELECT count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float AS oldest FROM (
        SELECT created_at FROM here.webhook_deliveries AS d WHERE status IN ('pending', 'sending') LIMIT %(max_counted)s
    ) AS waiting
) AS open

-- list_busiest_tenants --
WITH busy AS MATERIALIZED (
    SELECT org, livemode, sum(records) AS records, sum(bytes) AS bytes FROM (
        SELECT d.org, d.livemode, d.amount AS records, 0::bigint AS bytes FROM here.usage_days AS d
        WHERE d.day = %(day)s AND d.meter = 'records'
        UNION ALL SELECT s.org, s.livemode, 0, s.bytes FROM here.storage_usage AS s
    ) amounts GROUP BY org, livemode ORDER BY 3 DESC, 4 DESC LIMIT %(max_examined)s
)
SELECT b.org, b.livemode, b.records, b.bytes,
    (SELECT count(*) FROM (SELECT 1 FROM here.request_logs AS r WHERE r.org = b.org AND r.livemode = b.livemode
        AND r.position >= %(position)s AND r.created_at >= %(since)s LIMIT %(max_counted)s) requests),
    (SELECT count(*) FROM (SELECT 1 FROM here.webhook_deliveries AS w WHERE w.org = b.org AND w.livemode = b.livemode
        AND w.id >= %(id)s LIMIT %(max_counted)s) deliveries)
FROM busy b

-- list_organisation_names --
SELECT o.id, o.name, p.name FROM organisations o JOIN plans p ON p.code = o.plan WHERE o.id = ANY(%(orgs)s)

-- list_slowest_sources --
WITH examined AS MATERIALIZED (
    SELECT s.org, s.livemode, s.id, s.name, s.connector, s.status, s.failures, coalesce(s.status_reason ->> 'message', '') AS reason
    FROM here.sources AS s LIMIT %(max_examined)s
)
SELECT e.*, n.status, n.started_at, extract(epoch FROM coalesce(n.finished_at, now()) - n.started_at)::float
FROM examined e CROSS JOIN LATERAL (
    SELECT r.status, r.started_at, r.finished_at FROM here.runs AS r
    WHERE r.org = e.org AND r.livemode = e.livemode AND r.source = e.id ORDER BY r.id DESC LIMIT 1
) n WHERE n.started_at IS NOT NULL ORDER BY 11 DESC LIMIT %(limit)s

-- list_failing_sources --
SELECT s.org, s.livemode, s.id, s.name, s.connector, s.status, s.failures, coalesce(s.status_reason ->> 'message', ''),
    NULL::text, NULL::timestamptz, NULL::float
FROM here.sources AS s WHERE s.status = ANY(%(statuses)s) ORDER BY s.failures DESC, s.org, s.id LIMIT %(limit)s

-- find_tenant_of_source --
SELECT s.org, s.livemode FROM here.sources AS s WHERE s.id = %(id)s
