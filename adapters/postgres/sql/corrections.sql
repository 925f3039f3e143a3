-- Corrections, and batches of them.

-- list_corrections_of_products --
SELECT {correction} FROM corrections
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- list_of_objects --
SELECT {correction} FROM corrections
WHERE org = %(org)s AND livemode = %(livemode)s AND object = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- save_feed_values --
UPDATE corrections c SET product = n.product, feed_value = n.feed_value, feed_state = n.feed_state,
    feed_changed_at = n.feed_changed_at, updated_at = n.updated_at
FROM jsonb_to_recordset(%(rows)s) AS n (id text, product text, feed_value text, feed_state text, feed_changed_at timestamptz,
    updated_at timestamptz)
WHERE c.org = %(org)s AND c.livemode = %(livemode)s
    AND c.id = ANY(ARRAY(SELECT r.id FROM jsonb_to_recordset(%(rows)s) AS r (id text))) AND c.id = n.id

-- remove_all --
DELETE FROM corrections
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- find_product --
-- The product to which the source of a product, variant or offer assigns it.
SELECT id FROM products WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(object)s
UNION ALL
SELECT coalesce(home_product, product) FROM variants WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(object)s
UNION ALL
SELECT coalesce(home_product, product) FROM offers WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(object)s

-- find_visible_products --
-- The products that readers see for these IDs.
SELECT DISTINCT coalesce(merged_into, id) FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- find_source --
SELECT id FROM sources WHERE org = %(org)s AND livemode = %(livemode)s AND connector = %(connector)s ORDER BY id LIMIT 1

-- count_by_state --
SELECT feed_state, count(*) FROM corrections
WHERE org = %(org)s AND livemode = %(livemode)s AND feed_state <> 'unchanged' GROUP BY feed_state

-- list_people --
SELECT DISTINCT made_by FROM corrections WHERE org = %(org)s AND livemode = %(livemode)s LIMIT 200

-- list_fields --
SELECT DISTINCT field FROM corrections WHERE org = %(org)s AND livemode = %(livemode)s LIMIT 500

-- list_changes --
SELECT product, object, field, before, after FROM correction_changes
WHERE org = %(org)s AND livemode = %(livemode)s AND batch = %(batch)s
    AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY product, object, field
