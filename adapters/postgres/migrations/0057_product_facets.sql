-- Facets of products: one narrow row for each product that readers see, by which lists are filtered, sorted and counted (domain/search/facets.py).
CREATE TABLE product_facets (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    brand_key text COLLATE "C",
    category text COLLATE "C",
    sources text[] COLLATE "C" NOT NULL,
    title_key text COLLATE "C" NOT NULL,
    currency text COLLATE "C",
    price bigint,
    price_key text GENERATED ALWAYS AS (currency || lpad(price::text, 18, '0')) STORED COLLATE "C",
    availabilities smallint NOT NULL,
    completeness smallint NOT NULL,
    is_priced boolean NOT NULL,
    colours integer NOT NULL,
    finishes integer NOT NULL,
    PRIMARY KEY (org, livemode, product)
) WITH (fillfactor = 90);
CREATE INDEX product_facets_title ON product_facets (org, livemode, title_key, product);
CREATE INDEX product_facets_price ON product_facets (org, livemode, price_key, product);
SELECT protect_tenant_table('product_facets');

CREATE TABLE published_facets (
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    brand_key text COLLATE "C",
    category text COLLATE "C",
    sources text[] COLLATE "C" NOT NULL,
    title_key text COLLATE "C" NOT NULL,
    currency text COLLATE "C",
    price bigint,
    price_key text GENERATED ALWAYS AS (currency || lpad(price::text, 18, '0')) STORED COLLATE "C",
    availabilities smallint NOT NULL,
    completeness smallint NOT NULL,
    is_priced boolean NOT NULL,
    colours integer NOT NULL,
    finishes integer NOT NULL,
    PRIMARY KEY (livemode, product)
);
CREATE INDEX published_facets_title ON published_facets (livemode, title_key, product);
CREATE INDEX published_facets_price ON published_facets (livemode, price_key, product);
CREATE INDEX published_facets_org ON published_facets (org);
SELECT protect_published_table('published_facets', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

-- The policies of all published tables, also of the new one (see 0051_licence_policies.sql).
CREATE OR REPLACE FUNCTION set_licence_policies(with_subqueries boolean) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    published_table text;
    condition text;
BEGIN
    FOREACH published_table IN ARRAY ARRAY[
        'published_products', 'published_terms', 'published_documents', 'published_variants', 'published_offers', 'published_images',
        'published_facets'
    ] LOOP
        condition := CASE
            WHEN published_table = 'published_documents' AND with_subqueries THEN
                'view = (SELECT l.view FROM public.session_licences AS l '
                'WHERE l.livemode = %1$I.livemode AND l.catalogue = %1$I.catalogue ORDER BY l.holder DESC LIMIT 1)'
            WHEN with_subqueries THEN
                'EXISTS (SELECT FROM public.session_licences AS l WHERE l.livemode = %1$I.livemode AND l.catalogue = %1$I.catalogue)'
            WHEN published_table = 'published_documents' THEN 'coalesce(public.licensed_view(livemode, catalogue), '''') = view'
            ELSE 'coalesce(public.licensed_view(livemode, catalogue), '''') <> '''''
        END;
        EXECUTE format(
            'ALTER POLICY holder ON public.%1$I USING ('
            'livemode = (current_setting(''joinery.livemode'') = ''t'') AND org <> current_setting(''joinery.org'') AND ' || condition || ')', published_table
        );
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION set_licence_policies(boolean) FROM PUBLIC;
SELECT set_licence_policies(true) WHERE NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');

CREATE VIEW readable_facets WITH (security_invoker = true) AS
SELECT org, livemode, product, catalogue, status, brand_key, category, sources, title_key, currency, price, price_key, availabilities, completeness, is_priced,
    colours, finishes FROM product_facets
UNION ALL
SELECT current_setting('joinery.org'), livemode, product, catalogue, status, brand_key, category, sources, title_key, currency, price, price_key,
    availabilities, completeness, is_priced, colours, finishes FROM published_facets;

-- The order by the last change. Runs change many products at the same time, which are ordered by ID.
CREATE INDEX products_updated_id ON products (org, livemode, updated_at, id);
DROP INDEX products_updated;
ALTER INDEX products_updated_id RENAME TO products_updated;
CREATE INDEX published_products_updated_id ON published_products (livemode, updated_at, id);
DROP INDEX published_products_updated;
ALTER INDEX published_products_updated_id RENAME TO published_products_updated;

-- Jobs compute the facets of stored products; the second one those that processes of the previous release wrote during the upgrade.
INSERT INTO jobs (org, livemode, id, kind, lane, args, run_at, created_at)
SELECT p.org, p.livemode, 'job_000000000000000000000' || n, 'catalogue.fill_facets', 'facets:' || CASE WHEN p.livemode THEN 'live' ELSE 'test' END,
    '{}', now() + (n - 1) * interval '1 hour', now()
FROM (SELECT DISTINCT org, livemode FROM products) p, generate_series(1, 2) n;
