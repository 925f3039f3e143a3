-- lock_waiting --
SELECT {proposal} FROM proposals
WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'proposed' AND (subject = %(subject)s OR source = %(subject)s)
ORDER BY id FOR UPDATE

-- lock_expired --
SELECT {proposal} FROM proposals
WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'proposed' AND expires_at <= %(now)s
ORDER BY id FOR UPDATE

-- list_latest --
SELECT DISTINCT ON (subject) {proposal} FROM proposals
WHERE org = %(org)s AND livemode = %(livemode)s AND agent = %(agent)s
    AND subject = ANY(ARRAY(SELECT jsonb_array_elements_text(%(subjects)s)))
ORDER BY subject, id DESC

-- count_by_status --
SELECT agent, status, count(*) FROM proposals WHERE org = %(org)s AND livemode = %(livemode)s GROUP BY agent, status

-- record_run --
INSERT INTO agents (org, livemode, id, kind, autonomy, daily_budget_micros, last_run_at, version, created_at, updated_at)
VALUES (
    %(org)s, %(livemode)s, %(id)s, %(kind)s, %(autonomy)s, %(daily_budget_micros)s, %(now)s, %(version)s, %(now)s, %(now)s
)
ON CONFLICT (org, livemode, id) DO UPDATE SET last_run_at = excluded.last_run_at

-- list_tenants_with_expired --
SELECT DISTINCT p.org, p.livemode FROM here.proposals AS p WHERE p.status = 'proposed' AND p.expires_at <= %(now)s LIMIT %(limit)s

-- list_orgs_with_decided --
SELECT DISTINCT p.org FROM here.proposals AS p WHERE p.decided_at < %(before)s

-- delete_decided --
DELETE FROM proposals WHERE org = ANY(%(orgs)s) AND decided_at < %(before)s
