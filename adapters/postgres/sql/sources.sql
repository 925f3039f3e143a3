-- save_encrypted_credentials --
UPDATE sources SET credentials = %(encrypted)s WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- load_encrypted_credentials --
SELECT credentials FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- summarise_contents --
-- Products are counted in the index alone, including discontinued ones: reading their rows took twenty times as long.
SELECT requested.source, counted.products, matched.sampled, matched.matched, offered.sampled, offered.out_of_stock
FROM unnest(%(sources)s::text[]) AS requested (source) CROSS JOIN LATERAL (
    SELECT count(*) AS products FROM (
        SELECT p.id FROM products AS p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = requested.source
        ORDER BY p.id DESC LIMIT %(max_products)s
    ) AS counted_product
) AS counted CROSS JOIN LATERAL (
    SELECT count(*) AS sampled, count(*) FILTER (WHERE s.merged_into IS NOT NULL OR EXISTS (
        SELECT FROM products AS m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.merged_into = s.id)) AS matched
    FROM (
        SELECT p.id, p.merged_into FROM products AS p
        WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = requested.source ORDER BY p.id DESC LIMIT %(max_sampled)s
    ) AS s
) AS matched CROSS JOIN LATERAL (
    SELECT count(*) AS sampled, count(*) FILTER (WHERE s.availability = 'out_of_stock') AS out_of_stock FROM (
        SELECT o.availability, o.withdrawn_at FROM offers AS o
        WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.source = requested.source ORDER BY o.id DESC LIMIT %(max_sampled)s
    ) AS s WHERE s.withdrawn_at IS NULL
) AS offered

-- sample_documents --
SELECT sampled.source, d.body FROM unnest(%(sources)s::text[]) AS requested (source) CROSS JOIN LATERAL (
    SELECT p.source, coalesce(p.merged_into, p.id) AS id FROM products AS p
    WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = requested.source ORDER BY p.id DESC LIMIT %(max_products)s
) AS sampled
JOIN product_documents AS d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = sampled.id

-- list_due --
SELECT at, org, livemode, id, stream FROM (
    SELECT c.org, c.livemode, c.id, 'catalogue' AS stream, c.next_pull AS at FROM here.sources AS c
    WHERE c.next_pull <= %(now)s AND c.status IN ('active', 'degraded')
    UNION ALL
    SELECT s.org, s.livemode, s.id, 'stock', s.next_stock_pull FROM here.sources AS s
    WHERE s.next_stock_pull <= %(now)s AND s.status IN ('active', 'degraded')
) due ORDER BY at LIMIT %(limit)s

-- find_next_due --
SELECT min(at) FROM (
    SELECT min(c.next_pull) AS at FROM here.sources AS c
    WHERE c.next_pull IS NOT NULL AND c.status IN ('active', 'degraded')
    UNION ALL
    SELECT min(s.next_stock_pull) FROM here.sources AS s
    WHERE s.next_stock_pull IS NOT NULL AND s.status IN ('active', 'degraded')
) next

-- list_followers --
-- Omits sources whose newest run is open, failed less than five minutes ago, or ended less than five times its duration ago
-- (five minutes at most).
SELECT s.org, s.livemode, s.id, licence.org, licence.view, newest.etag FROM here.sources AS s
LEFT JOIN LATERAL (
    SELECT l.org, l.view FROM licences AS l
    WHERE l.livemode = s.livemode AND l.catalogue = s.config ->> 'catalogue' AND l.holder IN (s.org, '*') ORDER BY l.holder DESC LIMIT 1
) AS licence ON true
LEFT JOIN LATERAL (
    SELECT r.status, r.started_at, r.finished_at, r.fetched ->> 'etag' AS etag FROM here.runs AS r
    WHERE r.org = s.org AND r.livemode = s.livemode AND r.source = s.id ORDER BY r.id DESC LIMIT 1
) AS newest ON true
WHERE s.connector = 'network' AND s.status IN ('active', 'degraded') AND (
    newest.status IS NULL
    OR newest.status = 'succeeded' AND %(now)s >= newest.finished_at + least(5 * (newest.finished_at - newest.started_at), interval '5 minutes')
    OR newest.status IN ('failed', 'cancelled', 'needs_mapping') AND newest.finished_at < %(now)s - interval '5 minutes')

-- count --
SELECT count(*) FROM sources
WHERE org = %(org)s AND livemode = %(livemode)s AND status <> %(disabled)s AND connector <> %(corrections)s

-- lock_by_digest --
SELECT {mapping}
FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND digest = ANY(%(digests)s)
ORDER BY id FOR UPDATE

-- list_confirmed --
SELECT {learned_columns}
FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND status = %(confirmed)s
    AND source = %(source)s --? own
    AND source <> %(source)s --? others
ORDER BY confirmed_at DESC, id DESC LIMIT %(max_mappings)s

-- prune --
DELETE FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND status = %(proposed)s
    AND id < (
        SELECT min(id) FROM (
            SELECT id FROM mappings WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s
            ORDER BY id DESC LIMIT %(max_mappings)s
        ) newest
    )

-- find_recipient --
SELECT s.org, s.livemode, s.id FROM here.sources AS s WHERE s.inbound_address = %(address)s
