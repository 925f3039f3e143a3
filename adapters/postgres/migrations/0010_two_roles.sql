-- Two roles instead of a wildcard: joinery_app is one tenant at a time and hears an error when nobody said which; what
-- truly spans tenants is done as joinery_system. A policy without sub-select leaves the planner its estimates.

DO $$
DECLARE
    tenant_table regclass;
    tenant_owner text;
    own text;
BEGIN
    FOR tenant_table, tenant_owner IN
        SELECT c.oid, pg_get_userbyid(c.relowner) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE p.polname = 'tenant' AND c.relnamespace = 'public'::regnamespace
    LOOP
        own := CASE tenant_table::text
            WHEN 'organisations' THEN 'id = current_setting(''joinery.org'')'
            WHEN 'members' THEN 'org = current_setting(''joinery.org'')'
            ELSE 'org = current_setting(''joinery.org'') AND livemode = (current_setting(''joinery.livemode'') = ''t'')'
        END;
        EXECUTE format('DROP POLICY tenant ON %s', tenant_table);
        EXECUTE format('CREATE POLICY tenant ON %s TO joinery_app USING (%s)', tenant_table, own);
        EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', tenant_table);
        EXECUTE format('CREATE POLICY owner ON %s TO %I USING (true)', tenant_table, tenant_owner);
    END LOOP;
END
$$;

-- Rows of `tenant_table` are seen by their own organisation and mode alone, and by whoever works across tenants.
CREATE OR REPLACE FUNCTION protect_tenant_table(tenant_table regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format(
        'CREATE POLICY tenant ON %s TO joinery_app USING ('
        'org = current_setting(''joinery.org'') AND livemode = (current_setting(''joinery.livemode'') = ''t''))',
        tenant_table
    );
    EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', tenant_table);
    EXECUTE format(
        'CREATE POLICY owner ON %s TO %I USING (true)',
        tenant_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = tenant_table)
    );
    -- plans are made for the largest tenant (expect_large_tenants has the tables of before)
    EXECUTE format('ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1, n_distinct_inherited = 1)', tenant_table);
END
$$;
