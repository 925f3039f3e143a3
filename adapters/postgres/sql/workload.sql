-- tenants --
WITH busy AS MATERIALIZED (
    SELECT org, livemode, sum(records) AS records, sum(bytes) AS bytes FROM (
        SELECT d.org, d.livemode, d.amount AS records, 0::bigint AS bytes FROM here.usage_days AS d
        WHERE d.day = %(day)s AND d.meter = 'records'
        UNION ALL SELECT s.org, s.livemode, 0, s.bytes FROM here.storage_usage AS s
    ) counted GROUP BY org, livemode ORDER BY 3 DESC, 4 DESC LIMIT %(looked)s
)
SELECT b.org, b.livemode, b.records, b.bytes,
    (SELECT count(*) FROM (SELECT 1 FROM here.request_logs AS r WHERE r.org = b.org AND r.livemode = b.livemode
        AND r.position >= %(position)s AND r.created_at >= %(since)s LIMIT %(counted)s) requests),
    (SELECT count(*) FROM (SELECT 1 FROM here.webhook_deliveries AS w WHERE w.org = b.org AND w.livemode = b.livemode
        AND w.id >= %(id)s LIMIT %(counted)s) deliveries)
FROM busy b

-- names --
SELECT o.id, o.name, p.name FROM organisations o JOIN plans p ON p.code = o.plan WHERE o.id = ANY(%(orgs)s)

-- slowest --
WITH looked AS MATERIALIZED (
    SELECT s.org, s.livemode, s.id, s.name, s.connector, s.status, s.failures, coalesce(s.status_reason ->> 'message', '') AS reason
    FROM here.sources AS s LIMIT %(looked)s
)
SELECT l.*, n.status, n.started_at, extract(epoch FROM coalesce(n.finished_at, now()) - n.started_at)::float
FROM looked l CROSS JOIN LATERAL (
    SELECT r.status, r.started_at, r.finished_at FROM here.runs AS r
    WHERE r.org = l.org AND r.livemode = l.livemode AND r.source = l.id ORDER BY r.id DESC LIMIT 1
) n WHERE n.started_at IS NOT NULL ORDER BY 11 DESC LIMIT %(limit)s

-- troubled --
SELECT s.org, s.livemode, s.id, s.name, s.connector, s.status, s.failures, coalesce(s.status_reason ->> 'message', ''),
    NULL::text, NULL::timestamptz, NULL::float
FROM here.sources AS s WHERE s.status = ANY(%(statuses)s) ORDER BY s.failures DESC, s.org, s.id LIMIT %(limit)s

-- tenant_of_source --
SELECT s.org, s.livemode FROM here.sources AS s WHERE s.id = %(id)s
