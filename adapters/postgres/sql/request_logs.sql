-- get_log --
SELECT id, method, path, route, query, status, error_code, duration_ms, actor, via, api_version, idempotency_key, ip,
       user_agent, created_at, position
FROM request_logs WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s ORDER BY position DESC LIMIT 1

-- list_logs --
-- Returns the matches in one time span; if they are not a full page, also the number of scanned rows and the lowest and the
-- highest scanned position. Rows are scanned in order until the page is full.
WITH scanned AS MATERIALIZED (
    SELECT id, method, path, route, query, status, error_code, duration_ms, actor, via, api_version, idempotency_key, ip,
        user_agent, created_at, position
    FROM request_logs
    WHERE org = %(org)s AND livemode = %(livemode)s AND created_at >= %(low)s AND created_at < %(high)s
        AND position < %(page_key)s --? after
        AND position > %(page_key)s --? before
        AND status >= 400 --? failed
    ORDER BY position DESC LIMIT {limit} --? forwards page_limit
    ORDER BY position ASC LIMIT {limit} --? backwards page_limit
    ORDER BY position DESC LIMIT {scan_limit} --? forwards scan_limit
    ORDER BY position ASC LIMIT {scan_limit} --? backwards scan_limit
), matches AS MATERIALIZED (
    SELECT * FROM scanned WHERE true
        AND status >= %(min_status)s AND status <= %(max_status)s --? status
        AND method = %(method)s --? method
        AND route = %(route)s --? route
        AND actor ->> 'id' = %(actor)s --? actor
        AND error_code = %(error_code)s --? error_code
    LIMIT {limit}
), scan AS (
    SELECT CASE WHEN (SELECT count(*) FROM matches) < {limit} THEN (SELECT count(*) FROM scanned) ELSE 0 END AS number,
        CASE WHEN (SELECT count(*) FROM matches) < {limit} THEN (SELECT min(position) FROM scanned) END AS first,
        CASE WHEN (SELECT count(*) FROM matches) < {limit} THEN (SELECT max(position) FROM scanned) END AS last
)
SELECT scan.number, scan.first, scan.last, matches.* FROM scan LEFT JOIN matches ON true

-- insert_logs --
INSERT INTO request_logs (org, livemode, position, id, method, path, route, query, status, error_code, duration_ms, actor,
    via, api_version, idempotency_key, ip, user_agent, created_at)
SELECT org, livemode, position, id, method, path, route, query, status, error_code, duration_ms, actor, via, api_version,
    idempotency_key, ip, user_agent, created_at
FROM json_to_recordset(%(logs)s::json) AS log (org text, livemode boolean, position text, id text, method text, path text,
    route text, query text, status smallint, error_code text, duration_ms integer, actor jsonb, via text, api_version text,
    idempotency_key text, ip text, user_agent text, created_at timestamptz)
ON CONFLICT DO NOTHING

-- record_key_uses --
INSERT INTO key_uses (org, livemode, key, used_at)
-- in a fixed order, to avoid deadlocks
SELECT org, livemode, key, used_at
FROM json_to_recordset(%(uses)s::json) AS use (org text, livemode boolean, key text, used_at timestamptz)
ORDER BY org, livemode, key
ON CONFLICT (org, livemode, key) DO UPDATE SET used_at = greatest(key_uses.used_at, excluded.used_at)
