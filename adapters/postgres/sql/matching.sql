-- staging --
CREATE TEMPORARY TABLE IF NOT EXISTS new_match_pairs (id text COLLATE "C", status text COLLATE "C", left_variant text COLLATE "C",
    left_product text COLLATE "C", right_variant text COLLATE "C", right_product text COLLATE "C", probability double precision,
    prior double precision, evidence jsonb, conflicts text[], created_at timestamptz, updated_at timestamptz, judgement jsonb,
    merge text COLLATE "C", held boolean) ON COMMIT DELETE ROWS

-- copy_pairs --
COPY new_match_pairs ({pair}) FROM STDIN (FORMAT binary)

-- add_pairs --
INSERT INTO match_pairs (org, livemode, {pair}) SELECT %(org)s, %(livemode)s, {pair} FROM new_match_pairs
ON CONFLICT (org, livemode, id) DO NOTHING

-- pairs --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = %(status)s --? status
    AND (left_variant = %(variant)s OR right_variant = %(variant)s) --? variant
    AND (left_product = %(product)s OR right_product = %(product)s) --? product
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- pairs_of --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS sought (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = sought.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = sought.variant
    ) p))
ORDER BY id

-- pairs_of_locked --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS sought (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = sought.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = sought.variant
    ) p))
ORDER BY id FOR UPDATE

-- open_of --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'open'
    AND id = ANY(ARRAY(SELECT p.id FROM jsonb_array_elements_text(%(ids)s) AS sought (variant) CROSS JOIN LATERAL (
        SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND left_variant = sought.variant
        UNION ALL SELECT id FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s AND right_variant = sought.variant
    ) p))
ORDER BY id FOR UPDATE

-- unjudged --
SELECT {pair} FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = 'open' AND NOT held AND judgement IS NULL
ORDER BY probability DESC, id LIMIT %(most)s

-- merges --
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

-- applied --
-- One by one: see catalogue_batch.sql.
SELECT {merge} FROM jsonb_array_elements_text(%(ids)s) AS sought (of_id) CROSS JOIN LATERAL (
    SELECT * FROM merges WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'applied' AND merged = sought.of_id OFFSET 0
) m ORDER BY id
