-- Policies of published catalogues that check licences by subqueries. PostgreSQL executes EXISTS for each row of a statement that reads few rows, and once
-- for a statement that reads many; of documents, only few are read. A cluster does not support subqueries in policies: there the policies call
-- licensed_view for each row.
DROP INDEX licences_holder;
CREATE INDEX licences_holder ON licences (holder, livemode, catalogue);

-- The licences of the session's organisation. The view reads `licences` with the owner's rights, so row-level security does not check each licence.
CREATE VIEW session_licences AS
SELECT livemode, catalogue, holder, view FROM licences
WHERE holder IN (current_setting('joinery.org'), '*') AND livemode = (current_setting('joinery.livemode') = 't');

CREATE FUNCTION set_licence_policies(with_subqueries boolean) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    published_table text;
    condition text;
BEGIN
    FOREACH published_table IN ARRAY ARRAY[
        'published_products', 'published_terms', 'published_documents', 'published_variants', 'published_offers', 'published_images'
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
