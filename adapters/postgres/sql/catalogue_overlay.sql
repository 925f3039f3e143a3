-- What readers see of products that merges tie together. Whatever a source has otherwise than it is shown stands in `home_` columns.

-- staging --
CREATE TEMPORARY TABLE IF NOT EXISTS laid_products (id text COLLATE "C", status text, home_status text, brand_key text COLLATE "C",
    data bytea, home_data bytea, version integer, merged_into text COLLATE "C", family text COLLATE "C",
    updated_at timestamptz, stated_at timestamptz) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS laid_variants (id text COLLATE "C", variant text COLLATE "C", product text COLLATE "C",
    home_product text COLLATE "C", status text, home_status text, data bytea, home_data bytea, version integer,
    updated_at timestamptz, stated_at timestamptz) ON COMMIT DELETE ROWS

-- clear_products --
DELETE FROM laid_products

-- clear_variants --
DELETE FROM laid_variants

-- copy_products --
COPY laid_products (id, status, home_status, brand_key, data, home_data, version, merged_into, family, updated_at, stated_at)
FROM STDIN (FORMAT binary)

-- copy_variants --
COPY laid_variants (id, variant, product, home_product, status, home_status, data, home_data, version, updated_at, stated_at)
FROM STDIN (FORMAT binary)

-- merge_count --
SELECT count FROM merge_counts WHERE org = %(org)s AND livemode = %(livemode)s

-- count_merge --
INSERT INTO merge_counts (org, livemode, count) VALUES (%(org)s, %(livemode)s, 1)
ON CONFLICT (org, livemode) DO UPDATE SET count = merge_counts.count + 1

-- alone --
SELECT pg_advisory_xact_lock(%(lock)s)

-- beside --
SELECT pg_advisory_xact_lock_shared(%(lock)s)

-- families --
SELECT DISTINCT family FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND family IS NOT NULL

-- members --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND family = ANY(ARRAY(SELECT jsonb_array_elements_text(%(families)s)))

-- tied_of --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND id > %(after)s AND family IS NOT NULL
ORDER BY id LIMIT %(most)s

-- applied --
-- One by one: see catalogue_batch.sql.
SELECT m.merged, m.survivor FROM jsonb_array_elements_text(%(ids)s) AS sought (id) CROSS JOIN LATERAL (
    SELECT * FROM merges WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'applied' AND merged = sought.id OFFSET 0
) m

-- standing --
SELECT id, first_party, licence_basis FROM sources
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- homes --
SELECT id, coalesce(home_product, product), source FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- lay_products --
UPDATE products p SET status = l.status, home_status = l.home_status, brand_key = l.brand_key, data = l.data,
    home_data = l.home_data, version = l.version, merged_into = l.merged_into, family = l.family, stated_at = l.stated_at,
    updated_at = l.updated_at
FROM laid_products l
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND p.id = l.id
    AND (p.status, p.home_status, p.brand_key, p.data, p.home_data, p.version, p.merged_into, p.family, p.updated_at, p.stated_at)
        IS DISTINCT FROM (l.status, l.home_status, l.brand_key, l.data, l.home_data, l.version, l.merged_into, l.family, l.updated_at,
            l.stated_at)

-- lay_variants --
UPDATE variants v SET product = l.product, home_product = nullif(l.home_product, l.product), status = l.status,
    home_status = l.home_status, data = l.data, home_data = l.home_data, version = l.version,
    merged_into = nullif(l.variant, l.id), updated_at = l.updated_at, stated_at = l.stated_at
FROM laid_variants l
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND v.id = l.id
    AND (v.product, v.home_product, v.status, v.home_status, v.data, v.home_data, v.version, v.merged_into, v.updated_at, v.stated_at)
        IS DISTINCT FROM (l.product, nullif(l.home_product, l.product), l.status, l.home_status, l.data, l.home_data, l.version,
            nullif(l.variant, l.id), l.updated_at, l.stated_at)

-- lay_offers --
UPDATE offers o SET variant = l.variant, product = l.product, updated_at = %(now)s,
    home_variant = CASE WHEN (l.variant, l.product) IS DISTINCT FROM (l.id, l.home_product) THEN l.id END,
    home_product = CASE WHEN (l.variant, l.product) IS DISTINCT FROM (l.id, l.home_product) THEN l.home_product END
FROM laid_variants l
WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND coalesce(o.home_variant, o.variant) = l.id
    AND (o.variant, o.product) IS DISTINCT FROM (l.variant, l.product)

-- drop_documents --
DELETE FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
