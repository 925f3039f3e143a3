-- Statuses are parameters, except those of partial indexes (webhook_endpoints_shard, webhook_deliveries_open): the generic plan of
-- a prepared statement does not know parameters' values and could not use the index.

-- list_subscribers --
SELECT {endpoint}, e.org, e.livemode, e.secret, e.previous_secret, e.checkpoint, e.network_epoch, e.network_checkpoint,
    'fat_webhooks' = ANY(p.features)
FROM here.webhook_endpoints AS e JOIN organisations o ON o.id = e.org JOIN plans p ON p.code = o.plan
WHERE e.status = 'enabled' AND e.shard = ANY(%(shards)s)
    AND NOT EXISTS (SELECT FROM here.usage_thresholds AS t WHERE t.org = e.org AND t.livemode = e.livemode AND t.held_back)

-- get_subscriber --
SELECT {endpoint}, e.org, e.livemode, e.secret, e.previous_secret, e.checkpoint, e.network_epoch, e.network_checkpoint,
    'fat_webhooks' = ANY(p.features)
FROM webhook_endpoints e JOIN organisations o ON o.id = e.org JOIN plans p ON p.code = o.plan
WHERE e.status = %(enabled)s AND e.org = %(org)s AND e.livemode = %(livemode)s AND e.id = %(endpoint)s
    AND NOT EXISTS (SELECT FROM usage_thresholds t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.held_back)

-- list_open --
SELECT id, endpoint, event, type, subject, positions, network, status, created_at, tries, next_attempt_at,
    jsonb_array_length(attempts)
FROM webhook_deliveries
WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s AND status IN ('pending', 'sending')
ORDER BY positions[array_upper(positions, 1)], id

-- list_known_positions --
SELECT network, unnest(positions) FROM (
    SELECT network, positions FROM webhook_deliveries
    WHERE org = %(org)s AND livemode = %(livemode)s AND endpoint = %(endpoint)s
    ORDER BY id DESC LIMIT 20000
) latest WHERE positions[array_upper(positions, 1)] > CASE WHEN network THEN %(others)s::bigint ELSE %(own)s::bigint END

-- get_body --
SELECT body FROM webhook_deliveries WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- get_trace_context --
SELECT trace FROM runs WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- filter_by_categories --
SELECT DISTINCT product FROM product_terms
WHERE org = %(org)s AND livemode = %(livemode)s AND term = ANY(%(terms)s) AND product = ANY(%(products)s)

-- list_ended_rotations --
SELECT e.rotation_expires_at, e.org, e.livemode, e.id FROM here.webhook_endpoints AS e
WHERE e.rotation_expires_at <= %(now)s ORDER BY e.rotation_expires_at LIMIT %(limit)s

-- create_staging_table --
CREATE TEMPORARY TABLE IF NOT EXISTS reported_deliveries (org text, livemode boolean, id text, endpoint text, event text,
    type text, subject text, positions bigint[], network boolean, status text, body bytea, attempts jsonb,
    attempts_made integer, tries integer, next_attempt_at timestamptz, created_at timestamptz, completed_at timestamptz) ON COMMIT DELETE ROWS

-- copy_deliveries --
COPY reported_deliveries (org, livemode, {reported}, attempts_made) FROM STDIN (FORMAT binary)

-- lock_endpoints --
SELECT id, status FROM webhook_endpoints
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE

-- add_usage --
-- Executed before the deliveries are recorded, so that a delivery that is reported again counts once. Only the partitions between the
-- first and the last ID are read.
INSERT INTO usage_entries AS e (org, livemode, meter, subject, day, amount)
SELECT %(org)s, %(livemode)s, %(meter)s, %(subject)s, %(day)s, successes.amount FROM (
    SELECT cardinality(%(ids)s::text[]) - count(*) AS amount FROM webhook_deliveries
    WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s::text[]) AND status = 'succeeded'
        AND id >= %(first)s AND id <= %(last)s
) AS successes WHERE successes.amount > 0
ON CONFLICT (org, livemode, meter, subject, day) DO UPDATE SET amount = e.amount + excluded.amount

-- record_deliveries --
-- No join with tables of tenants and no parameters after ON CONFLICT, so that the node of both tables executes it alone.
INSERT INTO webhook_deliveries AS d (org, livemode, id, endpoint, event, type, subject, positions, network, status, body,
    attempts,
    tries, next_attempt_at, created_at, completed_at)
SELECT %(org)s, %(livemode)s, n.id, n.endpoint, n.event, n.type, n.subject, n.positions, n.network,
    CASE WHEN n.endpoint = ANY(%(disabled)s) AND n.status IN ('pending', 'sending') THEN 'failed' ELSE n.status END, n.body,
    n.attempts, n.tries, CASE WHEN n.endpoint <> ALL(%(disabled)s) THEN n.next_attempt_at END, n.created_at,
    CASE WHEN n.endpoint = ANY(%(disabled)s) THEN coalesce(n.completed_at, %(now)s) ELSE n.completed_at END
FROM reported_deliveries n WHERE n.org = %(org)s AND n.livemode = %(livemode)s AND n.endpoint = ANY(%(existing)s)
ON CONFLICT (org, livemode, id) DO UPDATE SET event = excluded.event, type = excluded.type,
    positions = excluded.positions, status = excluded.status, body = coalesce(excluded.body, d.body),
    attempts = CASE WHEN jsonb_array_length(d.attempts) + jsonb_array_length(excluded.attempts) <= (
        SELECT n.attempts_made FROM reported_deliveries n WHERE n.org = d.org AND n.livemode = d.livemode AND n.id = d.id
    ) THEN d.attempts || excluded.attempts ELSE d.attempts END,
    tries = excluded.tries, next_attempt_at = excluded.next_attempt_at, completed_at = excluded.completed_at
WHERE d.status IN ('pending', 'sending') OR excluded.status = 'succeeded'

-- update_endpoints --
-- The network checkpoint of an endpoint that was created while the network log was unreachable is OPEN_END until its end is known.
UPDATE webhook_endpoints e SET checkpoint = greatest(e.checkpoint, n.checkpoint),
    network_epoch = CASE WHEN n.network_epoch = 0 THEN e.network_epoch ELSE n.network_epoch END,
    network_checkpoint = CASE WHEN n.network_epoch IN (0, e.network_epoch) AND e.network_checkpoint < 1::bigint << 62
        THEN greatest(e.network_checkpoint, n.network_checkpoint) ELSE n.network_checkpoint END,
    last_success_at = coalesce(n.succeeded, e.last_success_at),
    failing_since = CASE WHEN n.health THEN n.failing ELSE e.failing_since END
FROM unnest(%(ids)s::text[], %(checkpoint)s::bigint[], %(network_epoch)s::integer[], %(network_checkpoint)s::bigint[],
    %(succeeded)s::timestamptz[], %(health)s::boolean[], %(failing)s::timestamptz[])
    AS n (id, checkpoint, network_epoch, network_checkpoint, succeeded, health, failing)
WHERE e.org = %(org)s AND e.livemode = %(livemode)s AND e.id = n.id
