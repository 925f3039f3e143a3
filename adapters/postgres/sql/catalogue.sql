-- A line that ends in `--?` and names is kept when all of them are given: filters, `after` and `before` for a page's key,
-- `forwards` and `backwards` for its order. `joinery sql` prints a list's statement as it is sent.

-- product --
SELECT product, body, etag FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = %(id)s

-- documents --
-- Those of a list's page that are large, until they come to as much as a page may; the first one always.
SELECT product, body, etag FROM (
    SELECT d.product, d.body, d.etag, sum(octet_length(d.body)) OVER (ORDER BY a.n) - octet_length(d.body) AS before
    FROM jsonb_array_elements_text(%(ids)s) WITH ORDINALITY AS a (id, n)
    JOIN product_documents d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = a.id
) AS weighed WHERE before < %(most_bytes)s

-- titles --
SELECT id, convert_from(data, 'UTF8')::json ->> 'title' FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s)

-- products --
-- Without filters documents alone are read; with a query two ordered halves are, products whose words hold it and those
-- of which a variant has it as SKU or MPN. A document that is larger than its share stays where it is (`documents`).
SELECT d.product, CASE WHEN octet_length(d.body) <= %(share)s THEN d.body END, d.etag
FROM product_documents d --? all
WHERE d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' --? all
    AND d.product < %(page_key)s --? all after
    AND d.product > %(page_key)s --? all before
ORDER BY d.product DESC LIMIT {limit} --? all forwards
ORDER BY d.product ASC LIMIT {limit} --? all backwards
FROM ( --? some
    ( --? q
    SELECT p.id FROM products p WHERE p.org = %(org)s AND p.livemode = %(livemode)s --? some
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word0)s) --? word0
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word1)s) --? word1
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word2)s) --? word2
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word3)s) --? word3
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word4)s) --? word4
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word5)s) --? word5
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word6)s) --? word6
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(word7)s) --? word7
        AND false --? no_word
        AND p.updated_at >= %(updated_since)s --? updated_since
        AND p.status = %(status)s --? status
        AND p.brand_key = %(brand)s --? brand
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(category)s) --? category
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(availability)s) --? availability
        AND p.source = %(source)s --? source
        AND p.id < %(page_key)s --? some after
        AND p.id > %(page_key)s --? some before
    ORDER BY p.id DESC LIMIT {limit} --? some forwards
    ORDER BY p.id ASC LIMIT {limit} --? some backwards
    ) UNION ( --? q
    SELECT p.id FROM products p WHERE p.org = %(org)s AND p.livemode = %(livemode)s --? q
        AND p.id IN ( --? q
            SELECT v.product FROM variants v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.sku_code = %(code)s --? q
            UNION ALL --? q
            SELECT v.product FROM variants v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.mpn_code = %(code)s --? q
        ) --? q
        AND p.updated_at >= %(updated_since)s --? q updated_since
        AND p.status = %(status)s --? q status
        AND p.brand_key = %(brand)s --? q brand
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(category)s) --? q category
        AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(availability)s) --? q availability
        AND p.source = %(source)s --? q source
        AND p.id < %(page_key)s --? q after
        AND p.id > %(page_key)s --? q before
    ORDER BY p.id DESC LIMIT {limit} --? q forwards
    ORDER BY p.id ASC LIMIT {limit} --? q backwards
    ) --? q
    ORDER BY id DESC LIMIT {limit} --? q forwards
    ORDER BY id ASC LIMIT {limit} --? q backwards
) chosen --? some
JOIN product_documents d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = chosen.id --? some
ORDER BY d.product DESC --? some forwards
ORDER BY d.product ASC --? some backwards

-- own_catalogue --
SELECT CASE WHEN %(livemode)s THEN live_catalogue ELSE test_catalogue END FROM organisations WHERE id = %(org)s

-- offers --
SELECT o.id, o.variant, o.product, o.source, o.location, o.currency, o.cost, o.msrp, o.map, o.price, o.compare_at,
       o.quantity, o.incoming, o.availability, o.lead_time_days, o.version, o.stated, o.observed_at, o.updated_at,
       o.withdrawn_at, p.catalogue, CASE WHEN octet_length(p.data) <= %(share)s THEN p.data END,
       CASE WHEN octet_length(v.data) <= %(share)s THEN v.data
           ELSE convert_to(json_build_object('sku', convert_from(v.data, 'UTF8')::json ->> 'sku')::text, 'UTF8') END
FROM offers o
JOIN products p ON p.org = o.org AND p.livemode = o.livemode AND p.id = o.product
JOIN variants v ON v.org = o.org AND v.livemode = o.livemode AND v.id = o.variant
WHERE o.org = %(org)s AND o.livemode = %(livemode)s
    AND o.variant = %(variant)s --? variant
    AND o.product = %(product)s --? product
    AND o.source = %(source)s --? source
    AND o.availability = %(availability)s --? availability
    AND o.updated_at >= %(updated_since)s AND p.updated_at >= %(updated_since)s --? updated_since
    AND o.id < %(page_key)s --? after
    AND o.id > %(page_key)s --? before
ORDER BY o.id DESC LIMIT {limit} --? forwards
ORDER BY o.id ASC LIMIT {limit} --? backwards
