-- lock --
SELECT pg_advisory_xact_lock_shared(4611686018427387904 + (SELECT last_value - (NOT is_called)::integer FROM event_position))

-- insert --
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, body)
SELECT nextval('event_position'), %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, 
    least(greatest(%(now)s, now() - interval '1 hour'), now() + interval '1 hour'), network, body
FROM unnest(%(ids)s::text[], %(types)s::text[], %(subjects)s::text[], %(products)s::text[], %(sources)s::text[],
    %(catalogues)s::text[], %(versions)s::integer[], %(networks)s::boolean[], %(bodies)s::bytea[])
    AS event (id, type, subject, product, source, catalogue, version, network, body)

-- staging --
CREATE TEMPORARY TABLE IF NOT EXISTS new_events (n integer, id text, type text, subject text, product text, source text,
    catalogue text, version integer, network boolean, body bytea) ON COMMIT DELETE ROWS

-- copy --
COPY new_events (n, id, type, subject, product, source, catalogue, version, network, body) FROM STDIN (FORMAT binary)

-- insert_staged --
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, body)
SELECT nextval('event_position'), %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, 
    least(greatest(%(now)s, now() - interval '1 hour'), now() + interval '1 hour'), network, body
FROM (SELECT * FROM new_events ORDER BY n) AS event

-- notify --
SELECT pg_notify('joinery_events', %(payload)s)

-- last_position --
SELECT last_value - (NOT is_called)::integer, (SELECT position FROM event_low_watermark), now() - interval '1 day'
FROM event_position

-- oldest_writer --
SELECT min((classid::bigint << 32 | objid::bigint) - 4611686018427387904) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ShareLock' AND classid::bigint >= 1073741824
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- licences --
SELECT holder, org, livemode, catalogue, groups FROM licences
WHERE holder = ANY(%(holders)s) OR holder = '*'
ORDER BY org, catalogue, holder

-- tenants_with_new_events --
SELECT own.org, own.livemode
FROM unnest(%(orgs)s::text[], %(livemodes)s::boolean[], %(positions)s::bigint[]) AS own (org, livemode, position)
WHERE EXISTS (SELECT FROM events e WHERE e.org = own.org AND e.livemode = own.livemode AND e.position > own.position
    AND e.position <= %(up_to)s AND (%(since)s::timestamptz IS NULL OR e.time >= %(since)s))

-- page --
-- A body that is larger than its share stays where it is; where any is, the page is asked for again by weight.
SELECT position, id, type, subject, product, source, catalogue, version, time,
    CASE WHEN octet_length(body) <= %(share)s THEN body END FROM events
WHERE org = %(org)s AND livemode = %(livemode)s

-- weighed --
-- Bodies lie beside their rows: the length is known without reading them, and those beyond the weight are never read.
SELECT position, id, type, subject, product, source, catalogue, version, time, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY nth ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (
        SELECT *, row_number() OVER (ORDER BY position * %(direction)s::integer) AS nth FROM (
            SELECT * FROM events WHERE org = %(org)s AND livemode = %(livemode)s

-- positions --
SELECT position FROM events WHERE org = %(org)s AND livemode = %(livemode)s

-- licensed --
SELECT event.position, event.id, event.type, event.subject, event.product, event.source, event.catalogue, event.version,
    event.time, CASE WHEN octet_length(event.body) <= %(share)s THEN event.body END
FROM unnest(%(owners)s::text[], %(licensed)s::text[]) AS licence (owner, its_catalogue)
CROSS JOIN LATERAL (SELECT * FROM events
    WHERE network AND org = licence.owner AND livemode = %(livemode)s AND catalogue = licence.its_catalogue

-- licensed_stride --
SELECT min(stride.max)
FROM unnest(%(owners)s::text[], %(licensed)s::text[]) AS licence (owner, its_catalogue)
CROSS JOIN LATERAL (SELECT max(position) FROM (SELECT position FROM events
    WHERE network AND org = licence.owner AND livemode = %(livemode)s AND catalogue = licence.its_catalogue

-- weighed_licensed --
SELECT position, id, type, subject, product, source, catalogue, version, time, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY nth ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (
        SELECT *, row_number() OVER (ORDER BY position * %(direction)s::integer) AS nth FROM (
            SELECT event.* FROM unnest(%(owners)s::text[], %(licensed)s::text[]) AS licence (owner, its_catalogue)
            CROSS JOIN LATERAL (SELECT * FROM events
                WHERE network AND org = licence.owner AND livemode = %(livemode)s AND catalogue = licence.its_catalogue

-- splice --
SELECT position, body FROM events WHERE org = %(org)s AND livemode = %(livemode)s
