-- Tables and columns under the field's own terms, and one function that puts a tenant's table under row-level security.

ALTER TABLE webhook_endpoints RENAME COLUMN routed TO checkpoint;
ALTER TABLE event_floor RENAME TO event_low_watermark;
ALTER TABLE marks RENAME TO row_fingerprints;
ALTER INDEX marks_pkey RENAME TO row_fingerprints_pkey;
ALTER INDEX marks_absent RENAME TO row_fingerprints_absent;

-- Rows of `tenant_table` are seen by their own organisation and mode alone, and by what works across tenants (`*`).
CREATE FUNCTION protect_tenant_table(tenant_table regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format(
        'CREATE POLICY tenant ON %s USING ('
        '(org = (SELECT current_setting(''joinery.org'', true)) '
        'AND livemode = (SELECT current_setting(''joinery.livemode'', true) = ''t'')) '
        'OR (SELECT current_setting(''joinery.org'', true)) = ''*'')',
        tenant_table
    );
END
$$;
