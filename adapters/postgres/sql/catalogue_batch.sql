-- staging --
CREATE TEMPORARY TABLE IF NOT EXISTS new_marks (slot integer, key text COLLATE "C", fingerprint bytea,
    product text COLLATE "C") ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_products (id text COLLATE "C", catalogue text, key text COLLATE "C", status text,
    version integer, visibility text, brand_key text COLLATE "C", data bytea, created_at timestamptz)
    ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_variants (id text COLLATE "C", product text COLLATE "C", key text COLLATE "C",
    sku_code text COLLATE "C", mpn_code text COLLATE "C", status text, version integer, data bytea) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_offers (id text COLLATE "C", variant text COLLATE "C", product text COLLATE "C",
    location text COLLATE "C", currency text, cost bigint, msrp bigint, map bigint, price bigint, compare_at bigint,
    quantity bigint, incoming bytea, availability text, lead_time_days integer, version integer, stated smallint,
    observed_at timestamptz, withdrawn_at timestamptz) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_documents (product text COLLATE "C", body bytea, etag text) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_terms (product text COLLATE "C", term text COLLATE "C") ON COMMIT DELETE ROWS

-- copy_marks --
COPY new_marks (slot, key, fingerprint, product) FROM STDIN (FORMAT binary)

-- copy_products --
COPY new_products (id, catalogue, key, status, version, visibility, brand_key, data, created_at) FROM STDIN (FORMAT binary)

-- copy_variants --
COPY new_variants (id, product, key, sku_code, mpn_code, status, version, data) FROM STDIN (FORMAT binary)

-- copy_offers --
COPY new_offers (id, variant, product, location, currency, cost, msrp, map, price, compare_at, quantity, incoming,
    availability, lead_time_days, version, stated, observed_at, withdrawn_at) FROM STDIN (FORMAT binary)

-- copy_documents --
COPY new_documents (product, body, etag) FROM STDIN (FORMAT binary)

-- copy_terms --
COPY new_terms (product, term) FROM STDIN (FORMAT binary)

-- changed --
SELECT n.key, m.absent_since IS NOT NULL AND m.fingerprint = n.fingerprint FROM new_marks n
LEFT JOIN marks m ON m.org = %(org)s AND m.livemode = %(livemode)s AND m.source = %(source)s AND m.stream = %(stream)s
    AND m.slot = n.slot AND m.key = n.key
WHERE m.key IS NULL OR m.fingerprint <> n.fingerprint OR m.absent_since IS NOT NULL

-- absent --
SELECT m.key, m.absent_since IS NULL FROM marks m
WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.source = %(source)s AND m.stream = %(stream)s
    AND m.absent_runs < 3 AND m.slot >= %(low)s AND m.slot < %(high)s
    AND NOT EXISTS (SELECT FROM new_marks n WHERE n.slot = m.slot AND n.key = m.key)

-- save_marks --
INSERT INTO marks (org, livemode, source, stream, slot, key, fingerprint, product)
SELECT %(org)s, %(livemode)s, %(source)s, %(stream)s, slot, key, fingerprint, product FROM new_marks
ON CONFLICT (org, livemode, source, stream, slot, key) DO UPDATE
SET fingerprint = excluded.fingerprint, product = excluded.product, absent_since = NULL, absent_runs = 0

-- save_absent --
UPDATE marks SET absent_since = coalesce(absent_since, %(now)s), absent_runs = absent_runs + 1
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stream = %(stream)s
    AND slot >= %(low)s AND slot < %(high)s AND key = ANY(%(keys)s) AND absent_runs < 3

-- insert_products --
INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, brand_key, data, created_at,
    updated_at)
SELECT %(org)s, %(livemode)s, id, catalogue, %(source)s, key, status, version, visibility, brand_key, data, created_at,
    %(now)s FROM new_products

-- update_products --
UPDATE products p SET status = n.status, version = n.version, visibility = n.visibility, brand_key = n.brand_key,
    data = n.data, updated_at = %(now)s
FROM new_products n WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = n.id

-- touch_products --
UPDATE products SET updated_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s)

-- insert_variants --
INSERT INTO variants (org, livemode, id, product, source, key, sku_code, mpn_code, status, version, data, updated_at)
SELECT %(org)s, %(livemode)s, id, product, %(source)s, key, sku_code, mpn_code, status, version, data, %(now)s
FROM new_variants

-- update_variants --
UPDATE variants v SET product = n.product, sku_code = n.sku_code, mpn_code = n.mpn_code, status = n.status,
    version = n.version, data = n.data, updated_at = %(now)s
FROM new_variants n WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = n.id

-- insert_offers --
INSERT INTO offers (org, livemode, id, variant, product, source, location, currency, cost, msrp, map, price, compare_at,
    quantity, incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at)
SELECT %(org)s, %(livemode)s, id, variant, product, %(source)s, location, currency, cost, msrp, map, price, compare_at,
    quantity, incoming, availability, lead_time_days, version, stated, observed_at, %(now)s, withdrawn_at FROM new_offers

-- update_offers --
UPDATE offers o SET product = n.product, currency = n.currency, cost = n.cost, msrp = n.msrp, map = n.map, price = n.price,
    compare_at = n.compare_at, quantity = n.quantity, incoming = n.incoming, availability = n.availability,
    lead_time_days = n.lead_time_days, version = n.version, stated = n.stated, observed_at = n.observed_at,
    updated_at = %(now)s, withdrawn_at = n.withdrawn_at
FROM new_offers n WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.id = n.id

-- save_documents --
INSERT INTO product_documents (org, livemode, product, view, body, etag)
SELECT %(org)s, %(livemode)s, product, 'own', body, etag FROM new_documents
ON CONFLICT (org, livemode, view, product) DO UPDATE SET body = excluded.body, etag = excluded.etag

-- drop_terms --
DELETE FROM product_terms t
WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = ANY(%(ids)s)
    AND NOT EXISTS (SELECT FROM new_terms n WHERE n.product = t.product AND n.term = t.term)

-- drop_availabilities --
DELETE FROM product_terms t
WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = ANY(%(ids)s) AND t.term >= 'a:' AND t.term < 'a;'
    AND NOT EXISTS (SELECT FROM new_terms n WHERE n.product = t.product AND n.term = t.term)

-- add_terms --
INSERT INTO product_terms (org, livemode, term, product)
SELECT %(org)s, %(livemode)s, term, product FROM new_terms
ON CONFLICT DO NOTHING

-- products_by_key --
SELECT id, catalogue, source, key, status, version, visibility, data, created_at, updated_at FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND key = ANY(%(keys)s)
ORDER BY id FOR NO KEY UPDATE

-- owners_by_variant_key --
SELECT DISTINCT product FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND key = ANY(%(keys)s)

-- owners_by_code --
SELECT DISTINCT product FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND sku_code = ANY(%(codes)s)

-- products_by_id --
SELECT id, catalogue, source, key, status, version, visibility, data, created_at, updated_at FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s)
ORDER BY id FOR NO KEY UPDATE

-- variants_of --
SELECT id, product, source, key, status, version, data, updated_at FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(%(ids)s) ORDER BY id

-- offers_of --
SELECT id, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity, incoming,
    availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(%(ids)s) ORDER BY id

-- stated_offers --
SELECT count(*) FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND stated & %(bit)s <> 0

-- stated_by_product --
SELECT v.key, o.location FROM products p
JOIN offers o ON o.org = p.org AND o.livemode = p.livemode AND o.product = p.id AND o.source = p.source
JOIN variants v ON v.org = o.org AND v.livemode = o.livemode AND v.id = o.variant
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = %(source)s AND p.key = ANY(%(keys)s)
    AND o.stated & %(bit)s <> 0

-- stated_by_mark --
WITH sought AS (SELECT * FROM unnest(%(keys)s::text[], %(codes)s::text[]) AS k (key, code)), found AS (
    SELECT s.key, v.id FROM sought s JOIN variants v ON v.org = %(org)s AND v.livemode = %(livemode)s
        AND v.source = %(source)s AND v.key = s.key
    UNION
    SELECT s.key, v.id FROM sought s JOIN variants v ON v.org = %(org)s AND v.livemode = %(livemode)s
        AND v.sku_code = s.code AND v.source = %(source)s
)
SELECT f.key, o.location FROM found f JOIN offers o ON o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = f.id
WHERE o.source = %(source)s AND o.stated & %(bit)s <> 0

-- aged --
SELECT m.key, p.status, m.absent_since FROM marks m
JOIN products p ON p.org = m.org AND p.livemode = m.livemode AND p.id = m.product
WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.source = %(source)s AND m.stream = 'catalogue'
    AND m.absent_since <= %(before)s AND m.absent_runs >= 3 AND p.status <> 'discontinued'
