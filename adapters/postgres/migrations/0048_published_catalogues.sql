-- Published catalogues: copies of the listed products of all organisations, which other organisations read according to their licences.
-- The transaction that changes a listed product also changes its copies. On a cluster, every node has all copies.

-- The documents that a licence's holder reads (domain/catalogue/licences.py). Documents of further field groups exist as soon as a job has written them;
-- until then, the holder reads those of the network.
ALTER TABLE licences ADD COLUMN view text COLLATE "C" NOT NULL DEFAULT 'network';
ALTER TABLE licences ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
-- When a catalogue was withdrawn. The licence remains, so that readers receive the events of the withdrawal.
ALTER TABLE licences ADD COLUMN withdrawn_at timestamptz;
CREATE INDEX licences_catalogue ON licences (livemode, catalogue, holder) INCLUDE (view);
CREATE POLICY holder ON licences FOR SELECT TO joinery_app USING (
    holder IN (current_setting('joinery.org'), '*') AND livemode = (current_setting('joinery.livemode') = 't'));

-- The view of a catalogue's documents that the session's organisation may read; NULL without a licence. `licences_table` is the table of licences or, on a
-- cluster, the shard that each node has: policies are applied to shards, where a statement cannot name a distributed table.
CREATE FUNCTION create_licensed_view(licences_table text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION public.licensed_view(mode boolean, read_catalogue text) RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN RETURN ('
        'SELECT l.view FROM %s AS l WHERE l.livemode = mode AND l.catalogue = read_catalogue '
        'AND l.holder IN (current_setting(''joinery.org''), ''*'') ORDER BY l.holder DESC LIMIT 1); END $f$', licences_table
    );
END
$$;
REVOKE ALL ON FUNCTION create_licensed_view(text) FROM PUBLIC;
SELECT create_licensed_view('public.licences');
REVOKE ALL ON FUNCTION licensed_view(boolean, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION licensed_view(boolean, text) TO joinery_app;

-- Rows of `published_table` are visible to organisations whose licences satisfy `condition`, never to their owner, who reads the originals.
CREATE FUNCTION protect_published_table(published_table regclass, condition text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', published_table);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', published_table);
    EXECUTE format(
        'CREATE POLICY holder ON %s FOR SELECT TO joinery_app USING ('
        'livemode = (current_setting(''joinery.livemode'') = ''t'') AND org <> current_setting(''joinery.org'') AND %s)', published_table, condition
    );
    EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', published_table);
    EXECUTE format(
        'CREATE POLICY owner ON %s TO %I USING (true)',
        published_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = published_table)
    );
END
$$;
REVOKE ALL ON FUNCTION protect_published_table(regclass, text) FROM PUBLIC;

CREATE TABLE published_products (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    brand_key text COLLATE "C",
    data bytea NOT NULL,
    updated_at timestamptz NOT NULL,
    merged_into text COLLATE "C",
    PRIMARY KEY (livemode, id)
);
CREATE INDEX published_products_brand ON published_products (livemode, brand_key, id);
CREATE INDEX published_products_catalogue ON published_products (livemode, catalogue, id);
CREATE INDEX published_products_key ON published_products (livemode, key);
CREATE INDEX published_products_merged ON published_products (livemode, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX published_products_org ON published_products (org);
CREATE INDEX published_products_status ON published_products (livemode, status, id);
CREATE INDEX published_products_updated ON published_products (livemode, updated_at);
SELECT protect_published_table('published_products', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

CREATE TABLE published_terms (
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    PRIMARY KEY (livemode, term, product)
);
ALTER TABLE published_terms ALTER COLUMN term SET STATISTICS 1000;
CREATE INDEX published_terms_product ON published_terms (livemode, product);
SELECT protect_published_table('published_terms', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

-- One document for each view of a licence in use.
CREATE TABLE published_documents (
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    view text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    etag text COLLATE "C" NOT NULL,
    PRIMARY KEY (livemode, product, view)
) WITH (fillfactor = 80, toast_tuple_target = 8160);
ALTER TABLE published_documents ALTER COLUMN body SET STORAGE MAIN;
SELECT protect_published_table('published_documents', 'coalesce(public.licensed_view(livemode, catalogue), '''') = view');

CREATE TABLE published_variants (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    sku_code text COLLATE "C",
    mpn_code text COLLATE "C",
    gtin_key text COLLATE "C",
    data bytea NOT NULL,
    merged_into text COLLATE "C",
    home_product text COLLATE "C",
    home_data bytea,
    PRIMARY KEY (livemode, id)
);
CREATE INDEX published_variants_gtin ON published_variants (livemode, gtin_key) WHERE gtin_key IS NOT NULL;
CREATE INDEX published_variants_key ON published_variants (livemode, key);
CREATE INDEX published_variants_merged ON published_variants (livemode, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX published_variants_mpn ON published_variants (livemode, mpn_code) WHERE mpn_code IS NOT NULL;
CREATE INDEX published_variants_product ON published_variants (livemode, product);
CREATE INDEX published_variants_sku ON published_variants (livemode, sku_code) WHERE sku_code IS NOT NULL;
SELECT protect_published_table('published_variants', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

CREATE TABLE published_offers (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    variant text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    location text COLLATE "C" NOT NULL,
    currency text COLLATE "C",
    cost bigint,
    msrp bigint,
    map bigint,
    price bigint,
    compare_at bigint,
    quantity bigint,
    incoming bytea,
    availability text COLLATE "C" NOT NULL,
    lead_time_days integer,
    version integer NOT NULL,
    stated smallint NOT NULL,
    observed_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    withdrawn_at timestamptz,
    home_variant text COLLATE "C",
    home_product text COLLATE "C",
    PRIMARY KEY (livemode, id)
) WITH (fillfactor = 70);
CREATE INDEX published_offers_availability ON published_offers (livemode, availability, id);
CREATE INDEX published_offers_product ON published_offers (livemode, product);
CREATE INDEX published_offers_source ON published_offers (livemode, source, id);
CREATE INDEX published_offers_variant ON published_offers (livemode, variant);
SELECT protect_published_table('published_offers', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

CREATE TABLE published_images (
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    created_at timestamptz NOT NULL,
    renditions jsonb NOT NULL,
    PRIMARY KEY (livemode, product, id)
);
CREATE INDEX published_images_id ON published_images (livemode, id);
SELECT protect_published_table('published_images', 'coalesce(public.licensed_view(livemode, catalogue), '''') <> ''''');

-- Pages by terms are read in the order of two indexes. For a term without statistics, the planner would expect few rows and sort them.
ALTER TABLE product_terms ALTER COLUMN term SET (n_distinct = 20);
ALTER TABLE published_terms ALTER COLUMN term SET (n_distinct = 20);

-- What an organisation reads: its own rows, and the licensed copies of others. Rows of copies have the reader's organisation in `org`. The planner reads
-- both parts in the order of one index each. `view` names the field groups that the reader may see of an offer.
CREATE VIEW readable_products WITH (security_invoker = true) AS
SELECT org, livemode, id, catalogue, source, key, status, version, brand_key, data, updated_at, merged_into FROM products
UNION ALL
SELECT current_setting('joinery.org'), livemode, id, catalogue, source, key, status, version, brand_key, data, updated_at, merged_into
FROM published_products;

CREATE VIEW readable_terms WITH (security_invoker = true) AS
SELECT org, livemode, term, product FROM product_terms
UNION ALL
SELECT current_setting('joinery.org'), livemode, term, product FROM published_terms;

CREATE VIEW readable_documents WITH (security_invoker = true) AS
SELECT org, livemode, product, view, body, etag FROM product_documents
UNION ALL
SELECT current_setting('joinery.org'), livemode, product, 'own', body, etag FROM published_documents;

CREATE VIEW readable_variants WITH (security_invoker = true) AS
SELECT org, livemode, id, product, key, sku_code, mpn_code, gtin_key, data, merged_into, home_product, home_data FROM variants
UNION ALL
SELECT current_setting('joinery.org'), livemode, id, product, key, sku_code, mpn_code, gtin_key, data, merged_into, home_product, home_data
FROM published_variants;

CREATE VIEW readable_offers WITH (security_invoker = true) AS
SELECT org, livemode, id, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity, incoming, availability, lead_time_days,
    version, stated, observed_at, updated_at, withdrawn_at, home_variant, home_product, 'own'::text AS view FROM offers
UNION ALL
SELECT current_setting('joinery.org'), livemode, id, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity,
    incoming, availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at, home_variant, home_product,
    public.licensed_view(livemode, catalogue) FROM published_offers;

-- Runs that publish or withdraw products.
CREATE TABLE publication_runs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    status text COLLATE "C" NOT NULL,
    problems jsonb NOT NULL,
    error jsonb,
    products text[],
    position text COLLATE "C" NOT NULL,
    done integer NOT NULL,
    total integer NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX publication_runs_open ON publication_runs (org, livemode) WHERE completed_at IS NULL;
SELECT protect_tenant_table('publication_runs');

-- The latest assessment of a vendor's catalogue: which fields products lack.
CREATE TABLE catalogue_assessments (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    products integer NOT NULL,
    score integer NOT NULL,
    missing jsonb NOT NULL,
    assessed_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode)
);
SELECT protect_tenant_table('catalogue_assessments');

CREATE INDEX products_visible ON products (org, livemode, visibility, id) WHERE visibility <> 'unlisted';
