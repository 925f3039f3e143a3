-- create_pair_staging_table --
CREATE TEMPORARY TABLE IF NOT EXISTS new_match_pairs (id text COLLATE "C", status text COLLATE "C", left_variant text COLLATE "C",
    left_product text COLLATE "C", right_variant text COLLATE "C", right_product text COLLATE "C", probability double precision,
    prior double precision, evidence jsonb, conflicts text[], created_at timestamptz, updated_at timestamptz, judgement jsonb,
    merge text COLLATE "C", held boolean) ON COMMIT DELETE ROWS

-- copy_match_pairs --
COPY new_match_pairs ({pair}) FROM STDIN (FORMAT binary)

-- add_pairs --
INSERT INTO match_pairs (org, livemode, {pair}) SELECT %(org)s, %(livemode)s, {pair} FROM new_match_pairs
ON CONFLICT (org, livemode, id) DO NOTHING

-- list_pairs --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = %(status)s --? status
    AND (left_variant = %(variant)s OR right_variant = %(variant)s) --? variant
    AND (left_product = %(product)s OR right_product = %(product)s) --? product
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- find_pairs_of_variants --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS requested (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = requested.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = requested.variant
    ) p))
ORDER BY id

-- lock_pairs_of_variants --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS requested (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = requested.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = requested.variant
    ) p))
ORDER BY id FOR UPDATE

-- lock_open_pairs --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'open'
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS requested (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = requested.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = requested.variant
    ) p))
ORDER BY id FOR UPDATE

-- list_unjudged --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = 'open' AND NOT held AND judgement IS NULL
ORDER BY probability DESC, id LIMIT %(limit)s

-- list_certain --
-- Open pairs that a bulk merge may merge, most likely first; pairs whose merge a person has undone are held.
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = 'open' AND NOT held AND conflicts = '{}'
    AND probability >= %(min_probability)s AND created_at <= %(until)s
    AND NOT id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(omitted)s)))
ORDER BY probability DESC, id LIMIT %(limit)s

-- sample_certain --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = 'open' AND NOT held AND conflicts = '{}' AND probability >= %(min_probability)s
ORDER BY probability, id DESC LIMIT %(limit)s

-- count_certain --
SELECT count(*) FROM (
    SELECT 1 FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
        AND status = 'open' AND NOT held AND conflicts = '{}' AND probability >= %(min_probability)s
    LIMIT %(limit)s
) n

-- list_merges --
SELECT {merge} FROM merges WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = %(status)s --? status
    AND kind = %(kind)s --? kind
    AND survivor = %(survivor)s --? survivor
    AND merged = %(merged)s --? merged
    AND pair = %(pair)s --? pair
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- find_applied_merges --
-- The rows are looked up one by one (see catalogue_batch.sql).
SELECT {merge} FROM jsonb_array_elements_text(%(ids)s) AS requested (merged_id) CROSS JOIN LATERAL (
    SELECT * FROM merges WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'applied' AND merged = requested.merged_id OFFSET 0
) m ORDER BY id

-- create_index_staging_tables --
CREATE TEMPORARY TABLE IF NOT EXISTS new_match_items (variant text COLLATE "C", number integer, product text COLLATE "C",
    source text COLLATE "C", stamp bigint, facts bytea) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS new_match_keys (key text COLLATE "C", source text COLLATE "C", items integer, numbers bytea,
    codes integer, stems integer)
    ON COMMIT DELETE ROWS

-- copy_match_items --
COPY new_match_items (variant, number, product, source, stamp, facts) FROM STDIN (FORMAT binary)

-- copy_match_keys --
COPY new_match_keys (key, source, items, numbers, codes, stems) FROM STDIN (FORMAT binary)

-- list_unindexed --
SELECT q.variant, q.stamp, q.again FROM match_queue q
LEFT JOIN LATERAL (
    SELECT stamp FROM match_items
    WHERE org = %(org)s AND livemode = %(livemode)s AND variant = q.variant OFFSET 0
) i ON true
WHERE q.org = %(org)s AND q.livemode = %(livemode)s AND q.variant > %(after_id)s AND q.stamp IS DISTINCT FROM i.stamp
ORDER BY q.variant LIMIT %(limit)s

-- list_matchable --
SELECT q.variant, q.stamp, q.again FROM match_queue q
CROSS JOIN LATERAL (
    SELECT stamp FROM match_items
    WHERE org = %(org)s AND livemode = %(livemode)s AND variant = q.variant OFFSET 0
) i
WHERE q.org = %(org)s AND q.livemode = %(livemode)s AND q.variant > %(after_id)s AND q.stamp = i.stamp
ORDER BY q.variant LIMIT %(limit)s

-- has_queued_variants --
SELECT 1 FROM match_queue WHERE org = %(org)s AND livemode = %(livemode)s LIMIT 1

-- load_variants --
-- Values of the sources, not of the merged view.
SELECT v.id, p.id, v.source, coalesce(p.home_data, p.data), coalesce(v.home_data, v.data) FROM variants v
JOIN products p ON p.org = v.org AND p.livemode = v.livemode AND p.id = coalesce(v.home_product, v.product)
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY v.id

-- list_single_variants --
SELECT v.id, p.id, v.source, coalesce(p.home_data, p.data), coalesce(v.home_data, v.data) FROM products p
CROSS JOIN LATERAL (
    SELECT min(id) AS id FROM variants
    WHERE org = %(org)s AND livemode = %(livemode)s AND (product = p.id AND home_product IS NULL OR home_product = p.id)
    HAVING count(*) = 1
) single
JOIN variants v ON v.org = %(org)s AND v.livemode = %(livemode)s AND v.id = single.id
WHERE p.org = %(org)s AND p.livemode = %(livemode)s AND p.source = %(source)s AND p.id > %(after)s
    AND coalesce(p.home_status, p.status) = 'active'
ORDER BY p.id LIMIT %(limit)s

-- find_shown_products --
SELECT id, coalesce(merged_into, id) FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- list_offers_of_variants --
SELECT coalesce(home_variant, variant), id, currency, price, msrp, map FROM offers
WHERE org = %(org)s AND livemode = %(livemode)s AND withdrawn_at IS NULL
    AND (variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND home_variant IS NULL
        OR home_variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))))

-- find_items_of_variants --
SELECT variant, product, source, stamp, facts, number FROM match_items
WHERE org = %(org)s AND livemode = %(livemode)s AND variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY variant

-- find_items_by_number --
SELECT variant, product, source, stamp, facts, number FROM match_items
WHERE org = %(org)s AND livemode = %(livemode)s
    AND number = ANY(ARRAY(SELECT value::integer FROM jsonb_array_elements_text(%(numbers)s)))

-- find_last_number --
SELECT max(number) FROM match_items WHERE org = %(org)s AND livemode = %(livemode)s

-- find_listings --
SELECT key, source, items, numbers, codes, stems FROM match_keys
WHERE org = %(org)s AND livemode = %(livemode)s AND key = ANY(ARRAY(SELECT jsonb_array_elements_text(%(keys)s)))

-- save_items --
INSERT INTO match_items (org, livemode, variant, number, product, source, stamp, facts)
SELECT %(org)s, %(livemode)s, variant, number, product, source, stamp, facts FROM new_match_items ORDER BY number
ON CONFLICT (org, livemode, variant) DO UPDATE SET product = excluded.product, source = excluded.source,
    stamp = excluded.stamp, facts = excluded.facts

-- replace_listed_numbers --
UPDATE match_keys k SET numbers = decode(r.numbers, 'hex')
FROM jsonb_to_recordset(%(rows)s) AS r (key text, source text, numbers text)
WHERE k.org = %(org)s AND k.livemode = %(livemode)s AND k.key = r.key AND k.source = r.source

-- save_keys --
INSERT INTO match_keys AS k (org, livemode, key, source, items, numbers, codes, stems)
SELECT %(org)s, %(livemode)s, key, source, items, CASE WHEN items <= {max_listed_items} THEN numbers END, codes, stems FROM new_match_keys
ORDER BY key, source
ON CONFLICT (org, livemode, key, source) DO UPDATE SET items = k.items + excluded.items,
    codes = k.codes + excluded.codes, stems = k.stems + excluded.stems,
    numbers = CASE WHEN k.items = 0 THEN excluded.numbers
        WHEN k.items + excluded.items <= {max_listed_items} THEN k.numbers || excluded.numbers END

-- dequeue --
DELETE FROM match_queue q USING jsonb_to_recordset(%(rows)s) AS r (variant text, stamp bigint)
WHERE q.org = %(org)s AND q.livemode = %(livemode)s AND q.variant = r.variant AND q.stamp = r.stamp

-- requeue --
INSERT INTO match_queue (org, livemode, variant, stamp, again)
SELECT org, livemode, variant, stamp, true FROM match_items
WHERE org = %(org)s AND livemode = %(livemode)s AND variant = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY variant
ON CONFLICT DO NOTHING

-- requeue_products --
INSERT INTO match_queue (org, livemode, variant, stamp, again)
SELECT i.org, i.livemode, i.variant, i.stamp, true
FROM variants v JOIN match_items i ON i.org = v.org AND i.livemode = v.livemode AND i.variant = v.id
WHERE v.org = %(org)s AND v.livemode = %(livemode)s AND v.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY i.variant
ON CONFLICT DO NOTHING

-- requeue_all --
INSERT INTO match_queue (org, livemode, variant, stamp, again)
SELECT org, livemode, variant, stamp, true FROM match_items
WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY variant
ON CONFLICT DO NOTHING

-- delete_model --
DELETE FROM match_models WHERE org = %(org)s AND livemode = %(livemode)s

-- find_model --
SELECT items, weights, learnt_at FROM match_models WHERE org = %(org)s AND livemode = %(livemode)s

-- store_model --
INSERT INTO match_models (org, livemode, items, weights, learnt_at)
VALUES (%(org)s, %(livemode)s, %(items)s, %(weights)s, %(learnt_at)s)
ON CONFLICT (org, livemode) DO UPDATE SET items = excluded.items, weights = excluded.weights, learnt_at = excluded.learnt_at

-- measure_backlog --
-- Counts the queued variants of all tenants on the node.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(queued_at)), 0)::float8 FROM here.match_queue AS q
