-- record --
INSERT INTO platform_checks (component, day, passed, failed, state, checked_at)
VALUES (%(component)s, %(day)s, %(passed)s, %(failed)s, %(state)s, %(at)s)
ON CONFLICT (component, day) DO UPDATE
SET passed = platform_checks.passed + excluded.passed, failed = platform_checks.failed + excluded.failed,
    state = excluded.state, checked_at = excluded.checked_at

-- latest --
SELECT DISTINCT ON (component) component, checked_at, state FROM platform_checks ORDER BY component, day DESC

-- days --
SELECT component, day, passed, passed + failed FROM platform_checks WHERE day >= %(since)s ORDER BY day, component

-- forget --
DELETE FROM platform_checks WHERE day < %(day)s

-- open_incidents --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents
WHERE closed_at IS NULL ORDER BY id DESC

-- incident --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents WHERE id = %(id)s

-- incidents --
SELECT id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at FROM platform_incidents
WHERE id < %(before)s ORDER BY id DESC LIMIT %(limit)s

-- save_incident --
INSERT INTO platform_incidents (id, component, state, title, opened_by, updates, opened_at, updated_at, closed_at)
VALUES (%(id)s, %(component)s, %(state)s, %(title)s, %(opened_by)s, %(updates)s, %(opened_at)s, %(updated_at)s, %(closed_at)s)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, updates = excluded.updates, updated_at = excluded.updated_at,
    closed_at = excluded.closed_at
WHERE jsonb_array_length(platform_incidents.updates) = %(known)s

-- beat --
INSERT INTO platform_instances (instance, role, answered, failed, seen_at)
VALUES (%(instance)s, %(role)s, %(answered)s, %(failed)s, now())
ON CONFLICT (instance, role) DO UPDATE
SET answered = excluded.answered, failed = excluded.failed, seen_at = excluded.seen_at

-- leave --
DELETE FROM platform_instances WHERE instance = %(instance)s OR seen_at < now() - interval '1 hour'

-- alive --
SELECT instance, role, answered, failed FROM platform_instances WHERE seen_at > now() - %(alive)s::interval

-- figures --
SELECT
    (SELECT count(*) FROM outgoing_mail WHERE next_at IS NOT NULL AND sent_at IS NULL),
    (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float FROM outgoing_mail
        WHERE next_at IS NOT NULL AND sent_at IS NULL),
    (SELECT extract(epoch FROM now() - finished_at)::float FROM platform_backups)

-- figures_of_tenants --
WITH scheduled AS (
    SELECT s.created_at, greatest(s.catalogue_at, s.stock_at) AS succeeded_at, stream.at, stream.minutes
        * CASE WHEN (s.schedule ->> 'adaptive')::boolean
            THEN greatest(1, coalesce((s.interval_factor ->> stream.name)::float, 1)) ELSE 1 END AS minutes
    FROM here.sources AS s CROSS JOIN LATERAL (VALUES
        ('catalogue', s.catalogue_at, (s.schedule ->> 'interval_minutes')::float),
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
        SELECT created_at FROM here.webhook_deliveries AS d WHERE status IN ('pending', 'sending') LIMIT %(counted)s
    ) AS waiting
) AS open
