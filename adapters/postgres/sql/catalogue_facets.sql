-- Lists of products by facets, in any order, and counts of facets. For the lines that end in `--?` and the names in braces see catalogue.sql.
-- Values of facets are checked in the rows of a scan; words are looked up by product.

-- code_products --
SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.sku_code = %(code)s UNION ALL SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.mpn_code = %(code)s UNION ALL SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.gtin_key = %(gtin_code)s

-- gathered_products --
SELECT t.product FROM unnest(%(scanned_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT p.product FROM {product_terms} p WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.term = s.term ORDER BY p.product DESC LIMIT {gather_limit}) t

-- scan --
-- The rows that are checked: those of the most selective filter, or all rows in the order of the list up to a limit.
SELECT f.* --? facets
SELECT f.*, p.updated_at --? updated
FROM {facets} f --? facets
FROM {products} p JOIN {facets} f ON f.org = %(org)s AND f.livemode = %(livemode)s AND f.product = p.id --? updated
WHERE f.org = %(org)s AND f.livemode = %(livemode)s --? facets
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.merged_into IS NULL --? updated
    AND {id} = ANY (ARRAY({gathered_products})) --? by_terms
    AND {id} = ANY (ARRAY({gathered_products} UNION {code_products})) --? by_words
    AND {id} = ANY (ARRAY(SELECT b.id FROM {products} b WHERE b.org = %(org)s AND b.livemode = %(livemode)s AND b.brand_key = ANY (%(brands)s))) --? by_brands
    AND {id} = ANY (ARRAY(SELECT u.id FROM {products} u WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND u.updated_at >= %(updated_since)s)) --? by_updated_since
    AND f.price_key >= %(least_key)s AND f.price_key <= %(most_key)s --? by_price
    AND {id} = ANY (ARRAY(SELECT coalesce(m.merged_into, m.id) FROM {products} m WHERE m.org = %(org)s AND m.livemode = %(livemode)s AND m.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s))))) --? id
    AND {id} = ANY (ARRAY(SELECT v.product FROM {variants} v WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(variant)s))))) --? variant
    AND {id} = ANY (ARRAY(SELECT o.product FROM {offers} o WHERE o.org = %(org)s AND o.livemode = %(livemode)s AND o.id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(offer)s))))) --? offer
    AND {id} = ANY (ARRAY(SELECT m.product FROM ({variants_with_sku}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'sku' = m.exact)) --? sku
    AND {id} = ANY (ARRAY(SELECT m.product FROM ({variants_with_mpn}) m WHERE convert_from(m.data, 'UTF8')::json ->> 'mpn' = m.exact)) --? mpn
    AND {id} = ANY (ARRAY(SELECT m.product FROM ({variants_with_gtin}) m)) --? gtin
    AND {id} = ANY (ARRAY(SELECT m.product FROM ({products_with_external_id}) m)) --? external_id
    AND f.product < %(page_key)s --? newest after
    AND f.product > %(page_key)s --? newest before
    AND p.updated_at <= %(page_value)s AND (p.updated_at, p.id) < (%(page_value)s, %(page_key)s) --? updated after
    AND (f.title_key, f.product) > (%(page_value)s, %(page_key)s) --? title after
    AND f.price_key IS NOT NULL --? priced
    AND (f.price_key, f.product) > (%(page_value)s, %(page_key)s) --? price_low priced after
    AND (f.price_key, f.product) < (%(page_value)s, %(page_key)s) --? price_high priced after
    AND f.price_key IS NULL --? unpriced
    AND f.product < %(page_key)s --? unpriced after
ORDER BY f.product DESC --? newest forwards
ORDER BY f.product ASC --? newest backwards
ORDER BY p.updated_at DESC, p.id DESC --? updated forwards
ORDER BY f.title_key, f.product --? title forwards
ORDER BY f.price_key, f.product --? price_low priced forwards
ORDER BY f.price_key DESC, f.product DESC --? price_high priced forwards
ORDER BY f.product DESC --? unpriced forwards
LIMIT {scan_limit} --? ordered
LIMIT {limit} --? unfiltered

-- conditions --
    AND w.status = ANY (%(status)s) --? status
    AND w.brand_key = ANY (%(brands)s) --? brands
    AND w.category = ANY (%(category)s) --? category
    AND w.availabilities & %(availability)s::integer <> 0 --? availability
    AND w.sources && %(source)s::text[] --? source
    AND w.colours & %(colour)s::integer <> 0 --? colour
    AND w.finishes & %(finish)s::integer <> 0 --? finish
    AND w.completeness + CASE WHEN w.is_priced THEN {price_points} ELSE 0 END = ANY (%(completeness)s::integer[]) --? completeness
    AND w.currency = %(currency)s AND w.price >= %(least)s AND w.price <= %(most)s --? price

-- fixed_conditions --
    AND w.catalogue = %(catalogue)s --? catalogue
    AND (SELECT true FROM {products} u WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND u.id = w.product AND u.updated_at >= %(updated_since)s) --? updated_since
    AND (w.product = ANY (ARRAY({code_products})) OR true --? words
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word0)s) LIMIT 1) --? word0
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word1)s) LIMIT 1) --? word1
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word2)s) LIMIT 1) --? word2
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word3)s) LIMIT 1) --? word3
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word4)s) LIMIT 1) --? word4
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word5)s) LIMIT 1) --? word5
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word6)s) LIMIT 1) --? word6
        AND (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(word7)s) LIMIT 1) --? word7
    ) --? words
    AND false --? no_word
    AND NOT coalesce(w.product = ANY (ARRAY({code_products})) OR (SELECT count(*) = %(exact_count)s FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = w.product AND t.term = ANY (%(exact_words)s)), false) --? inexact

-- list_products_by_facets --
SELECT d.product, CASE WHEN octet_length(d.body) <= %(max_document_bytes)s THEN d.body END, d.etag
    , chosen.title_key --? title
    , chosen.updated_at --? updated
    , chosen.price_key --? priced
FROM (
    SELECT w.* FROM (
{scan}
    ) w WHERE true
{conditions}
{fixed_conditions}
    ORDER BY w.product DESC LIMIT {limit} --? newest forwards
    ORDER BY w.product ASC LIMIT {limit} --? newest backwards
    ORDER BY w.updated_at DESC, w.product DESC LIMIT {limit} --? updated forwards
    ORDER BY w.title_key, w.product LIMIT {limit} --? title forwards
    ORDER BY w.price_key, w.product LIMIT {limit} --? price_low priced forwards
    ORDER BY w.price_key DESC, w.product DESC LIMIT {limit} --? price_high priced forwards
    ORDER BY w.product DESC LIMIT {limit} --? unpriced forwards
) chosen
JOIN {product_documents} d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = chosen.product
ORDER BY d.product DESC --? newest forwards
ORDER BY d.product ASC --? newest backwards
ORDER BY chosen.updated_at DESC, d.product DESC --? updated forwards
ORDER BY chosen.title_key, d.product --? title forwards
ORDER BY chosen.price_key, d.product --? price_low priced forwards
ORDER BY chosen.price_key DESC, d.product DESC --? price_high priced forwards
ORDER BY d.product DESC --? unpriced forwards

-- find_facets_scan_end --
SELECT w.product
    , w.title_key --? title
    , w.updated_at --? updated
    , w.price_key --? priced
FROM (
{scan}
) w
ORDER BY w.product DESC OFFSET {scan_limit} - 1 LIMIT 1 --? newest forwards
ORDER BY w.product ASC OFFSET {scan_limit} - 1 LIMIT 1 --? newest backwards
ORDER BY w.updated_at DESC, w.product DESC OFFSET {scan_limit} - 1 LIMIT 1 --? updated forwards
ORDER BY w.title_key, w.product OFFSET {scan_limit} - 1 LIMIT 1 --? title forwards
ORDER BY w.price_key, w.product OFFSET {scan_limit} - 1 LIMIT 1 --? price_low priced forwards
ORDER BY w.price_key DESC, w.product DESC OFFSET {scan_limit} - 1 LIMIT 1 --? price_high priced forwards
ORDER BY w.product DESC OFFSET {scan_limit} - 1 LIMIT 1 --? unpriced forwards

-- count_products_by_terms --
-- Number of products per filter, counted up to a limit, to find the most selective filter. The empty filter stands for a scan of all rows, which is
-- preferred if each filter has many.
SELECT '' AS filter, {gather_limit} AS size
UNION ALL SELECT 'word0', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word0)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word0
UNION ALL SELECT 'word1', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word1)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word1
UNION ALL SELECT 'word2', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word2)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word2
UNION ALL SELECT 'word3', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word3)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word3
UNION ALL SELECT 'word4', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word4)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word4
UNION ALL SELECT 'word5', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word5)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word5
UNION ALL SELECT 'word6', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word6)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word6
UNION ALL SELECT 'word7', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(word7)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? word7
UNION ALL SELECT 'category', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(category_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? category
UNION ALL SELECT 'availability', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(availability_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? availability
UNION ALL SELECT 'source', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(source_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? source
UNION ALL SELECT 'catalogue', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(catalogue_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? catalogue
UNION ALL SELECT 'colour', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(colour_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? colour
UNION ALL SELECT 'finish', (SELECT count(*) FROM (SELECT 1 FROM unnest(%(finish_terms)s::text[]) AS s (term) CROSS JOIN LATERAL (SELECT 1 FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT {gather_limit}) m LIMIT {gather_limit}) n) --? finish
UNION ALL SELECT 'brands', (SELECT count(*) FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND brand_key = ANY (%(brands)s) LIMIT {gather_limit}) n) --? brands
UNION ALL SELECT 'price', (SELECT count(*) FROM (SELECT 1 FROM {facets} WHERE org = %(org)s AND livemode = %(livemode)s AND price_key >= %(least_key)s AND price_key <= %(most_key)s LIMIT {gather_limit}) n) --? price
UNION ALL SELECT 'updated_since', (SELECT count(*) FROM (SELECT 1 FROM {products} WHERE org = %(org)s AND livemode = %(livemode)s AND updated_at >= %(updated_since)s LIMIT {gather_limit}) n) --? updated_since

-- count_products --
SELECT count(*) FROM (
    SELECT 1 FROM (
{scan}
    ) w WHERE true
{conditions}
{fixed_conditions}
    LIMIT {limit}
) n

-- count_facets --
-- `failed` has a bit for each filter that the product does not match. The values of a filter are counted in the products that match all other filters.
WITH base AS MATERIALIZED (
    SELECT m.* FROM (
        SELECT w.*, 0
            + CASE WHEN w.status = ANY (%(status)s) THEN 0 ELSE 1 END --? status
            + CASE WHEN w.brand_key = ANY (%(brands)s) THEN 0 ELSE 2 END --? brands
            + CASE WHEN w.category = ANY (%(category)s) THEN 0 ELSE 4 END --? category
            + CASE WHEN w.availabilities & %(availability)s::integer <> 0 THEN 0 ELSE 8 END --? availability
            + CASE WHEN w.sources && %(source)s::text[] THEN 0 ELSE 16 END --? source
            + CASE WHEN w.colours & %(colour)s::integer <> 0 THEN 0 ELSE 32 END --? colour
            + CASE WHEN w.finishes & %(finish)s::integer <> 0 THEN 0 ELSE 64 END --? finish
            + CASE WHEN w.completeness + CASE WHEN w.is_priced THEN {price_points} ELSE 0 END = ANY (%(completeness)s::integer[]) THEN 0 ELSE 128 END --? completeness
            + CASE WHEN w.currency = %(currency)s AND w.price >= %(least)s AND w.price <= %(most)s THEN 0 ELSE 256 END --? price
            AS failed
        FROM (
{scan}
        ) w WHERE true
{fixed_conditions}
    ) m WHERE m.failed & (m.failed - 1) = 0
    LIMIT {counted_limit} + 1
), counted AS MATERIALIZED (SELECT * FROM base LIMIT {counted_limit})
SELECT 'counted' AS facet, NULL AS value, count(*) FILTER (WHERE failed = 0) AS count, NULL::bigint AS lowest, NULL::bigint AS highest FROM counted
UNION ALL SELECT 'all', NULL, count(*), NULL, NULL FROM base
UNION ALL SELECT 'status', status, count(*), NULL, NULL FROM counted WHERE failed & ~1 = 0 GROUP BY status
UNION ALL (SELECT 'brand', brand_key || ' ' || max(product), count(*), NULL, NULL FROM counted WHERE failed & ~2 = 0 AND brand_key IS NOT NULL GROUP BY brand_key ORDER BY count(*) DESC, brand_key LIMIT {max_values})
UNION ALL SELECT 'category', category, count(*), NULL, NULL FROM counted WHERE failed & ~4 = 0 AND category IS NOT NULL GROUP BY category
UNION ALL SELECT 'availability', availabilities::text, count(*), NULL, NULL FROM counted WHERE failed & ~8 = 0 GROUP BY availabilities
UNION ALL SELECT 'source', s.source, count(*), NULL, NULL FROM counted, unnest(sources) AS s (source) WHERE failed & ~16 = 0 GROUP BY s.source
UNION ALL SELECT 'colour', colours::text, count(*), NULL, NULL FROM counted WHERE failed & ~32 = 0 GROUP BY colours
UNION ALL SELECT 'finish', finishes::text, count(*), NULL, NULL FROM counted WHERE failed & ~64 = 0 GROUP BY finishes
UNION ALL SELECT 'completeness', (completeness + CASE WHEN is_priced THEN {price_points} ELSE 0 END)::text, count(*), NULL, NULL FROM counted WHERE failed & ~128 = 0 GROUP BY 2
UNION ALL SELECT 'price', currency, count(*), min(price), max(price) FROM counted WHERE failed & ~256 = 0 AND currency IS NOT NULL GROUP BY currency

-- list_brand_spellings --
-- Brands of the given products as they are written.
SELECT id, convert_from(data, 'UTF8')::json ->> 'brand' FROM {products}
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY (%(ids)s)

-- exceeds_counted_rows --
SELECT count(*) > {counting_scan_limit} FROM (
    SELECT 1 FROM {facets} WHERE org = %(org)s AND livemode = %(livemode)s LIMIT {counting_scan_limit} + 1
) n

-- find_existing_terms --
SELECT s.term FROM jsonb_array_elements_text(%(terms)s) AS s (term)
WHERE (SELECT true FROM {product_terms} t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.term = s.term LIMIT 1)
