-- get_image --
SELECT id, content, key, bytes, width, height, created_at, renditions FROM images i
WHERE i.org = %(org)s AND i.livemode = %(livemode)s AND i.id = %(id)s AND EXISTS (
    SELECT FROM image_addresses a JOIN image_uses u ON u.org = a.org AND u.livemode = a.livemode AND u.address = a.address
    WHERE a.org = %(org)s AND a.livemode = %(livemode)s AND a.image = i.id)
UNION ALL
(SELECT id, content, key, bytes, width, height, created_at, renditions FROM published_images
WHERE livemode = %(livemode)s AND id = %(id)s AND org <> %(org)s LIMIT 1)

-- list_changed_products --
SELECT id, coalesce(home_data, data) FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND source = %(source)s AND updated_at >= %(since)s
    AND (%(before)s::text IS NULL OR id < %(before)s)
ORDER BY id DESC LIMIT %(limit)s

-- list_variant_data --
-- Values of the source, not of the merged view.
SELECT coalesce(home_product, product), coalesce(home_data, data) FROM variants
WHERE org = %(org)s AND livemode = %(livemode)s
    AND (product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND home_product IS NULL
        OR home_product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))))
ORDER BY id

-- add_addresses --
-- Existing rows are locked even if they do not change, so that a concurrent download waits and sees the new uses. New rows
-- get an old checked_at, so that they are downloaded now.
INSERT INTO image_addresses AS a (org, livemode, address, url, host, run, due_at, checked_at)
SELECT %(org)s, %(livemode)s, r.address, r.url, r.host, %(run)s, %(now)s, %(fetched_before)s
FROM jsonb_to_recordset(%(rows)s) AS r (address text, url text, host text) ORDER BY r.address
ON CONFLICT (org, livemode, address) DO UPDATE SET due_at = excluded.due_at, tries = 0, run = excluded.run
WHERE a.due_at IS NULL AND a.checked_at < excluded.checked_at

-- delete_outdated_uses --
DELETE FROM image_uses u
WHERE u.org = %(org)s AND u.livemode = %(livemode)s
    AND u.product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(products)s)))
    AND (u.product, u.address) NOT IN (
        SELECT r.product, r.address FROM jsonb_to_recordset(%(uses)s) AS r (product text, address text))
RETURNING u.address

-- add_uses --
INSERT INTO image_uses (org, livemode, product, address, stale)
SELECT %(org)s, %(livemode)s, r.product, r.address, r.address = ANY(ARRAY(SELECT jsonb_array_elements_text(%(with_image)s)))
FROM jsonb_to_recordset(%(uses)s) AS r (product text, address text) ORDER BY r.product, r.address
ON CONFLICT DO NOTHING

-- list_addresses_with_image --
SELECT address FROM image_addresses
WHERE org = %(org)s AND livemode = %(livemode)s AND image IS NOT NULL
    AND address = ANY(ARRAY(SELECT jsonb_array_elements_text(%(addresses)s)))

-- lock_addresses --
SELECT address FROM image_addresses
WHERE org = %(org)s AND livemode = %(livemode)s AND address = ANY(ARRAY(SELECT jsonb_array_elements_text(%(addresses)s)))
ORDER BY address FOR UPDATE

-- delete_unused_addresses --
DELETE FROM image_addresses a
WHERE a.org = %(org)s AND a.livemode = %(livemode)s
    AND a.address = ANY(ARRAY(SELECT jsonb_array_elements_text(%(addresses)s)))
    AND NOT EXISTS (
        SELECT FROM image_uses u WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND u.address = a.address)
RETURNING a.image

-- lock_images --
SELECT id FROM images
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(images)s)))
ORDER BY id FOR UPDATE

-- delete_unused_images --
DELETE FROM images i
WHERE i.org = %(org)s AND i.livemode = %(livemode)s AND i.id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(images)s)))
    AND NOT EXISTS (
        SELECT FROM image_addresses a WHERE a.org = %(org)s AND a.livemode = %(livemode)s AND a.image = i.id)
RETURNING i.key, i.renditions

-- list_due --
SELECT address, url, host, run, tries, image, etag, last_modified FROM image_addresses
WHERE org = %(org)s AND livemode = %(livemode)s AND host = %(host)s AND due_at <= %(now)s
ORDER BY due_at, address LIMIT %(limit)s

-- find_next_due --
SELECT min(due_at) FROM image_addresses
WHERE org = %(org)s AND livemode = %(livemode)s AND host = %(host)s AND due_at IS NOT NULL

-- lock_by_content --
SELECT id, content, key, bytes, width, height, created_at, renditions FROM images
WHERE org = %(org)s AND livemode = %(livemode)s AND content = %(content)s FOR UPDATE

-- add --
INSERT INTO images (org, livemode, id, content, key, bytes, width, height, created_at, renditions)
VALUES (%(org)s, %(livemode)s, %(id)s, %(content)s, %(key)s, %(bytes)s, %(width)s, %(height)s, %(created_at)s, %(renditions)s)
ON CONFLICT (org, livemode, content) DO NOTHING

-- lock_image_url --
SELECT image FROM image_addresses
WHERE org = %(org)s AND livemode = %(livemode)s AND address = %(address)s FOR UPDATE

-- record_image --
UPDATE image_addresses SET image = %(image)s, etag = %(etag)s, last_modified = %(last_modified)s, tries = 0, failure = NULL,
    due_at = NULL, checked_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND address = %(address)s

-- mark_uses_stale --
UPDATE image_uses SET stale = true
WHERE org = %(org)s AND livemode = %(livemode)s AND address = %(address)s AND NOT stale

-- record_unchanged --
UPDATE image_addresses SET tries = 0, failure = NULL, due_at = NULL, checked_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND address = %(address)s

-- record_failure --
UPDATE image_addresses SET tries = %(tries)s, failure = %(failure)s, due_at = %(next_attempt_at)s, checked_at = %(now)s
WHERE org = %(org)s AND livemode = %(livemode)s AND address = %(address)s

-- record_origin_failure --
WITH due AS (
    SELECT address, tries FROM image_addresses
    WHERE org = %(org)s AND livemode = %(livemode)s AND host = %(host)s AND due_at <= %(now)s
        AND lower(left(url, length(%(origin)s))) = %(origin)s
    ORDER BY address FOR UPDATE
), failed AS (
    UPDATE image_addresses a
    SET tries = a.tries + 1, failure = %(failure)s, checked_at = %(now)s, due_at = retry.at
    FROM due LEFT JOIN unnest(%(retry_times)s::timestamptz[]) WITH ORDINALITY AS retry (at, number) ON retry.number = due.tries + 1
    WHERE a.org = %(org)s AND a.livemode = %(livemode)s AND a.address = due.address
    RETURNING a.run, a.due_at
)
SELECT run, count(*) FROM failed WHERE due_at IS NULL GROUP BY run ORDER BY run

-- postpone --
UPDATE image_addresses SET due_at = %(until)s
WHERE org = %(org)s AND livemode = %(livemode)s AND address = ANY(ARRAY(
    SELECT l.address FROM image_addresses l
    WHERE l.org = %(org)s AND l.livemode = %(livemode)s AND l.host = %(host)s AND l.due_at < %(until)s
    ORDER BY l.address FOR UPDATE))

-- list_stale_products --
SELECT DISTINCT product FROM image_uses
WHERE org = %(org)s AND livemode = %(livemode)s AND stale ORDER BY product LIMIT %(limit)s

-- lock_products --
-- Returns each product with the product that is shown for it after merges.
SELECT id, coalesce(merged_into, id) FROM products
WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- list_documents --
SELECT product, body FROM product_documents
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own'
    AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s)))

-- replace_document --
UPDATE product_documents SET body = %(body)s, etag = %(etag)s
WHERE org = %(org)s AND livemode = %(livemode)s AND view = 'own' AND product = %(product)s

-- mark_uses_current --
UPDATE image_uses SET stale = false
WHERE org = %(org)s AND livemode = %(livemode)s AND product = ANY(ARRAY(SELECT jsonb_array_elements_text(%(ids)s))) AND stale
