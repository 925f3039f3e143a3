-- Facets of stored products (domain/search/usecases.py).

-- lock_products_after --
SELECT id FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND id > %(after)s ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE

-- list_documents_with_sources --
SELECT d.product, d.body, ARRAY(
    SELECT t.term FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s AND t.product = d.product AND t.term >= 's:' AND t.term < 's;')
FROM product_documents d
WHERE d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- list_catalogues_of_copies --
SELECT id, catalogue FROM published_products WHERE livemode = %(livemode)s AND org = %(org)s AND id = ANY(%(products)s) AND merged_into IS NULL

-- add_terms_of_copies --
INSERT INTO published_terms (livemode, term, product, org, catalogue)
SELECT %(livemode)s, n.term, n.product, %(org)s, n.catalogue
FROM unnest(%(kept)s::text[], %(terms)s::text[], %(catalogues)s::text[]) AS n (product, term, catalogue)
ON CONFLICT (livemode, term, product) DO NOTHING
