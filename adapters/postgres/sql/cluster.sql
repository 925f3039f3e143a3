-- Statements about Citus, for operators; tests/citus executes them.

-- check_citus --
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
    EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citus')

-- list_nodes --
SELECT groupid, nodename, nodeport, shouldhaveshards FROM pg_dist_node
WHERE noderole = 'primary' AND isactive ORDER BY groupid

-- list_table_placements --
-- A table that Citus lists only because of a foreign key to a reference table is not placed.
SELECT c.relname, coalesce(p.partmethod = 'h' OR p.repmodel = 't', false), EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped)
FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname

-- list_tables_with_local_rows --
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND pg_relation_size(c.oid) > 0 ORDER BY 1

-- list_unsuitable_indexes --
SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE i.indisunique AND c.relname = %(table)s AND c.relnamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND a.attnum = ANY(i.indkey::smallint[]))

-- count_connections --
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %(name)s

-- list_unreachable_nodes --
SELECT from_nodename || ':' || from_nodeport, to_nodename || ':' || to_nodeport
FROM citus_check_cluster_node_health() WHERE result IS NOT TRUE

-- list_tables_with_forced_rls --
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relforcerowsecurity AND NOT c.relname = ANY(%(reference)s) ORDER BY c.relname

-- create_log_server_tables --
-- Each node needs its own row to detect that it was restored or promoted.
SELECT nodename || ':' || nodeport, result FROM run_command_on_workers($each$
    DO $$ BEGIN
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        CREATE TABLE IF NOT EXISTS public.log_server (id boolean PRIMARY KEY DEFAULT true CHECK (id), identity text COLLATE "C" NOT NULL);
    END $$
$each$) WHERE NOT success

-- grant_views --
-- Citus creates views on every node, but without their privileges.
SELECT nodename || ':' || nodeport, result FROM run_command_on_workers($each$
    DO $$ BEGIN
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        GRANT SELECT ON public.readable_products, public.readable_terms, public.readable_documents, public.readable_variants,
            public.readable_offers TO joinery_app;
    END $$
$each$) WHERE NOT success

-- measure_own_shards --
WITH own AS (
    SELECT to_regclass(shard_name(s.logicalrelid, s.shardid)) AS shard
    FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
    JOIN pg_dist_partition d ON d.logicalrelid = s.logicalrelid AND d.partmethod = 'h'
)
SELECT count(*), coalesce(sum(pg_total_relation_size(shard)), 0) FROM own WHERE shard IS NOT NULL

-- list_largest_organisations --
-- By the statistics of the last ANALYZE, because counting would read all rows. Organisations outside a shard's most common values are omitted.
WITH own AS (
    SELECT to_regclass(shard_name(s.logicalrelid, s.shardid)) AS shard
    FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
    JOIN pg_dist_partition d ON d.logicalrelid = s.logicalrelid AND d.partmethod = 'h'
), shares AS (
    SELECT share.org, c.reltuples * share.part AS rows, pg_total_relation_size(c.oid) * share.part AS bytes
    FROM own JOIN pg_class c ON c.oid = own.shard AND c.relkind = 'r' AND c.reltuples > 0
    JOIN pg_stats st ON st.schemaname = 'public' AND st.tablename = c.relname AND st.attname = 'org'
    CROSS JOIN LATERAL unnest(st.most_common_vals::text::text[], st.most_common_freqs) AS share (org, part)
)
SELECT org, round(sum(rows))::bigint, round(sum(bytes))::bigint FROM shares GROUP BY org ORDER BY 3 DESC LIMIT 10

-- list_anchor_shards --
SELECT p.groupid, array_agg(s.shardid ORDER BY s.shardid)
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
WHERE s.logicalrelid = {anchor}::regclass GROUP BY p.groupid

-- count_organisations_by_node --
SELECT p.groupid, count(*) FROM organisations o
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column({anchor}::regclass, o.id) GROUP BY p.groupid

-- list_running_moves --
SELECT table_name::text, shardid, sourcename || ':' || sourceport, targetname || ':' || targetport, coalesce(source_shard_size, 0),
    coalesce(target_shard_size, 0), coalesce(status, 'waiting') FROM get_rebalance_progress() WHERE progress <> 2 ORDER BY source_shard_size DESC

-- find_shard --
SELECT get_shard_id_for_distribution_column({anchor}::regclass, %(org)s::text)

-- find_shard_group --
SELECT groupid FROM pg_dist_placement WHERE shardid = %(shard)s

-- count_neighbours --
SELECT count(*) FROM organisations o
WHERE o.id <> %(org)s AND get_shard_id_for_distribution_column({anchor}::regclass, o.id) = %(shard)s

-- remove_moved_shards --
CALL citus_cleanup_orphaned_resources()

-- count_moved_shards --
SELECT count(*) FROM pg_dist_cleanup WHERE node_group_id = %(group)s

-- move_shard --
SELECT citus_move_shard_placement(%(shard)s::bigint, %(from_host)s::text, %(from_port)s::integer, %(to_host)s::text, %(to_port)s::integer, 'force_logical')

-- find_running_rebalance --
SELECT job_id FROM pg_dist_background_job
WHERE job_type = 'rebalance' AND state IN ('scheduled', 'running', 'failing', 'cancelling') ORDER BY job_id DESC LIMIT 1

-- start_rebalance --
SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')

-- get_rebalance_progress --
SELECT j.state::text, (SELECT count(*) FROM pg_dist_background_task t WHERE t.job_id = j.job_id),
    (SELECT count(*) FROM pg_dist_background_task t WHERE t.job_id = j.job_id AND t.status = 'done'),
    (SELECT string_agg(t.message, ' ') FROM pg_dist_background_task t WHERE t.job_id = j.job_id AND t.status IN ('error', 'unscheduled'))
FROM pg_dist_background_job j WHERE j.job_id = %(job)s

-- is_coordinator --
SELECT groupid = 0 FROM pg_dist_local_group

-- replicate_table --
SELECT create_reference_table(%(name)s::text::regclass)

-- avoid_subqueries_in_policies --
SELECT set_licence_policies(false)

-- use_shard_of_licences --
-- The function is used by policies on shards, which cannot refer to the table itself.
SELECT create_licensed_view('public.' || shard_name(logicalrelid, shardid)) FROM pg_dist_shard WHERE logicalrelid = 'licences'::regclass

-- truncate_local_copy --
SELECT truncate_local_data_after_distributing_table(%(name)s::text::regclass)

-- distribute_anchor_table --
SELECT create_distributed_table(%(name)s::text::regclass, 'org', colocate_with => 'none', shard_count => %(shards)s)

-- distribute_table --
SELECT create_distributed_table(%(name)s::text::regclass, 'org', colocate_with => {anchor})
