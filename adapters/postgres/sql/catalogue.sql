-- product --
SELECT product, body, etag FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = %(id)s

-- documents --
SELECT product, body, etag FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own'

-- filtered --
SELECT d.product, d.body, d.etag FROM (
    SELECT p.id FROM products p WHERE p.org = %(org)s AND p.livemode = %(livemode)s

-- filtered_end --
) chosen
JOIN product_documents d ON d.org = %(org)s AND d.livemode = %(livemode)s AND d.view = 'own' AND d.product = chosen.id

-- own_catalogue --
SELECT CASE WHEN %(livemode)s THEN live_catalogue ELSE test_catalogue END FROM organisations WHERE id = %(org)s

-- offers --
SELECT o.id, o.variant, o.product, o.source, o.location, o.currency, o.cost, o.msrp, o.map, o.price, o.compare_at,
       o.quantity, o.incoming, o.availability, o.lead_time_days, o.version, o.stated, o.observed_at, o.updated_at,
       o.withdrawn_at, p.catalogue, p.data, v.data
FROM offers o
JOIN products p ON p.org = o.org AND p.livemode = o.livemode AND p.id = o.product
JOIN variants v ON v.org = o.org AND v.livemode = o.livemode AND v.id = o.variant
WHERE o.org = %(org)s AND o.livemode = %(livemode)s
