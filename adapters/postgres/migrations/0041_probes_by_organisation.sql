-- Compare `source_probes.org` by bytes, as every other `org`: a cluster co-locates tables only by columns of one collation.
-- The type of a column that a policy reads cannot change, so the policies are created again.

DROP POLICY tenant ON source_probes;
DROP POLICY system ON source_probes;
DROP POLICY owner ON source_probes;
ALTER TABLE source_probes ALTER COLUMN org TYPE text COLLATE "C";
SELECT protect_tenant_table('source_probes');
