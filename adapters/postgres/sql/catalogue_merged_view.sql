-- The merged view of product clusters. Values of a source that differ from the view are in the `home_` columns.

-- get_merge_revision --
SELECT count FROM merge_counts WHERE org = %(org)s AND livemode = %(livemode)s

-- increment_merge_revision --
INSERT INTO merge_counts (org, livemode, count) VALUES (%(org)s, %(livemode)s, 1)
ON CONFLICT (org, livemode) DO UPDATE SET count = merge_counts.count + 1

-- find_merge_groups --
SELECT DISTINCT family FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND family IS NOT NULL

-- list_merge_group_members --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND family = ANY(ARRAY(SELECT jsonb_array_elements_text(%(families)s)))

-- list_merged_products --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND id > %(after)s AND family IS NOT NULL
ORDER BY id LIMIT %(limit)s

-- list_applied_merges --
-- Lookups one by one, see catalogue_batch.sql.
SELECT m.merged, m.survivor FROM jsonb_array_elements_text(%(ids)s) AS sought (id) CROSS JOIN LATERAL (
    SELECT * FROM merges WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'applied' AND merged = sought.id OFFSET 0
) m

-- list_source_precedence --
SELECT id, first_party, licence_basis FROM sources
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- find_source_products --
SELECT id, coalesce(home_product, product), source FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- update_merged_products --
UPDATE products p SET status = l.status, home_status = l.home_status, brand_key = l.brand_key, data = decode(l.data, 'base64'),
    home_data = decode(l.home_data, 'base64'), version = l.version, merged_into = l.merged_into, family = l.family,
    stated_at = l.stated_at, updated_at = l.updated_at
FROM jsonb_to_recordset(%(rows)s) AS l (id text, status text, home_status text, brand_key text, data text, home_data text,
    version integer, merged_into text, family text, updated_at timestamptz, stated_at timestamptz)
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND p.id = l.id
    AND (p.status, p.home_status, p.brand_key, p.data, p.home_data, p.version, p.merged_into, p.family, p.updated_at, p.stated_at)
        IS DISTINCT FROM (l.status, l.home_status, l.brand_key, decode(l.data, 'base64'), decode(l.home_data, 'base64'), l.version,
            l.merged_into, l.family, l.updated_at, l.stated_at)

-- update_merged_variants --
UPDATE variants v SET product = l.product, home_product = nullif(l.home_product, l.product), status = l.status,
    home_status = l.home_status, data = decode(l.data, 'base64'), home_data = decode(l.home_data, 'base64'), version = l.version,
    merged_into = nullif(l.variant, l.id), updated_at = l.updated_at, stated_at = l.stated_at
FROM jsonb_to_recordset(%(rows)s) AS l (id text, variant text, product text, home_product text, status text, home_status text,
    data text, home_data text, version integer, updated_at timestamptz, stated_at timestamptz)
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND v.id = l.id
    AND (v.product, v.home_product, v.status, v.home_status, v.data, v.home_data, v.version, v.merged_into, v.updated_at, v.stated_at)
        IS DISTINCT FROM (l.product, nullif(l.home_product, l.product), l.status, l.home_status, decode(l.data, 'base64'),
            decode(l.home_data, 'base64'), l.version, nullif(l.variant, l.id), l.updated_at, l.stated_at)

-- update_merged_offers --
UPDATE offers o SET variant = l.variant, product = l.product, updated_at = %(now)s,
    home_variant = CASE WHEN (l.variant, l.product) IS DISTINCT FROM (l.id, l.home_product) THEN l.id END,
    home_product = CASE WHEN (l.variant, l.product) IS DISTINCT FROM (l.id, l.home_product) THEN l.home_product END
FROM jsonb_to_recordset(%(rows)s) AS l (id text, variant text, product text, home_product text)
WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND coalesce(o.home_variant, o.variant) = l.id
    AND (o.variant, o.product) IS DISTINCT FROM (l.variant, l.product)

-- delete_documents --
DELETE FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
