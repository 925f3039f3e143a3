-- An organisation's own row is a tenant's row like any other: only it, and what works across tenants, sees it.

ALTER TABLE organisations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organisations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON organisations USING (id = (SELECT current_setting('joinery.org', true))
    OR (SELECT current_setting('joinery.org', true)) = '*');
