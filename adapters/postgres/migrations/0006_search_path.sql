-- What a function names is found where it was meant, whatever the session's search path; nobody but the owner calls it.

ALTER FUNCTION protect_tenant_table(regclass) SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION protect_tenant_table(regclass) FROM PUBLIC;
