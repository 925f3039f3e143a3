-- list --
SELECT id, method, path, route, query, status, error_code, duration_ms, actor, via, api_version, idempotency_key, ip,
       user_agent, created_at, position
FROM request_logs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = %(id)s --? id
    AND position < %(page_key)s --? after
    AND position > %(page_key)s --? before
ORDER BY position DESC LIMIT {limit} --? forwards
ORDER BY position ASC LIMIT {limit} --? backwards

-- write --
INSERT INTO request_logs (org, livemode, position, id, method, path, route, query, status, error_code, duration_ms, actor,
    via, api_version, idempotency_key, ip, user_agent, created_at)
SELECT org, livemode, position, id, method, path, route, query, status, error_code, duration_ms, actor, via, api_version,
    idempotency_key, ip, user_agent, created_at
FROM json_to_recordset(%(logs)s::json) AS log (org text, livemode boolean, position text, id text, method text, path text,
    route text, query text, status smallint, error_code text, duration_ms integer, actor jsonb, via text, api_version text,
    idempotency_key text, ip text, user_agent text, created_at timestamptz)
ON CONFLICT DO NOTHING
