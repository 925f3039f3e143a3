-- The names of tables in braces are those of the organisation's own rows, or of the views that also have licensed copies (`RELATIONS`).
-- A line that ends in `--?` and names is included if all these names are selected: filters, `after` and `before` for the key of
-- a page, `forwards` and `backwards` for the order. `joinery sql` prints the final statement of a list.

-- get_product --
SELECT product, body, etag FROM {product_documents}
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = %(id)s

-- get_survivor --
-- Document of the product into which the product was merged.
SELECT d.product, d.body, d.etag FROM {products} p
JOIN {product_documents} d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = p.merged_into
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = %(id)s AND p.merged_into IS NOT NULL

-- read_documents_within_bytes --
-- Documents of a page that contains large documents, up to the byte limit of a page, but at least one document.
SELECT product, body, etag FROM (
    SELECT d.product, d.body, d.etag, sum(octet_length(d.body)) OVER (ORDER BY a.n) - octet_length(d.body) AS before
    FROM jsonb_array_elements_text(%(ids)s) WITH ORDINALITY AS a (id, n)
    JOIN {product_documents} d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = a.id
) AS sized WHERE before < %(max_bytes)s

-- list_titles --
SELECT id, convert_from(data, 'UTF8')::json ->> 'title' FROM {products}
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(ids)s)

-- variants_with_sku --
SELECT f.id, f.product, f.data, s.exact FROM jsonb_each_text(%(sku)s) AS s (exact, code) CROSS JOIN LATERAL (SELECT coalesce(v.merged_into, v.id) AS id, v.product, coalesce(v.home_data, v.data) AS data FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.sku_code = s.code OFFSET 0) f LIMIT {sort_limit}

-- variants_with_mpn --
SELECT f.id, f.product, f.data, f.home_data, s.exact FROM jsonb_each_text(%(mpn)s) AS s (exact, code) CROSS JOIN LATERAL (SELECT coalesce(v.merged_into, v.id) AS id, v.product, v.data, v.home_data FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.mpn_code = s.code OFFSET 0) f LIMIT {sort_limit}

-- variants_with_gtin --
SELECT f.id, f.product FROM jsonb_array_elements_text(%(gtin)s) AS s (key) CROSS JOIN LATERAL (SELECT coalesce(v.merged_into, v.id) AS id, v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.gtin_key = s.key OFFSET 0) f LIMIT {sort_limit}

-- products_with_external_id --
SELECT f.product FROM jsonb_array_elements_text(%(external_id)s) AS s (key) CROSS JOIN LATERAL (SELECT coalesce(p.merged_into, p.id) AS product FROM {products} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.key = s.key UNION ALL SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.key = s.key OFFSET 0) f LIMIT {sort_limit}

-- variants_with_external_id --
SELECT f.id FROM jsonb_array_elements_text(%(external_id)s) AS s (key) CROSS JOIN LATERAL (SELECT coalesce(v.merged_into, v.id) AS id FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.key = s.key UNION ALL SELECT coalesce(v.merged_into, v.id) FROM {products} p JOIN {variants} v ON v.org = %(org)s AND v.livemode = %(livemode)s AND (v.product = p.id OR v.home_product = p.id) WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.key = s.key OFFSET 0) f LIMIT {sort_limit}

-- count_products_by_filter --
-- Number of products per filter, counted up to a limit, to choose the most selective index of a list.
SELECT '' AS filter, {count_limit} + 1 AS size
UNION ALL SELECT 'word0', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word0)s LIMIT {count_limit}) n) --? word0
UNION ALL SELECT 'word1', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word1)s LIMIT {count_limit}) n) --? word1
UNION ALL SELECT 'word2', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word2)s LIMIT {count_limit}) n) --? word2
UNION ALL SELECT 'word3', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word3)s LIMIT {count_limit}) n) --? word3
UNION ALL SELECT 'word4', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word4)s LIMIT {count_limit}) n) --? word4
UNION ALL SELECT 'word5', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word5)s LIMIT {count_limit}) n) --? word5
UNION ALL SELECT 'word6', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word6)s LIMIT {count_limit}) n) --? word6
UNION ALL SELECT 'word7', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(word7)s LIMIT {count_limit}) n) --? word7
UNION ALL SELECT 'category', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(category)s LIMIT {count_limit}) n) --? category
UNION ALL SELECT 'availability', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(availability)s LIMIT {count_limit}) n) --? availability
UNION ALL SELECT 'brand', (SELECT count(*) FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND brand_key = %(brand)s LIMIT {count_limit}) n) --? brand
UNION ALL SELECT 'source', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(source)s LIMIT {count_limit}) n) --? source
UNION ALL SELECT 'catalogue', (SELECT count(*) FROM (SELECT 1 FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term = %(catalogue)s LIMIT {count_limit}) n) --? catalogue
UNION ALL SELECT 'status', (SELECT count(*) FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND status = %(status)s LIMIT {count_limit}) n) --? status
UNION ALL SELECT 'sku', (SELECT count(*) * {count_limit} / {sort_limit} FROM ({variants_with_sku}) n) --? sku
UNION ALL SELECT 'mpn', (SELECT count(*) * {count_limit} / {sort_limit} FROM ({variants_with_mpn}) n) --? mpn
UNION ALL SELECT 'gtin', (SELECT count(*) * {count_limit} / {sort_limit} FROM ({variants_with_gtin}) n) --? gtin
UNION ALL SELECT 'external_id', (SELECT count(*) * {count_limit} / {sort_limit} FROM ({products_with_external_id}) n) --? external_id
UNION ALL SELECT 'updated_since', (SELECT count(*) FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND updated_at >= %(updated_since)s ORDER BY updated_at DESC LIMIT {count_limit}) n) --? updated_since

-- scan_products --
-- The scan of a page of products by one index in the list's order; the latest changes, which are few, are sorted.
SELECT product AS id FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s --? by_term
    AND term = %(word0)s --? by_word0
    AND term = %(word1)s --? by_word1
    AND term = %(word2)s --? by_word2
    AND term = %(word3)s --? by_word3
    AND term = %(word4)s --? by_word4
    AND term = %(word5)s --? by_word5
    AND term = %(word6)s --? by_word6
    AND term = %(word7)s --? by_word7
    AND term = %(category)s --? by_category
    AND term = %(availability)s --? by_availability
    AND term = %(source)s --? by_source by_term
    AND term = %(catalogue)s --? by_catalogue by_term
    AND product < %(page_key)s --? by_term after
    AND product > %(page_key)s --? by_term before
ORDER BY product DESC LIMIT {lookup_scan_limit} --? by_term forwards
ORDER BY product ASC LIMIT {lookup_scan_limit} --? by_term backwards
SELECT id, status, brand_key, updated_at FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s --? by_column
    AND merged_into IS NULL --? by_column
    AND id = ANY (ARRAY(SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))))) --? by_id
    AND id = ANY (ARRAY(SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(variant)s))))) --? by_variant
    AND id = ANY (ARRAY(SELECT o.product FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(offer)s))))) --? by_offer
    AND id = ANY (ARRAY(SELECT m.product FROM ({variants_with_sku}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'sku' = m.exact)) --? by_sku
    AND id = ANY (ARRAY(SELECT m.product FROM ({variants_with_mpn}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'mpn' = m.exact OR convert_from(m.home_data, 'UTF8')::json ->> 'mpn' = m.exact)) --? by_mpn
    AND id = ANY (ARRAY(SELECT m.product FROM ({variants_with_gtin}) m)) --? by_gtin
    AND id = ANY (ARRAY(SELECT m.product FROM ({products_with_external_id}) m)) --? by_external_id
    AND brand_key = %(brand)s --? by_brand
    AND status = %(status)s --? by_status
    AND id < %(page_key)s --? by_column after
    AND id > %(page_key)s --? by_column before
ORDER BY id DESC LIMIT {scan_limit} --? by_column forwards
ORDER BY id ASC LIMIT {scan_limit} --? by_column backwards
SELECT id FROM ( --? by_updated_since
    SELECT id FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND updated_at >= %(updated_since)s --? by_updated_since
        AND merged_into IS NULL --? by_updated_since
    ORDER BY updated_at DESC LIMIT {count_limit} --? by_updated_since
) latest WHERE true --? by_updated_since
    AND id < %(page_key)s --? by_updated_since after
    AND id > %(page_key)s --? by_updated_since before

-- list_products --
-- Without filters only documents are read. Otherwise the index of the most selective filter (count_products_by_filter) is
-- scanned, and the other filters are checked per product by scalar sub-selects, because the planner would reverse a semi-join
-- for words without statistics. A query reads two ordered parts: products that contain the words of the query, and products
-- with a variant whose SKU or MPN equals the query; `words` is the number of rows in the first part. Documents larger than
-- `max_document_bytes` are read later (`read_documents_within_bytes`).
SELECT d.product, CASE WHEN octet_length(d.body) <= %(max_document_bytes)s THEN d.body END, d.etag
    , chosen.words --? q
FROM {product_documents} d --? all
WHERE d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' --? all
    AND d.product < %(page_key)s --? all after
    AND d.product > %(page_key)s --? all before
ORDER BY d.product DESC LIMIT {limit} --? all forwards
ORDER BY d.product ASC LIMIT {limit} --? all backwards
FROM ( --? some
    WITH words AS ( --? q
    SELECT w.id FROM ( --? some
{scan_products}
    ) w WHERE true --? some
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word0)s) --? word0
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word1)s) --? word1
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word2)s) --? word2
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word3)s) --? word3
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word4)s) --? word4
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word5)s) --? word5
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word6)s) --? word6
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(word7)s) --? word7
        AND false --? no_word
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(category)s) --? category
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(availability)s) --? availability
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(source)s) --? source
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.id AND t.term = %(catalogue)s) --? catalogue
        AND w.id = ANY (ARRAY(SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))))) --? id
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = w.id AND v.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(variant)s))) LIMIT 1) --? variant
        AND (SELECT true FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = w.id AND o.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(offer)s))) LIMIT 1) --? offer
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = w.id AND {is_sku} LIMIT 1) --? sku
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = w.id AND {is_mpn} LIMIT 1) --? mpn
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = w.id AND {is_gtin} LIMIT 1) --? gtin
        AND (SELECT true FROM (SELECT p.key FROM {products} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND (p.id = w.id OR p.merged_into = w.id) UNION ALL SELECT v.key FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = w.id) k WHERE k.key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(external_id)s))) LIMIT 1) --? external_id
        AND w.updated_at >= %(updated_since)s --? row updated_since
        AND w.status = %(status)s --? row status
        AND w.brand_key = %(brand)s --? row brand
        AND (SELECT true FROM {products} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = w.id --? probe
            AND p.updated_at >= %(updated_since)s --? probe updated_since
            AND p.status = %(status)s --? probe status
            AND p.brand_key = %(brand)s --? probe brand
        ) --? probe
    ORDER BY w.id DESC LIMIT {limit} --? some forwards
    ORDER BY w.id ASC LIMIT {limit} --? some backwards
    ), codes AS ( --? q
    SELECT p.id FROM {products} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s --? q
        AND p.id = ANY (ARRAY( --? q
            SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.sku_code = %(code)s --? q
            UNION ALL --? q
            SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.mpn_code = %(code)s --? q
            UNION ALL SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.gtin_key = %(gtin_code)s --? q gtin_code
        )) --? q
        AND p.updated_at >= %(updated_since)s --? q given_updated_since
        AND p.status = %(status)s --? q given_status
        AND p.brand_key = %(brand)s --? q given_brand
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(category)s) --? q given_category
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(availability)s) --? q given_availability
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(source)s) --? q given_source
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = p.id AND t.term = %(catalogue)s) --? q given_catalogue
        AND p.id = ANY (ARRAY(SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))))) --? q given_id
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = p.id AND v.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(variant)s))) LIMIT 1) --? q given_variant
        AND (SELECT true FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.product = p.id AND o.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(offer)s))) LIMIT 1) --? q given_offer
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = p.id AND {is_sku} LIMIT 1) --? q given_sku
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = p.id AND {is_mpn} LIMIT 1) --? q given_mpn
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = p.id AND {is_gtin} LIMIT 1) --? q given_gtin
        AND (SELECT true FROM (SELECT k.key FROM {products} k WHERE k.org = %(org)s AND k.livemode = %(livemode)s AND (k.id = p.id OR k.merged_into = p.id) UNION ALL SELECT v.key FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = p.id) k WHERE k.key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(external_id)s))) LIMIT 1) --? q given_external_id
        AND p.id < %(page_key)s --? q after
        AND p.id > %(page_key)s --? q before
    ORDER BY p.id DESC LIMIT {limit} --? q forwards
    ORDER BY p.id ASC LIMIT {limit} --? q backwards
    ) --? q
    SELECT id, (SELECT count(*) FROM words) AS words FROM (SELECT id FROM words UNION SELECT id FROM codes) AS matches --? q
    ORDER BY id DESC LIMIT {limit} --? q forwards
    ORDER BY id ASC LIMIT {limit} --? q backwards
) chosen --? some
JOIN {product_documents} d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = chosen.id --? some
ORDER BY d.product DESC --? some forwards
ORDER BY d.product ASC --? some backwards

-- stream_documents --
-- All documents of `list_products`, for COPY: without pages, without a limit of document size, and in no order.
SELECT d.body FROM {product_documents} d
JOIN {products} p ON p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = d.product AND p.updated_at >= %(updated_since)s AND p.merged_into IS NULL --? updated_since
WHERE d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own'

-- find_products_scan_end --
-- The end of a page whose scan reached its limit before the page was full.
SELECT id FROM (
{scan_products}
) w
ORDER BY id DESC OFFSET {lookup_scan_limit} - 1 LIMIT 1 --? by_term forwards
ORDER BY id ASC OFFSET {lookup_scan_limit} - 1 LIMIT 1 --? by_term backwards
ORDER BY id DESC OFFSET {scan_limit} - 1 LIMIT 1 --? by_column forwards
ORDER BY id ASC OFFSET {scan_limit} - 1 LIMIT 1 --? by_column backwards

-- find_next_word --
-- The first term in a range, by one index access, even if its neighbours have very many products.
SELECT term FROM {product_terms} WHERE org = %(org)s AND livemode = %(livemode)s AND term > %(low)s AND term < %(high)s
ORDER BY term LIMIT 1

-- find_codes_by_prefix --
(SELECT v.id, v.sku_code AS code FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s
    AND v.sku_code >= %(low)s AND v.sku_code < %(high)s ORDER BY v.sku_code, v.id LIMIT %(limit)s)
UNION ALL
(SELECT v.id, v.mpn_code FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s
    AND v.mpn_code >= %(low)s AND v.mpn_code < %(high)s ORDER BY v.mpn_code, v.id LIMIT %(limit)s)
ORDER BY code, id

-- get_own_catalogue --
SELECT CASE WHEN %(livemode)s THEN live_catalogue ELSE test_catalogue END FROM organisations WHERE id = %(org)s

-- count_offers_by_filter --
SELECT '' AS filter, {count_limit} + 1 AS size
UNION ALL SELECT 'source', (SELECT count(*) FROM (SELECT 1 FROM {offers} WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s LIMIT {count_limit}) n) --? source
UNION ALL SELECT 'availability', (SELECT count(*) FROM (SELECT 1 FROM {offers} WHERE org = %(org)s AND livemode = %(livemode)s AND availability = %(availability)s LIMIT {count_limit}) n) --? availability
UNION ALL SELECT 'sku', (SELECT count(*) * {count_limit} / {sort_limit} FROM (SELECT 1 FROM ({variants_with_sku}) m LEFT JOIN LATERAL (SELECT 1 FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = m.id OFFSET 0) f ON true LIMIT {sort_limit}) n) --? sku
UNION ALL SELECT 'mpn', (SELECT count(*) * {count_limit} / {sort_limit} FROM (SELECT 1 FROM ({variants_with_mpn}) m LEFT JOIN LATERAL (SELECT 1 FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = m.id OFFSET 0) f ON true LIMIT {sort_limit}) n) --? mpn
UNION ALL SELECT 'gtin', (SELECT count(*) * {count_limit} / {sort_limit} FROM (SELECT 1 FROM ({variants_with_gtin}) m LEFT JOIN LATERAL (SELECT 1 FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = m.id OFFSET 0) f ON true LIMIT {sort_limit}) n) --? gtin
UNION ALL SELECT 'external_id', (SELECT count(*) * {count_limit} / {sort_limit} FROM (SELECT 1 FROM ({variants_with_external_id}) m LEFT JOIN LATERAL (SELECT 1 FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.variant = m.id OFFSET 0) f ON true LIMIT {sort_limit}) n) --? external_id
UNION ALL SELECT 'updated_since', (SELECT count(*) * {count_limit} / {max_sorted_products} FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND updated_at >= %(updated_since)s ORDER BY updated_at DESC LIMIT {max_sorted_products}) n) --? updated_since

-- scan_offers --
SELECT * FROM {offers} WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))) --? by_id
    AND variant = ANY (ARRAY(SELECT m.id FROM ({variants_with_sku}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'sku' = m.exact)) --? by_sku
    AND variant = ANY (ARRAY(SELECT m.id FROM ({variants_with_mpn}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'mpn' = m.exact OR convert_from(m.home_data, 'UTF8')::json ->> 'mpn' = m.exact)) --? by_mpn
    AND variant = ANY (ARRAY(SELECT m.id FROM ({variants_with_gtin}) m)) --? by_gtin
    AND variant = ANY (ARRAY(SELECT m.id FROM ({variants_with_external_id}) m)) --? by_external_id
    AND variant = (SELECT coalesce(m.merged_into, m.id) FROM {variants} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = %(variant)s) --? by_variant
    AND product = (SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = %(product)s) --? by_product
    AND source = %(source)s --? by_source
    AND availability = %(availability)s --? by_availability
    AND product = ANY (ARRAY(SELECT id FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND updated_at >= %(updated_since)s ORDER BY updated_at DESC LIMIT {max_sorted_products})) --? by_updated_since
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {scan_limit} --? forwards
ORDER BY id ASC LIMIT {scan_limit} --? backwards

-- list_offers --
-- Recent changes are found by the products, whose updated_at changes with their offers; offers.updated_at has no index.
SELECT o.id, o.variant, o.product, o.source, o.location, o.currency, o.cost, o.msrp, o.map, o.price, o.compare_at,
       o.quantity, o.incoming, o.availability, o.lead_time_days, o.version, o.stated, o.observed_at, o.updated_at,
       o.withdrawn_at, p.catalogue, CASE WHEN octet_length(p.data) <= %(max_data_bytes)s THEN p.data END,
       CASE WHEN octet_length(v.data) <= %(max_data_bytes)s THEN v.data
           ELSE convert_to(json_build_object('sku', convert_from(v.data, 'UTF8')::json ->> 'sku')::text, 'UTF8') END,
       CASE WHEN o.home_product IS NULL THEN p.key ELSE (SELECT h.key FROM {products} h WHERE h.org = %(org)s AND h.livemode = %(livemode)s AND h.id = o.home_product) END,
       CASE WHEN o.home_variant IS NULL THEN v.key ELSE (SELECT h.key FROM {variants} h WHERE h.org = %(org)s AND h.livemode = %(livemode)s AND h.id = o.home_variant) END,
       o.view
FROM (
    SELECT w.* FROM (
{scan_offers}
    ) w WHERE true
        AND w.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))) --? id
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND (v.id = w.variant OR v.merged_into = w.variant) AND {is_sku} LIMIT 1) --? sku
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND (v.id = w.variant OR v.merged_into = w.variant) AND {is_mpn} LIMIT 1) --? mpn
        AND (SELECT true FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND (v.id = w.variant OR v.merged_into = w.variant) AND {is_gtin} LIMIT 1) --? gtin
        AND (SELECT true FROM (SELECT p.key FROM {products} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND (p.id = w.product OR p.merged_into = w.product) UNION ALL SELECT v.key FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND (v.id = w.variant OR v.merged_into = w.variant)) k WHERE k.key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(external_id)s))) LIMIT 1) --? external_id
        AND w.variant = (SELECT coalesce(m.merged_into, m.id) FROM {variants} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = %(variant)s) --? variant
        AND w.product = (SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = %(product)s) --? product
        AND w.source = %(source)s --? source
        AND w.availability = %(availability)s --? availability
        AND w.updated_at >= %(updated_since)s --? updated_since
    ORDER BY w.id DESC LIMIT {limit} --? forwards
    ORDER BY w.id ASC LIMIT {limit} --? backwards
) o
JOIN {products} p ON p.org = %(org)s AND p.livemode = %(livemode)s AND p.id = o.product
JOIN {variants} v ON v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = o.variant
ORDER BY o.id DESC --? forwards
ORDER BY o.id ASC --? backwards

-- find_offers_scan_end --
SELECT id FROM (
{scan_offers}
) w
ORDER BY id DESC OFFSET {scan_limit} - 1 LIMIT 1 --? forwards
ORDER BY id ASC OFFSET {scan_limit} - 1 LIMIT 1 --? backwards
