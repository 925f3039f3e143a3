-- Copies of listed products. They are written with the owner's privileges into tables that every node of a cluster has; statements that write them read no
-- distributed table in a condition.

-- lock_states --
SELECT p.id, p.source, p.catalogue, p.version, p.visibility,
    coalesce((SELECT s.licence_basis <> ALL(%(unshareable)s) FROM sources s
        WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.id = p.source), false)
    AND (p.family IS NULL OR NOT EXISTS (
        SELECT FROM products f JOIN sources s ON s.org = %(org)s AND s.livemode = %(livemode)s AND s.id = f.source
        WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.family = p.family AND s.licence_basis = ANY(%(unshareable)s))),
    p.visibility = 'listed' AND (p.family IS NULL OR NOT EXISTS (
        SELECT FROM products f WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.family = p.family AND f.visibility <> 'listed')),
    p.merged_into,
    EXISTS (SELECT FROM published_products c
        WHERE c.livemode = %(livemode)s AND c.org = %(org)s AND c.id = p.id AND c.merged_into IS NULL),
    EXISTS (SELECT FROM published_products c
        WHERE c.livemode = %(livemode)s AND c.org = %(org)s AND c.id = p.id AND c.merged_into IS NOT NULL)
FROM products p
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY p.id FOR NO KEY UPDATE OF p

-- set_visibility --
UPDATE products SET visibility = %(visibility)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(products)s)

-- advance_versions --
UPDATE products SET version = version + 1, updated_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
RETURNING id, version, visibility

-- list_documents --
SELECT product, body FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- measure --
SELECT product, octet_length(body) FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = ANY(%(products)s)

-- replace_documents --
UPDATE product_documents d SET body = n.body, etag = n.etag
FROM unnest(%(products)s::text[], %(bodies)s::bytea[], %(etags)s::text[]) AS n (product, body, etag)
WHERE d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = ANY(%(products)s) AND d.product = n.product

-- get_catalogue --
SELECT catalogue FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- list_licensed_groups --
SELECT groups, view FROM licences WHERE org = %(org)s AND livemode = %(livemode)s

-- write_products --
INSERT INTO published_products AS c (livemode, id, org, catalogue, source, key, status, version, brand_key, data, updated_at)
SELECT livemode, id, org, catalogue, source, key, status, version, brand_key, data, updated_at FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ON CONFLICT (livemode, id) DO UPDATE SET source = excluded.source, status = excluded.status, version = excluded.version,
    brand_key = excluded.brand_key, data = excluded.data, updated_at = excluded.updated_at, merged_into = NULL

-- write_facets --
INSERT INTO published_facets AS c (livemode, product, org, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness, is_priced,
    colours, finishes)
SELECT livemode, product, org, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness, is_priced,
    colours, finishes
FROM product_facets WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ON CONFLICT (livemode, product) DO UPDATE SET status = excluded.status, brand_key = excluded.brand_key, category = excluded.category,
    sources = excluded.sources, title_key = excluded.title_key, currency = excluded.currency, price = excluded.price,
    availabilities = excluded.availabilities, completeness = excluded.completeness, is_priced = excluded.is_priced, colours = excluded.colours,
    finishes = excluded.finishes

-- list_variants --
SELECT id FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- delete_outdated_variants --
DELETE FROM published_variants
WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s) AND id <> ALL(%(kept)s)

-- write_variants --
INSERT INTO published_variants AS c (livemode, id, org, catalogue, product, key, sku_code, mpn_code, gtin_key, data, merged_into, home_product, home_data)
SELECT v.livemode, v.id, v.org, p.catalogue, v.product, v.key, v.sku_code, v.mpn_code, v.gtin_key, v.data, v.merged_into, v.home_product, v.home_data
FROM variants v JOIN products p ON p.org = v.org AND p.livemode = v.livemode AND p.id = v.product
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ON CONFLICT (livemode, id) DO UPDATE SET product = excluded.product, key = excluded.key, sku_code = excluded.sku_code, mpn_code = excluded.mpn_code,
    gtin_key = excluded.gtin_key, data = excluded.data, merged_into = excluded.merged_into, home_product = excluded.home_product,
    home_data = excluded.home_data
WHERE (c.product, c.data, c.merged_into, c.home_product, c.home_data)
    IS DISTINCT FROM (excluded.product, excluded.data, excluded.merged_into, excluded.home_product, excluded.home_data)

-- list_offers --
SELECT id FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- delete_outdated_offers --
DELETE FROM published_offers
WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s) AND id <> ALL(%(kept)s)

-- write_offers --
INSERT INTO published_offers AS c (livemode, id, org, catalogue, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity,
    incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at, home_variant, home_product)
SELECT o.livemode, o.id, o.org, p.catalogue, o.variant, o.product, o.source, o.location, o.currency, o.cost, o.msrp, o.map, o.price, o.compare_at,
    o.quantity, o.incoming, o.availability, o.lead_time_days, o.version, o.stated, o.observed_at, o.updated_at, o.withdrawn_at, o.home_variant,
    o.home_product
FROM offers o JOIN products p ON p.org = o.org AND p.livemode = o.livemode AND p.id = o.product
WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ON CONFLICT (livemode, id) DO UPDATE SET variant = excluded.variant, product = excluded.product, currency = excluded.currency, cost = excluded.cost,
    msrp = excluded.msrp, map = excluded.map, price = excluded.price, compare_at = excluded.compare_at, quantity = excluded.quantity,
    incoming = excluded.incoming, availability = excluded.availability, lead_time_days = excluded.lead_time_days, version = excluded.version,
    stated = excluded.stated, observed_at = excluded.observed_at, updated_at = excluded.updated_at, withdrawn_at = excluded.withdrawn_at,
    home_variant = excluded.home_variant, home_product = excluded.home_product
WHERE (c.version, c.stated, c.updated_at, c.variant, c.product)
    IS DISTINCT FROM (excluded.version, excluded.stated, excluded.updated_at, excluded.variant, excluded.product)

-- list_terms --
-- Without the categories of the source, whose rules only its owner sees.
SELECT product, term FROM product_terms
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND NOT (term >= 'p:' AND term < 'p;')

-- delete_outdated_terms --
DELETE FROM published_terms
WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)
    AND (product, term) NOT IN (SELECT n.product, n.term FROM unnest(%(kept)s::text[], %(terms)s::text[]) AS n (product, term))

-- add_terms --
INSERT INTO published_terms (livemode, term, product, org, catalogue)
SELECT %(livemode)s, n.term, n.product, %(org)s, %(catalogue)s FROM unnest(%(kept)s::text[], %(terms)s::text[]) AS n (product, term)
ON CONFLICT (livemode, term, product) DO NOTHING

-- list_images --
SELECT m.survivor, i.id, i.content, i.key, i.bytes, i.width, i.height, i.created_at, i.renditions FROM (
    SELECT id AS product, id AS survivor FROM products
    WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    UNION ALL
    SELECT id, merged_into FROM products
    WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
) m
JOIN image_uses u ON u.org = %(org)s AND u.livemode = %(livemode)s AND u.product = m.product
JOIN image_addresses a ON a.org = %(org)s AND a.livemode = %(livemode)s AND a.address = u.address
JOIN images i ON i.org = %(org)s AND i.livemode = %(livemode)s AND i.id = a.image

-- delete_outdated_images --
DELETE FROM published_images
WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)
    AND (product, id) NOT IN (SELECT n.product, n.id FROM unnest(%(kept)s::text[], %(images)s::text[]) AS n (product, id))

-- add_image --
INSERT INTO published_images (livemode, product, id, org, catalogue, content, key, bytes, width, height, created_at, renditions)
VALUES (%(livemode)s, %(product)s, %(id)s, %(org)s, %(catalogue)s, %(content)s, %(key)s, %(bytes)s, %(width)s, %(height)s, %(created_at)s, %(renditions)s)
ON CONFLICT (livemode, product, id) DO UPDATE SET renditions = excluded.renditions

-- write_documents --
INSERT INTO published_documents AS c (livemode, product, view, org, catalogue, body, etag)
SELECT %(livemode)s, n.product, n.view, %(org)s, %(catalogue)s, n.body, n.etag
FROM unnest(%(products)s::text[], %(views)s::text[], %(bodies)s::bytea[], %(etags)s::text[]) AS n (product, view, body, etag)
ON CONFLICT (livemode, product, view) DO UPDATE SET body = excluded.body, etag = excluded.etag WHERE c.etag <> excluded.etag

-- delete_documents --
DELETE FROM published_documents WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_facets --
DELETE FROM published_facets WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_terms --
DELETE FROM published_terms WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_variants --
DELETE FROM published_variants WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_offers --
DELETE FROM published_offers WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_images --
DELETE FROM published_images WHERE livemode = %(livemode)s AND org = %(org)s AND product = ANY(%(products)s)

-- delete_products --
DELETE FROM published_products WHERE livemode = %(livemode)s AND org = %(org)s AND id = ANY(%(products)s)

-- add_references --
-- Reads of a product that was merged into a visible one return that one.
INSERT INTO published_products (livemode, id, org, catalogue, source, key, status, version, data, updated_at, merged_into)
SELECT livemode, id, org, catalogue, source, key, status, version, '', updated_at, merged_into FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND merged_into = ANY(ARRAY(SELECT jsonb_array_elements_text(%(visible)s)))

-- list_merge_groups --
SELECT p.id FROM products p
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND (
    p.id = ANY(%(products)s) OR p.family = ANY(ARRAY(
        SELECT f.family FROM products f WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.id = ANY(%(products)s) AND f.family IS NOT NULL)))

-- list_products_of_source --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND id > %(after)s
ORDER BY id LIMIT %(limit)s
