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
