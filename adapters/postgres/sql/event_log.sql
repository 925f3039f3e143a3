-- reserve_positions --
-- Assigns positions up to the returned one. The row stays locked until the transaction ends, so that positions are in the
-- order of commits. Times rise with positions even if clocks go back, because they determine the partitions after a
-- position.
INSERT INTO event_logs AS l (org, livemode, epoch, last, time, publishes)
VALUES (%(org)s, %(livemode)s, %(epoch)s, %(count)s, least(greatest(%(now)s, now() - interval '1 hour'), now() + interval '1 hour'),
    %(publishes)s)
ON CONFLICT (org, livemode) DO UPDATE SET last = l.last + excluded.last,
    time = greatest(l.time, excluded.time),
    publishes = l.publishes OR excluded.publishes
RETURNING last, time

-- insert_events --
-- ON CONFLICT prevents the execution as COPY, which would not check policies (docs/cluster.md); there are no conflicts.
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, owner, body)
SELECT %(before)s + n, %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, %(time)s, network, owner, body
FROM unnest(%(ids)s::text[], %(types)s::text[], %(subjects)s::text[], %(products)s::text[], %(sources)s::text[],
    %(catalogues)s::text[], %(versions)s::integer[], %(networks)s::boolean[], %(owners)s::text[], %(bodies)s::bytea[])
    WITH ORDINALITY AS event (id, type, subject, product, source, catalogue, version, network, owner, body, n)
ON CONFLICT DO NOTHING

-- create_staging_table --
CREATE TEMPORARY TABLE IF NOT EXISTS new_events (n bigint, id text, type text, subject text, product text, source text,
    catalogue text, version integer, network boolean, owner text, body bytea) ON COMMIT DELETE ROWS

-- copy_events --
COPY new_events (n, id, type, subject, product, source, catalogue, version, network, owner, body) FROM STDIN (FORMAT binary)

-- insert_staged_events --
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, owner, body)
SELECT %(before)s + n, %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, %(time)s, network, owner, body
FROM new_events
ON CONFLICT DO NOTHING

-- add_terms --
INSERT INTO event_log_terms (org, livemode, term, block)
SELECT %(org)s, %(livemode)s, term, block
FROM unnest(%(terms)s::text[]) AS term, generate_series(%(first)s::bigint, %(last)s::bigint) AS block
ON CONFLICT (org, livemode, term, block) DO NOTHING

-- notify --
SELECT pg_notify('joinery_events', %(payload)s)

-- get_high_watermark --
SELECT last FROM event_logs WHERE org = %(org)s AND livemode = %(livemode)s

-- list_bounds --
SELECT l.org, l.livemode, l.epoch, l.last, l.time, l.began, l.low
FROM unnest(%(orgs)s::text[], %(livemodes)s::boolean[]) AS requested (org, livemode)
JOIN here.event_logs AS l ON l.org = requested.org AND l.livemode = requested.livemode

-- get_bounds --
SELECT epoch, last, time, began, low FROM event_logs WHERE org = %(org)s AND livemode = %(livemode)s

-- begin_epoch --
UPDATE event_logs SET epoch = %(epoch)s, began = CASE WHEN began = 0 THEN last ELSE least(began, last) END
WHERE org = %(org)s AND livemode = %(livemode)s AND epoch = %(after)s AND last < %(position)s

-- filter_licensed --
SELECT requested.org, requested.livemode
FROM unnest(%(orgs)s::text[], %(livemodes)s::boolean[]) AS requested (org, livemode)
WHERE EXISTS (SELECT FROM licences l WHERE l.holder = requested.org AND l.livemode = requested.livemode)
    OR EXISTS (SELECT FROM licences l WHERE l.holder = '*' AND l.livemode = requested.livemode AND l.org <> requested.org)

-- read_page --
-- `has_same_event` is whether the log still has the event at the start position; for an empty page, `has_event_at` reads it. A
-- body larger than `max_body_bytes` is not read; the page is then read again by `read_within_bytes`.
SELECT (SELECT EXISTS (SELECT FROM events WHERE org = %(org)s AND livemode = %(livemode)s
        AND position = %(after)s AND time = %(at)s)) AS has_same_event,
    e.position, e.id, e.type, e.subject, e.product, e.source, e.catalogue, e.version, e.time, e.body
FROM ({selection}) AS e ORDER BY e.position

-- has_event_at --
SELECT EXISTS (SELECT FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = %(after)s AND time = %(at)s)

-- read_bodies --
-- Only bodies: joining them in the database would double the cost, and each further column would add a tenth (measured).
SELECT e.position, e.body FROM ({selection}) AS e ORDER BY e.position

-- check_page_boundaries --
SELECT EXISTS (SELECT FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = %(after)s AND time = %(at)s),
    (SELECT time FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = %(last)s)

-- read_envelopes --
SELECT true, e.position, e.id, e.type, e.subject, e.product, e.source, e.catalogue, e.version, e.time, e.body
FROM ({selection}) AS e

-- select_events --
-- The events of a log after a position, or up to one, that match the filter. Only one bound, because with two the planner
-- expects so few rows that it reads and sorts the whole log.
SELECT position, id, type, subject, product, source, catalogue, version, time,
    CASE WHEN octet_length(body) <= %(max_body_bytes)s THEN body END AS body
FROM events WHERE org = %(org)s AND livemode = %(livemode)s
    AND position > %(after)s --? after
    AND position <= %(up_to)s --? up_to
    AND time >= %(since)s --? since
    AND type <> ALL(%(hidden)s) --? hidden
    AND subject = %(subject)s --? subject
    AND product = ANY(%(products)s) --? products
    AND position = ANY(%(positions)s) --? positions
ORDER BY position ASC LIMIT {limit} --? forwards
ORDER BY position DESC LIMIT {limit} --? backwards

-- count_price_changes --
-- A quotation mark within a text of the body is escaped, so that the path is found in the names of changed fields only.
SELECT source, count(*) FROM events
WHERE org = %(org)s AND livemode = %(livemode)s AND position > %(after)s AND time >= %(since)s AND type = 'offer.changed'
    AND source IS NOT NULL AND (position('"path":"price"'::bytea IN body) > 0 OR position('"path":"cost"'::bytea IN body) > 0
        OR position('"path":"msrp"'::bytea IN body) > 0 OR position('"path":"map"'::bytea IN body) > 0)
GROUP BY source

-- list_blocks --
SELECT DISTINCT block FROM event_log_terms WHERE org = %(org)s AND livemode = %(livemode)s AND term = ANY(%(terms)s)
    AND block >= %(block)s --? forwards
    AND block <= %(block)s --? backwards
ORDER BY block ASC LIMIT {limit} --? forwards
ORDER BY block DESC LIMIT {limit} --? backwards

-- select_events_in_blocks --
-- The events in some blocks of a log that match the filter. Each block is scanned from its start, because for a range the
-- planner expects so many rows that it reads the whole log for each block.
SELECT event.position, event.id, event.type, event.subject, event.product, event.source, event.catalogue, event.version,
    event.time, CASE WHEN octet_length(event.body) <= %(max_body_bytes)s THEN event.body END AS body
FROM unnest(%(blocks)s::bigint[]) AS selected (block) CROSS JOIN LATERAL (
    SELECT * FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position > selected.block * {block}
        AND time >= %(since)s --? since
    ORDER BY position LIMIT {block}
) AS event
WHERE event.position <= selected.block * {block} + {block}
    AND event.position > %(after)s --? after
    AND event.position <= %(up_to)s --? up_to
    AND event.type <> ALL(%(hidden)s) --? hidden
    AND event.type = ANY(%(types)s) --? types
    AND event.catalogue = ANY(%(catalogues)s) --? catalogues
ORDER BY event.position ASC LIMIT {limit} --? forwards
ORDER BY event.position DESC LIMIT {limit} --? backwards

-- read_within_bytes --
-- Bodies are stored out of line, so their length is known without reading them, and those beyond the byte limit are not read.
SELECT true, position, id, type, subject, product, source, catalogue, version, time, body FROM (
    SELECT numbered.*, sum(octet_length(body)) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (
        SELECT selection.*, row_number() OVER (ORDER BY position * %(direction)s::integer) AS number FROM ({selection}) AS selection
    ) AS numbered
) AS sized WHERE before < %(max_page_bytes)s ORDER BY number

-- read_network_window --
-- The events of the network log that the reader's licences permit, with the permitted field groups. A limited number is
-- scanned; `last_position` is the last scanned position, `last_time` its time, and `scanned_count` the number.
SELECT scan.has_same_event, scan.last_position, scan.last_time, scan.scanned_count, e.position, e.id, e.type, e.subject,
    e.product, e.source, e.catalogue, e.version, e.time, e.body, e.groups
FROM (
    SELECT count(*) AS scanned_count,
        EXISTS (SELECT FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = %(after)s AND time = %(at)s) AS has_same_event, --? forwards
        max(scanned.position) AS last_position, --? forwards
        (SELECT time FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = max(scanned.position) --? forwards
            AND time >= %(since)s --? forwards since
        ) AS last_time --? forwards
        true AS has_same_event, min(scanned.position) AS last_position, NULL::timestamptz AS last_time --? backwards
    FROM (SELECT position FROM events WHERE org = %(org)s AND livemode = %(livemode)s
        AND position > %(after)s --? after
        AND position <= %(up_to)s --? up_to
        AND position = ANY(%(positions)s) --? positions
        AND time >= %(since)s --? since
    ORDER BY position ASC LIMIT {window} --? forwards
    ORDER BY position DESC LIMIT {window} --? backwards
    ) AS scanned
) AS scan LEFT JOIN (
    SELECT event.position, event.id, event.type, event.subject, event.product, event.source, event.catalogue, event.version,
        event.time, CASE WHEN octet_length(event.body) <= %(max_body_bytes)s THEN event.body END AS body, permission.groups
    FROM (
        SELECT * FROM events WHERE org = %(org)s AND livemode = %(livemode)s
            AND position > %(after)s --? after
            AND position <= %(up_to)s --? up_to
            AND position = ANY(%(positions)s) --? positions
            AND time >= %(since)s --? since
        ORDER BY position ASC LIMIT {window} --? forwards
        ORDER BY position DESC LIMIT {window} --? backwards
    ) AS event CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(DISTINCT g.name) FILTER (WHERE g.name IS NOT NULL), '{}') AS groups
        FROM licences l LEFT JOIN LATERAL unnest(l.groups) AS g (name) ON true
        WHERE l.org = event.owner AND l.livemode = %(livemode)s AND l.catalogue = event.catalogue
            AND l.holder = ANY(%(holders)s) AND l.org <> %(holder)s
        HAVING count(*) > 0
    ) AS permission
    WHERE true
        AND event.type <> ALL(%(hidden)s) --? hidden
        AND event.type = ANY(%(types)s) --? types
        AND event.catalogue = ANY(%(catalogues)s) --? catalogues
    ORDER BY event.position ASC LIMIT {limit} --? forwards
    ORDER BY event.position DESC LIMIT {limit} --? backwards
) AS e ON true
ORDER BY e.position ASC --? forwards
ORDER BY e.position DESC --? backwards

-- list_permissions --
SELECT e.position, e.owner, l.holder, l.groups FROM events e
JOIN licences l ON l.org = e.owner AND l.livemode = %(livemode)s AND l.catalogue = e.catalogue AND l.holder = ANY(%(holders)s)
WHERE e.org = %(org)s AND e.livemode = %(livemode)s AND e.position > %(after)s AND e.position <= %(up_to)s

-- get_network_body --
SELECT body FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position = %(position)s

-- get_low_watermark --
SELECT low FROM event_logs WHERE org = %(org)s AND livemode = %(livemode)s

-- list_publishers --
SELECT l.org, l.livemode, l.epoch, l.last, l.time, l.began, l.low FROM here.event_logs AS l WHERE l.publishes

-- list_publishers_among --
SELECT l.org, l.livemode, l.epoch, l.last, l.time, l.began, l.low
FROM unnest(%(orgs)s::text[], %(livemodes)s::boolean[]) AS requested (org, livemode)
JOIN here.event_logs AS l ON l.org = requested.org AND l.livemode = requested.livemode AND l.publishes

-- read_published --
SELECT position, id, type, subject, product, source, catalogue, version, time, body FROM events
WHERE org = %(org)s AND livemode = %(livemode)s AND network AND position > %(after)s
    AND time >= %(since)s --? since
ORDER BY position LIMIT %(limit)s

-- load_checkpoints --
SELECT owner, epoch, position FROM network_checkpoints WHERE org = %(org)s AND livemode = %(livemode)s

-- add_checkpoints --
INSERT INTO network_checkpoints (org, livemode, owner, epoch, position)
SELECT %(org)s, %(livemode)s, owner, epoch, position
FROM unnest(%(owners)s::text[], %(epochs)s::integer[], %(positions)s::bigint[]) AS added (owner, epoch, position)
ON CONFLICT (org, livemode, owner) DO NOTHING RETURNING owner

-- advance_checkpoints --
UPDATE network_checkpoints AS c SET epoch = advanced.epoch, position = advanced.position
FROM unnest(%(owners)s::text[], %(epochs)s::integer[], %(positions)s::bigint[], %(previous_epochs)s::integer[],
    %(previous_positions)s::bigint[])
    AS advanced (owner, epoch, position, previous_epoch, previous_position)
WHERE c.org = %(org)s AND c.livemode = %(livemode)s AND c.owner = advanced.owner
    AND c.epoch = advanced.previous_epoch AND c.position = advanced.previous_position
RETURNING c.owner

