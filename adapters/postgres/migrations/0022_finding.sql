-- Products and variants are found by their source's key without naming the source, and variants by GTIN; documents tell the key.
-- What takes long comes first, while lists and products are read on; the locks that keep readers out come last.

-- Documents get `external_id` behind the id of the product and of each variant, as they are rendered from now on. They are cut where a
-- variant begins; what only looks so, names no variant of the product, and is put back.
UPDATE product_documents d
SET body = convert_to(told.body, 'UTF8'), etag = left(encode(sha256(convert_to(told.body, 'UTF8')), 'hex'), 24)
FROM (
    SELECT own.org, own.livemode, own.view, own.product, (
        SELECT string_agg(
            CASE
                WHEN part.number = 1 THEN overlay(part.text PLACING '"external_id":' || to_json(p.key) || ',' FROM 56 FOR 0)
                WHEN v.key IS NULL THEN '{"object":"variant","id":"' || part.text
                ELSE '{"object":"variant","id":"' || left(part.text, 28) || '"external_id":' || to_json(v.key) || ',' || substr(part.text, 29)
            END, '' ORDER BY part.number)
        FROM unnest(string_to_array(convert_from(own.body, 'UTF8'), '{"object":"variant","id":"')) WITH ORDINALITY AS part (text, number)
        LEFT JOIN variants v ON v.org = own.org AND v.livemode = own.livemode AND v.product = own.product AND v.id = left(part.text, 26)
    ) AS body
    FROM product_documents own
    JOIN products p ON p.org = own.org AND p.livemode = own.livemode AND p.id = own.product
    WHERE convert_from(substr(own.body, 1, 26), 'LATIN1') = '{"object":"product","id":"'
    OFFSET 0
) told
WHERE d.org = told.org AND d.livemode = told.livemode AND d.view = told.view AND d.product = told.product;

CREATE UNIQUE INDEX products_by_key ON products (org, livemode, key, source);
CREATE UNIQUE INDEX variants_by_key ON variants (org, livemode, key, source);

-- As domain/catalogue/search.py has it. CASE keeps what is no JSON object from being read as one.
ALTER TABLE variants ADD COLUMN gtin_key text COLLATE "C";
UPDATE variants
SET gtin_key = nullif(ltrim(translate(convert_from(data, 'UTF8')::json ->> 'gtin', ' -', ''), '0'), '')
WHERE CASE WHEN substr(data, 1, 1) = '\x7b' THEN translate(convert_from(data, 'UTF8')::json ->> 'gtin', ' -', '') ~ '^[0-9]+$' END;
CREATE INDEX variants_gtin ON variants (org, livemode, gtin_key) WHERE gtin_key IS NOT NULL;

DROP INDEX products_key;
ALTER INDEX products_by_key RENAME TO products_key;
DROP INDEX variants_key;
ALTER INDEX variants_by_key RENAME TO variants_key;
