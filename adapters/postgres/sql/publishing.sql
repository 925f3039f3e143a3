-- Publication runs, licences, and a vendor's own catalogue. A line that ends in `--?` and names is included if all these names are selected.

-- find_open_run --
SELECT id FROM publication_runs WHERE org = %(org)s AND livemode = %(livemode)s AND completed_at IS NULL LIMIT 1

-- count_candidates --
SELECT count(*) FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND visibility = %(visibility)s
    AND id = ANY(%(products)s) --? products

-- list_candidates --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND visibility = %(visibility)s AND id > %(after)s
    AND id = ANY(%(products)s) --? products
ORDER BY id LIMIT %(limit)s

-- count_unshareable --
SELECT count(*) FROM products p
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.visibility = 'unlisted'
    AND p.id = ANY(%(products)s) --? products
    AND (p.source = ANY(ARRAY(SELECT s.id FROM sources s WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.licence_basis = ANY(%(unshareable)s)))
        OR p.family = ANY(ARRAY(
            SELECT f.family FROM products f WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.family IS NOT NULL AND f.source = ANY(ARRAY(
                SELECT s.id FROM sources s WHERE s.org = %(org)s AND s.livemode = %(livemode)s AND s.licence_basis = ANY(%(unshareable)s))))))

-- count_catalogue --
SELECT (SELECT count(*) FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into IS NULL),
    (SELECT count(*) FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into IS NULL),
    (SELECT count(*) FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND visibility = 'listed' AND merged_into IS NULL),
    (SELECT count(*) FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND visibility = 'hidden' AND merged_into IS NULL)

-- get_assessment --
SELECT products, score, missing, assessed_at FROM catalogue_assessments WHERE org = %(org)s AND livemode = %(livemode)s

-- save_assessment --
INSERT INTO catalogue_assessments (org, livemode, products, score, missing, assessed_at)
VALUES (%(org)s, %(livemode)s, %(products)s, %(score)s, %(missing)s, %(assessed_at)s)
ON CONFLICT (org, livemode) DO UPDATE SET products = excluded.products, score = excluded.score, missing = excluded.missing,
    assessed_at = excluded.assessed_at

-- list_documents --
SELECT product, body FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product > %(after)s ORDER BY product LIMIT %(limit)s

-- list_documents_by_id --
SELECT product, body FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = ANY(%(products)s)

-- list_listed_products --
SELECT id FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND visibility = 'listed' AND merged_into IS NULL AND id > %(after)s
ORDER BY id LIMIT %(limit)s

-- list_products_without_view --
SELECT c.id FROM published_products c
WHERE c.livemode = %(livemode)s AND c.org = %(org)s AND c.merged_into IS NULL AND NOT EXISTS (
    SELECT FROM published_documents d WHERE d.livemode = %(livemode)s AND d.org = %(org)s AND d.product = c.id AND d.view = %(view)s)
ORDER BY c.id LIMIT %(limit)s

-- list_product_data --
SELECT id, data FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(products)s)

-- list_variants --
-- A limited number of variants is scanned; `is_match` tells which of them match the filter.
SELECT v.id, v.product, v.data, p.visibility, v.updated_at,
    (SELECT true FROM offers o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = v.id
        AND coalesce(o.msrp, o.map, o.price) IS NOT NULL LIMIT 1),
    true
        AND p.visibility = %(visibility)s --? visibility
        AND (v.sku_code = %(code)s OR NOT EXISTS ( --? q
            SELECT FROM unnest(%(terms)s::text[]) AS w (term) WHERE NOT EXISTS ( --? q
                SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = v.product AND t.term = w.term))) --? q
        AS is_match
FROM (
    SELECT id, product, data, updated_at, sku_code FROM variants
    WHERE org = %(org)s AND livemode = %(livemode)s AND merged_into IS NULL
        AND id < %(page_key)s --? after
        AND id > %(page_key)s --? before
    ORDER BY id DESC LIMIT {limit} --? forwards
    ORDER BY id ASC LIMIT {limit} --? backwards
) v JOIN products p ON p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = v.product
ORDER BY v.id DESC --? forwards
ORDER BY v.id ASC --? backwards

-- list_images --
SELECT i.id, i.width, i.height, (
    SELECT min(coalesce(p.merged_into, p.id)) FROM image_addresses a
    JOIN image_uses u ON u.org = %(org)s AND u.livemode = %(livemode)s AND u.address = a.address
    JOIN products p ON p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = u.product
    WHERE a.org = %(org)s AND a.livemode = %(livemode)s AND a.image = i.id
) FROM images i
WHERE i.org = %(org)s AND i.livemode = %(livemode)s
    AND i.id < %(page_key)s --? after
    AND i.id > %(page_key)s --? before
ORDER BY i.id DESC LIMIT {limit} --? forwards
ORDER BY i.id ASC LIMIT {limit} --? backwards

-- list_licences --
SELECT catalogue, holder, groups, view, created_at, withdrawn_at FROM licences WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY created_at, holder

-- get_readable --
SELECT org, view FROM licences WHERE livemode = %(livemode)s AND catalogue = %(catalogue)s AND holder IN (%(org)s, '*')
ORDER BY holder DESC LIMIT 1

-- save_licence --
INSERT INTO licences (org, livemode, catalogue, holder, groups, view, created_at, withdrawn_at)
VALUES (%(org)s, %(livemode)s, %(catalogue)s, %(holder)s, %(groups)s, %(view)s, %(created_at)s, %(withdrawn_at)s)
ON CONFLICT (org, livemode, catalogue, holder) DO UPDATE SET groups = excluded.groups, view = excluded.view,
    created_at = excluded.created_at, withdrawn_at = excluded.withdrawn_at

-- delete_licence --
DELETE FROM licences WHERE org = %(org)s AND livemode = %(livemode)s AND catalogue = %(catalogue)s AND holder = %(holder)s

-- set_view --
UPDATE licences SET view = %(view)s WHERE org = %(org)s AND livemode = %(livemode)s AND groups @> %(groups)s AND groups <@ %(groups)s
