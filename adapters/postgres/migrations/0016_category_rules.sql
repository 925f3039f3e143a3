-- Rules that file a source's products, what the source itself states, and the paths that its products have.

CREATE TABLE category_rules (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    rules jsonb NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('category_rules');

-- Until now every category was one that its source stated. CASE keeps what is no JSON object from being read as one.
ALTER TABLE products ADD COLUMN stated_category text COLLATE "C";
UPDATE products
SET stated_category = CASE WHEN substr(data, 1, 1) = '\x7b' THEN convert_from(data, 'UTF8')::json ->> 'category' END
WHERE CASE WHEN substr(data, 1, 1) = '\x7b' THEN convert_from(data, 'UTF8')::json ->> 'category' END IS NOT NULL;

-- As domain/catalogue/search.py has it.
INSERT INTO product_terms (org, livemode, term, product)
SELECT p.org, p.livemode,
    'p:' || p.source || ':' || left(encode(sha256(convert_to(string_agg(l.level, chr(31) ORDER BY l.number), 'UTF8')), 'hex'), 32),
    p.id
FROM products p
CROSS JOIN LATERAL json_array_elements_text(
    CASE WHEN substr(p.data, 1, 1) = '\x7b' THEN convert_from(p.data, 'UTF8')::json -> 'category_path' END
) WITH ORDINALITY AS l (level, number)
GROUP BY p.org, p.livemode, p.source, p.id
ON CONFLICT DO NOTHING;
