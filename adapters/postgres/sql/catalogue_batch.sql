-- Plans must not depend on statistics: tables are not analysed at a source's first import, so PostgreSQL estimates one row per
-- organisation and would scan a staged table once per stored row. Hence lookups use arrays of keys, writes use ON CONFLICT
-- instead of joins, and the comparison is a full join, which is never a nested loop.

-- create_staging_tables --
CREATE TEMPORARY TABLE IF NOT EXISTS new_fingerprints (slot integer, key text COLLATE "C", fingerprint bytea,
    product text COLLATE "C", problems integer) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_products (id text COLLATE "C", catalogue text, key text COLLATE "C", status text,
    version integer, visibility text, brand_key text COLLATE "C", data bytea, created_at timestamptz,
    stated_category text COLLATE "C", stated_at timestamptz) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_variants (id text COLLATE "C", product text COLLATE "C", key text COLLATE "C",
    sku_code text COLLATE "C", mpn_code text COLLATE "C", gtin_key text COLLATE "C", status text, version integer,
    data bytea) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_offers (id text COLLATE "C", variant text COLLATE "C", product text COLLATE "C",
    location text COLLATE "C", currency text, cost bigint, msrp bigint, map bigint, price bigint, compare_at bigint,
    quantity bigint, incoming bytea, availability text, lead_time_days integer, version integer, stated smallint,
    observed_at timestamptz, withdrawn_at timestamptz) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_documents (product text COLLATE "C", body bytea, etag text) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_terms (product text COLLATE "C", term text COLLATE "C") ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_facets (product text COLLATE "C", catalogue text, status text, brand_key text COLLATE "C",
    category text, sources text[], title_key text COLLATE "C", currency text COLLATE "C", price bigint, availabilities smallint,
    completeness smallint, is_priced boolean, colours integer, finishes integer) ON COMMIT DELETE ROWS

-- copy_fingerprints --
COPY new_fingerprints (slot, key, fingerprint, product, problems) FROM STDIN (FORMAT binary)

-- copy_products --
COPY new_products (id, catalogue, key, status, version, visibility, brand_key, data, created_at, stated_category, stated_at)
FROM STDIN (FORMAT binary)

-- copy_variants --
COPY new_variants (id, product, key, sku_code, mpn_code, gtin_key, status, version, data) FROM STDIN (FORMAT binary)

-- copy_offers --
COPY new_offers (id, variant, product, location, currency, cost, msrp, map, price, compare_at, quantity, incoming,
    availability, lead_time_days, version, stated, observed_at, withdrawn_at) FROM STDIN (FORMAT binary)

-- copy_documents --
COPY new_documents (product, body, etag) FROM STDIN (FORMAT binary)

-- copy_terms --
COPY new_terms (product, term) FROM STDIN (FORMAT binary)

-- copy_facets --
COPY new_facets (product, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness, is_priced,
    colours, finishes) FROM STDIN (FORMAT binary)

-- compare_fingerprints --
SELECT n.key, m.key, m.fingerprint = n.fingerprint, m.absent_since IS NULL, m.problems FROM new_fingerprints n
FULL JOIN (
    SELECT slot, key, fingerprint, absent_since, absent_runs, problems FROM row_fingerprints
    WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stream = %(stream)s
        AND slot >= %(low)s AND slot < %(high)s
) m ON n.slot = m.slot AND n.key = m.key
WHERE CASE
    WHEN n.key IS NULL THEN m.absent_runs < %(missed_runs)s
    WHEN m.key IS NULL THEN true
    ELSE m.fingerprint <> n.fingerprint OR m.absent_since IS NOT NULL OR m.problems > 0
END

-- save_fingerprints --
INSERT INTO row_fingerprints (org, livemode, source, stream, slot, key, fingerprint, product, problems)
SELECT %(org)s, %(livemode)s, %(source)s, %(stream)s, slot, key, fingerprint, product, problems FROM new_fingerprints
ON CONFLICT (org, livemode, source, stream, slot, key) DO UPDATE SET fingerprint = excluded.fingerprint,
    product = excluded.product, problems = excluded.problems, absent_since = NULL, absent_runs = 0

-- invalidate_fingerprints --
UPDATE row_fingerprints SET fingerprint = ''
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stream = %(stream)s
    AND slot = ANY(ARRAY(SELECT value::integer FROM jsonb_array_elements_text(%(slots)s)))
    AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))

-- record_absences --
UPDATE row_fingerprints SET absent_since = coalesce(absent_since, %(now)s), absent_runs = absent_runs + 1
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stream = %(stream)s
    AND slot >= %(low)s AND slot < %(high)s AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))
    AND absent_runs < %(missed_runs)s

-- save_products --
INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, brand_key, data, created_at,
    updated_at, stated_category, stated_at)
SELECT %(org)s, %(livemode)s, id, catalogue, %(source)s, key, status, version, visibility, brand_key, data, created_at,
    %(now)s, stated_category, stated_at FROM new_products
ON CONFLICT (org, livemode, id) DO UPDATE SET status = excluded.status, version = excluded.version,
    visibility = excluded.visibility, brand_key = excluded.brand_key, data = excluded.data, updated_at = excluded.updated_at,
    stated_category = excluded.stated_category, stated_at = excluded.stated_at, home_status = NULL, home_data = NULL

-- touch_products --
UPDATE products SET updated_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- save_variants --
INSERT INTO variants (org, livemode, id, product, source, key, sku_code, mpn_code, gtin_key, status, version, data, updated_at)
SELECT %(org)s, %(livemode)s, id, product, %(source)s, key, sku_code, mpn_code, gtin_key, status, version, data, %(now)s
FROM new_variants
ON CONFLICT (org, livemode, id) DO UPDATE SET product = excluded.product, sku_code = excluded.sku_code,
    mpn_code = excluded.mpn_code, gtin_key = excluded.gtin_key, status = excluded.status, version = excluded.version,
    data = excluded.data, updated_at = excluded.updated_at, stated_at = NULL, home_product = NULL, home_status = NULL,
    home_data = NULL

-- queue_variants --
-- Queues variants for matching. A concurrent matching job keeps the entry, because its stamp has changed.
INSERT INTO match_queue (org, livemode, variant, stamp)
SELECT %(org)s, %(livemode)s, id, pg_current_xact_id()::text::bigint FROM new_variants ORDER BY id
ON CONFLICT (org, livemode, variant) DO UPDATE SET stamp = excluded.stamp, again = false

-- find_renamed_products --
-- Products whose title, brand or collection changes; executed before the products are saved.
SELECT p.id FROM products p JOIN jsonb_to_recordset(%(names)s) AS n (id text, title text, brand text, collection text) ON n.id = p.id
CROSS JOIN LATERAL (SELECT convert_from(coalesce(p.home_data, p.data), 'UTF8')::json AS stored) AS s
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND (stored ->> 'title', stored ->> 'brand', stored ->> 'collection') IS DISTINCT FROM (n.title, n.brand, n.collection)

-- queue_variants_of_products --
INSERT INTO match_queue (org, livemode, variant, stamp)
SELECT org, livemode, id, pg_current_xact_id()::text::bigint FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s
    AND (product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND home_product IS NULL
        OR home_product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))))
ORDER BY id
ON CONFLICT (org, livemode, variant) DO UPDATE SET stamp = excluded.stamp, again = false

-- save_offers --
INSERT INTO offers (org, livemode, id, variant, product, source, location, currency, cost, msrp, map, price, compare_at,
    quantity, incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at)
SELECT %(org)s, %(livemode)s, id, variant, product, %(source)s, location, currency, cost, msrp, map, price, compare_at,
    quantity, incoming, availability, lead_time_days, version, stated, observed_at, %(now)s, withdrawn_at FROM new_offers
ON CONFLICT (org, livemode, id) DO UPDATE SET variant = excluded.variant, product = excluded.product,
    home_variant = NULL, home_product = NULL, home_data = NULL, currency = excluded.currency,
    cost = excluded.cost, msrp = excluded.msrp, map = excluded.map, price = excluded.price,
    compare_at = excluded.compare_at, quantity = excluded.quantity, incoming = excluded.incoming,
    availability = excluded.availability, lead_time_days = excluded.lead_time_days, version = excluded.version,
    stated = excluded.stated, observed_at = excluded.observed_at, updated_at = excluded.updated_at,
    withdrawn_at = excluded.withdrawn_at

-- save_documents --
INSERT INTO product_documents (org, livemode, product, view, body, etag)
SELECT %(org)s, %(livemode)s, product, 'own', body, etag FROM new_documents
ON CONFLICT (org, livemode, view, product) DO UPDATE SET body = excluded.body, etag = excluded.etag

-- save_facets --
-- Unchanged rows are not written again.
INSERT INTO product_facets AS f (org, livemode, product, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities,
    completeness, is_priced, colours, finishes)
SELECT %(org)s, %(livemode)s, product, catalogue, status, brand_key, category, sources, title_key, currency, price,
    availabilities, completeness, is_priced, colours, finishes FROM new_facets
ON CONFLICT (org, livemode, product) DO UPDATE SET status = excluded.status, brand_key = excluded.brand_key, category = excluded.category,
    sources = excluded.sources, title_key = excluded.title_key, currency = excluded.currency, price = excluded.price,
    availabilities = excluded.availabilities, completeness = excluded.completeness, is_priced = excluded.is_priced, colours = excluded.colours,
    finishes = excluded.finishes
WHERE (f.status, f.brand_key, f.category, f.sources, f.title_key, f.currency, f.price, f.availabilities, f.completeness, f.is_priced, f.colours, f.finishes)
    IS DISTINCT FROM (excluded.status, excluded.brand_key, excluded.category, excluded.sources, excluded.title_key, excluded.currency, excluded.price,
        excluded.availabilities, excluded.completeness, excluded.is_priced, excluded.colours, excluded.finishes)

-- update_offer_facets --
UPDATE product_facets f SET currency = n.currency, price = n.price, availabilities = n.availabilities, is_priced = n.is_priced
FROM jsonb_to_recordset(%(rows)s) AS n (product text, currency text, price bigint, availabilities smallint, is_priced boolean)
WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND f.product = n.product
    AND (f.currency, f.price, f.availabilities, f.is_priced) IS DISTINCT FROM (n.currency, n.price, n.availabilities, n.is_priced)

-- delete_facets --
DELETE FROM product_facets
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- delete_outdated_terms --
DELETE FROM product_terms t
WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND (t.product, t.term) NOT IN (SELECT product, term FROM new_terms)

-- delete_outdated_availabilities --
DELETE FROM product_terms t
WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND t.term >= %(low)s AND t.term < %(high)s
    AND (t.product, t.term) NOT IN (SELECT product, term FROM new_terms)

-- add_terms --
INSERT INTO product_terms (org, livemode, term, product)
SELECT %(org)s, %(livemode)s, term, product FROM new_terms
ON CONFLICT DO NOTHING

-- lock_products_by_key --
SELECT id, catalogue, source, key, coalesce(home_status, status), version, visibility, coalesce(home_data, data), created_at,
    updated_at, stated_category, stated_at FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))
ORDER BY id FOR NO KEY UPDATE

-- find_products_by_variant_key --
SELECT key, coalesce(home_product, product) FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))

-- find_products_by_code --
SELECT DISTINCT v.product FROM jsonb_array_elements_text(%(codes)s) AS requested (code)
CROSS JOIN LATERAL (
    SELECT coalesce(home_product, product) AS product, source FROM variants
    WHERE org = %(org)s AND livemode = %(livemode)s AND sku_code = requested.code OFFSET 0
) v WHERE v.source = %(source)s

-- lock_products_by_id --
SELECT id, catalogue, source, key, coalesce(home_status, status), version, visibility, coalesce(home_data, data), created_at,
    updated_at, stated_category, stated_at FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY id FOR NO KEY UPDATE

-- list_variants_of_products --
-- Variants as stated by the source: variants that are shown in another product belong to their own product. These variants are
-- looked up one by one, because statistics are outdated while a first import is being merged.
SELECT id, coalesce(home_product, product), source, key, coalesce(home_status, status), version, coalesce(home_data, data),
    updated_at, stated_at FROM (
    SELECT * FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND home_product IS NULL
        AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    UNION ALL
    SELECT moved.* FROM jsonb_array_elements_text(%(ids)s) AS requested (id) CROSS JOIN LATERAL (
        SELECT * FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND home_product = requested.id OFFSET 0
    ) moved
) v ORDER BY id

-- list_offers_of_products --
SELECT id, coalesce(home_variant, variant), coalesce(home_product, product), source, location, currency, cost, msrp, map, price,
    compare_at, quantity, incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at, home_data FROM (
    SELECT * FROM offers WHERE org = %(org)s AND livemode = %(livemode)s AND home_product IS NULL
        AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    UNION ALL
    SELECT moved.* FROM jsonb_array_elements_text(%(ids)s) AS requested (id) CROSS JOIN LATERAL (
        SELECT * FROM offers WHERE org = %(org)s AND livemode = %(livemode)s AND home_product = requested.id OFFSET 0
    ) moved
) o ORDER BY id

-- get_source_item --
SELECT v.source, p.key, v.key, coalesce(v.home_data, v.data) FROM variants v
JOIN products p ON p.org = v.org AND p.livemode = v.livemode AND p.id = coalesce(v.home_product, v.product)
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = %(id)s

-- list_merged_variants --
SELECT id FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into = %(id)s ORDER BY id

-- list_offers_of_variant --
SELECT id, coalesce(home_variant, variant), coalesce(home_product, product), source, location, currency, cost, msrp, map, price,
    compare_at, quantity, incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at, home_data
FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND (variant = %(id)s AND home_variant IS NULL OR home_variant = %(id)s) ORDER BY id

-- count_stated_offers --
SELECT count(*) FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stated & %(bit)s <> 0

-- find_stated_offers_by_product --
SELECT v.key, o.location FROM products p
JOIN offers o ON o.org = p.org AND o.livemode = p.livemode AND o.source = p.source
    AND (o.product = p.id AND o.home_product IS NULL OR o.home_product = p.id)
JOIN variants v ON v.org = o.org AND v.livemode = o.livemode AND v.id = coalesce(o.home_variant, o.variant)
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = %(source)s AND p.key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))
    AND o.stated & %(bit)s <> 0

-- find_variants_by_key --
SELECT key, id FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s
    AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))

-- find_variants_by_code --
SELECT requested.code, v.id FROM jsonb_array_elements_text(%(codes)s) AS requested (code)
CROSS JOIN LATERAL (
    SELECT id, source FROM variants
    WHERE org = %(org)s AND livemode = %(livemode)s AND sku_code = requested.code OFFSET 0
) v WHERE v.source = %(source)s

-- find_stated_offers_by_variant --
SELECT coalesce(home_variant, variant), location FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s
    AND (variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND home_variant IS NULL
        OR home_variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))))
    AND source = %(source)s AND stated & %(bit)s <> 0

-- find_absent_products --
SELECT m.key, coalesce(p.home_status, p.status), m.absent_since FROM row_fingerprints m
JOIN products p ON p.org = m.org AND p.livemode = m.livemode AND p.id = m.product
WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.source = %(source)s AND m.stream = %(stream)s
    AND m.absent_since <= %(since)s AND m.absent_runs >= %(missed_runs)s AND coalesce(p.home_status, p.status) <> %(discontinued)s

-- list_category_paths --
-- The most frequent paths by term, with the names of each path from one of its products, up to a limit of characters.
SELECT path, products, paths FROM (
    SELECT path, products, paths, term, sum(length(path::text)) OVER (ORDER BY products DESC, term) AS chars FROM (
        SELECT convert_from(coalesce(p.home_data, p.data), 'UTF8')::json -> 'category_path' AS path,
            counts.products, counts.paths, counts.term FROM (
            SELECT term, min(product) AS product, count(*) AS products, count(*) OVER () AS paths FROM product_terms
            WHERE org = %(org)s AND livemode = %(livemode)s AND term >= %(low)s AND term < %(high)s
            GROUP BY term ORDER BY count(*) DESC, term LIMIT %(limit)s
        ) counts
        JOIN products p ON p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = counts.product
    ) named
) sized WHERE chars <= %(max_chars)s ORDER BY products DESC, term

-- list_product_categories --
SELECT p.id, p.key, d.category_path, d.category, p.stated_category FROM (
    SELECT id, key, coalesce(home_data, data) AS data, stated_category FROM products
    WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND id > %(after)s
    ORDER BY id LIMIT %(limit)s
) p CROSS JOIN LATERAL json_to_record(convert_from(p.data, 'UTF8')::json) AS d (category_path json, category text)
ORDER BY p.id

-- list_images_of_products --
-- Includes images of products that are merged into a product.
SELECT m.survivor, a.url, a.image FROM (
    SELECT id AS product, id AS survivor FROM products
    WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    UNION ALL
    SELECT id, merged_into FROM products
    WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
) m
JOIN image_uses u ON u.org = %(org)s AND u.livemode = %(livemode)s AND u.product = m.product
JOIN image_addresses a ON a.org = u.org AND a.livemode = u.livemode AND a.address = u.address
WHERE a.image IS NOT NULL
