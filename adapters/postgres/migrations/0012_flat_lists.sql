-- An index in the list's order for each filter of a list; and plans made for the largest organisation.

CREATE INDEX offers_availability ON offers (org, livemode, availability, id);
CREATE INDEX webhook_deliveries_type ON webhook_deliveries (org, livemode, endpoint, type, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (org, livemode, endpoint, status, id)
    WHERE status <> 'succeeded';  -- most have, at once: these are found without it, and pay nothing for it

-- The plan of a prepared statement serves whatever organisation comes. It is made for one of an average size, unless the
-- planner takes it that there is one only; then for one as large as the largest, and small ones come to no harm by it.
CREATE FUNCTION expect_large_tenants(tenant_table regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1, n_distinct_inherited = 1)', tenant_table);
END
$$;
REVOKE ALL ON FUNCTION expect_large_tenants(regclass) FROM PUBLIC;

SELECT expect_large_tenants(c.oid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
    AND c.relname NOT IN ('members', 'api_keys', 'licences');

-- protect_tenant_table says the same of tables to come.

-- Addresses are random, twenty characters each: no two are the same, and an index that spans organisations cannot be
-- distributed. The address comes first, for whoever knows it alone.
DROP INDEX sources_inbound_address;
CREATE UNIQUE INDEX sources_inbound_address ON sources (inbound_address, org) WHERE inbound_address IS NOT NULL;
