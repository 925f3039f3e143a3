-- The view of merged and corrected products. Values of a source that differ from the view are in the `home_` columns.

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
-- The rows are looked up one by one (see catalogue_batch.sql).
SELECT m.merged, m.survivor FROM jsonb_array_elements_text(%(ids)s) AS requested (id) CROSS JOIN LATERAL (
    SELECT * FROM merges WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'applied' AND merged = requested.id OFFSET 0
) m

-- list_source_precedence --
SELECT id, first_party, licence_basis FROM sources
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- find_source_products --
SELECT id, coalesce(home_product, product), source FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- update_merged_products --
UPDATE products p SET status = n.status, home_status = n.home_status, brand_key = n.brand_key, data = decode(n.data, 'base64'),
    home_data = decode(n.home_data, 'base64'), version = n.version, merged_into = n.merged_into, family = n.family,
    stated_at = n.stated_at, updated_at = n.updated_at
FROM jsonb_to_recordset(%(rows)s) AS n (id text, status text, home_status text, brand_key text, data text, home_data text,
    version integer, merged_into text, family text, updated_at timestamptz, stated_at timestamptz)
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND p.id = n.id
    AND (p.status, p.home_status, p.brand_key, p.data, p.home_data, p.version, p.merged_into, p.family, p.updated_at, p.stated_at)
        IS DISTINCT FROM (n.status, n.home_status, n.brand_key, decode(n.data, 'base64'), decode(n.home_data, 'base64'), n.version,
            n.merged_into, n.family, n.updated_at, n.stated_at)

-- update_merged_variants --
-- The codes are those of the source, or corrected ones.
UPDATE variants v SET product = n.product, home_product = nullif(n.home_product, n.product), status = n.status,
    mpn_code = n.mpn_code, gtin_key = n.gtin_key,
    home_status = n.home_status, data = decode(n.data, 'base64'), home_data = decode(n.home_data, 'base64'), version = n.version,
    merged_into = nullif(n.variant, n.id), updated_at = n.updated_at, stated_at = n.stated_at
FROM jsonb_to_recordset(%(rows)s) AS n (id text, variant text, product text, home_product text, status text, home_status text,
    mpn_code text, gtin_key text, data text, home_data text, version integer, updated_at timestamptz, stated_at timestamptz)
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND v.id = n.id
    AND (v.product, v.home_product, v.status, v.home_status, v.mpn_code, v.gtin_key, v.data, v.home_data, v.version, v.merged_into,
        v.updated_at, v.stated_at)
        IS DISTINCT FROM (n.product, nullif(n.home_product, n.product), n.status, n.home_status, n.mpn_code, n.gtin_key,
            decode(n.data, 'base64'), decode(n.home_data, 'base64'), n.version, nullif(n.variant, n.id), n.updated_at, n.stated_at)

-- update_merged_offers --
UPDATE offers o SET variant = n.variant, product = n.product, updated_at = %(now)s,
    home_variant = CASE WHEN (n.variant, n.product) IS DISTINCT FROM (n.id, n.home_product) THEN n.id END,
    home_product = CASE WHEN (n.variant, n.product) IS DISTINCT FROM (n.id, n.home_product) THEN n.home_product END
FROM jsonb_to_recordset(%(rows)s) AS n (id text, variant text, product text, home_product text)
WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND coalesce(o.home_variant, o.variant) = n.id
    AND (o.variant, o.product) IS DISTINCT FROM (n.variant, n.product)

-- update_corrected_offers --
UPDATE offers o SET currency = n.currency, cost = n.cost, msrp = n.msrp, map = n.map, price = n.price, compare_at = n.compare_at,
    quantity = n.quantity, incoming = decode(n.incoming, 'base64'), availability = n.availability,
    lead_time_days = n.lead_time_days, version = n.version, updated_at = n.updated_at, home_data = decode(n.home_data, 'base64')
FROM jsonb_to_recordset(%(rows)s) AS n (id text, currency text, cost bigint, msrp bigint, map bigint, price bigint,
    compare_at bigint, quantity bigint, incoming text, availability text, lead_time_days integer, version integer,
    updated_at timestamptz, home_data text)
WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
    AND o.id = n.id

-- delete_documents --
DELETE FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
