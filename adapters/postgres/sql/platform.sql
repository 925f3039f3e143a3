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
