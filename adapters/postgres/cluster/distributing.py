"""Giving every table its place in a cluster: on all nodes, by organisation, or at the coordinator. What is done stays done.

Which tables are by organisation is read from the schema (those with a column `org`), so a migration's new table has its
place without being named here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.cluster.coordinator import ClusterError, Coordinator, must_have_workers
from adapters.postgres.nodes.node_pool import APPLICATION
from adapters.postgres.privileges import APP, SYSTEM

REFERENCE: Final = (
    "plans",
    "organisations",
    "members",
    "invitations",
    "api_keys",
    "licences",
    "oauth_apps",
    "oauth_grants",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
)
"""Asked for before it is known whose request it is, or joined by every tenant's statements: on every node. In this order, since
the later ones refer to the earlier."""
LOCAL: Final = (
    "authenticators",
    "key_ring",
    "oauth_clients",
    "oauth_codes",
    "oauth_devices",
    "oauth_families",
    "oauth_tokens",
    "one_time_links",
    "outgoing_mail",
    "passkey_challenges",
    "passkeys",
    "platform_backups",
    "platform_checks",
    "platform_incidents",
    "platform_instances",
    "purges",
    "recovery_codes",
    "schema_migrations",
    "security_events",
    "sessions",
    "users",
)
"""Tables that belong to no organisation; they stay at the coordinator."""
PER_NODE: Final = ("log_server",)
"""Tables of which each node has its own."""
ANCHOR: Final = "jobs"
"""The table beside which the others are laid: an organisation's rows of all of them are on one node."""

_PLACES: Final = """
SELECT c.relname, coalesce(p.partmethod = 'h' OR p.repmodel = 't', false), EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped)
FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
"""What Citus merely knows of, because a reference table is referred to by it, has no place yet."""
_TWICE: Final = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND pg_relation_size(c.oid) > 0 ORDER BY 1
"""
_UNSUITED: Final = """
SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE i.indisunique AND c.relname = %(table)s AND c.relnamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND a.attnum = ANY(i.indkey::smallint[]))
"""
_PROCESSES: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %(name)s"
)
_UNREACHED: Final = """
SELECT from_nodename || ':' || from_nodeport, to_nodename || ':' || to_nodeport
FROM citus_check_cluster_node_health() WHERE result IS NOT TRUE
"""
_FORCED: Final = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relforcerowsecurity AND NOT c.relname = ANY(%(reference)s) ORDER BY c.relname
"""
_SERVER: Final = """
SELECT nodename || ':' || nodeport, result FROM run_command_on_workers($each$
    DO $$ BEGIN
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        CREATE TABLE IF NOT EXISTS public.log_server (id boolean PRIMARY KEY DEFAULT true CHECK (id), identity text COLLATE "C" NOT NULL);
    END $$
$each$) WHERE NOT success
"""
"""Each node tells by one of its own that it was restored or promoted."""


@dataclass(frozen=True, slots=True)
class Places:
    """Which tables have their place, which still need one, and which stay at the coordinator."""

    done: tuple[str, ...]
    reference: tuple[str, ...]
    by_org: tuple[str, ...]
    local: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Those that still need a place."""
        return self.reference + self.by_org


async def places(found: Coordinator) -> Places:
    """The place of every table of the schema."""
    rows = await found.rows(_PLACES)
    there = {name for name, _, _ in rows}
    done = {name for name, placed, _ in rows if placed}
    by_org = {name for name, _, org in rows if org} - set(REFERENCE)
    first = [ANCHOR] if ANCHOR in by_org else []
    return Places(
        done=tuple(sorted(done)),
        reference=tuple(name for name in REFERENCE if name in there - done),
        by_org=tuple(name for name in first + sorted(by_org - {ANCHOR}) if name not in done),
        local=tuple(sorted(there - by_org - set(REFERENCE))),
    )


async def distribute(found: Coordinator, shards: int, tell: Callable[[str], None]) -> Places:
    """Give every table that has none its place; answers which they were. Raises ClusterError.

    Each table is a transaction of its own: what was cut off is gone on with when it is run again.
    """
    await must_have_workers(found)
    await _nodes_must_reach_each_other(found)
    planned = await places(found)
    if planned.missing:
        await _nobody_must_be_at_work(found)
    await _let_roles_pass(found)
    await _let_rows_be_replicated(found)
    for name, said in await found.rows(_SERVER):
        raise ClusterError(f"{name} could not be made ready: {said}")
    for name in planned.reference:
        tell(f"{name}: to every node")
        await found.rows("SELECT create_reference_table(%(name)s::text::regclass)", name=name)
    for name in planned.by_org:
        tell(f"{name}: by organisation")
        await _by_org(found, name, shards)
    for (name,) in await found.rows(_TWICE):
        tell(f"{name}: the coordinator's copy dropped")
        await found.rows("SELECT truncate_local_data_after_distributing_table(%(name)s::text::regclass)", name=name)
    await _system_must_reach_all(found)
    return planned


async def _by_org(found: Coordinator, name: str, shards: int) -> None:
    if unsuited := await found.rows(_UNSUITED, table=name):
        raise ClusterError(
            f"{name} cannot be distributed: the unique index {unsuited[0][0]} does not hold the organisation."
        )
    statement: LiteralString = (
        "SELECT create_distributed_table(%(name)s::text::regclass, 'org', colocate_with => %(anchor)s)"
    )
    if name == ANCHOR:
        statement = "SELECT create_distributed_table(%(name)s::text::regclass, 'org', colocate_with => 'none', shard_count => %(shards)s)"
    await found.rows(statement, name=name, anchor=ANCHOR, shards=shards)


async def _nodes_must_reach_each_other(found: Coordinator) -> None:
    if unreached := await found.rows(_UNREACHED):
        pairs = ", ".join(f"{one} cannot reach {other}" for one, other in unreached)
        raise ClusterError(
            f"The nodes must reach each other: {pairs}. See pg_hba.conf and citus.node_conninfo on each."
        )


async def _nobody_must_be_at_work(found: Coordinator) -> None:
    """A process that runs now takes the coordinator for the only node, and would write beside what is moved away."""
    if count := await found.value(_PROCESSES, name=APPLICATION):
        raise ClusterError(
            f"Processes of Joinery are connected ({count} connections): stop them all first, and start them afterwards."
        )


async def _let_roles_pass(found: Coordinator) -> None:
    """Nodes ask each other as the role that a statement is run by.

    joinery_system spans nodes, so it may log in. joinery_app never does: what is passed on for a tenant whose shard has
    moved ends with an error there, whatever a connection between nodes happens to be set to.
    """
    await found.rows(f"ALTER ROLE {SYSTEM} LOGIN")
    await found.rows(f"ALTER ROLE {APP} NOLOGIN")


async def _let_rows_be_replicated(found: Coordinator) -> None:
    """Whoever applies the changes of a shard that moves does so as the owner, and may not where policies are forced on it.

    The owner's own policy shows it every row, so that nothing is lost by not forcing it (ADR 23, ADR 25).
    """
    for (name,) in await found.rows(_FORCED, reference=list(REFERENCE)):
        await found.connection.execute(
            sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(name))
        )


async def _system_must_reach_all(found: Coordinator) -> None:
    try:
        async with found.connection.transaction():
            await found.rows(f"SET LOCAL ROLE {SYSTEM}")
            await found.rows(f"SELECT count(*) FROM {ANCHOR}")
    except ClusterError as error:
        raise ClusterError(
            f"The tables are distributed, but nodes do not let each other in as {SYSTEM}: {error} "
            "Let the nodes' addresses in as that role in each pg_hba.conf (or pg_dist_authinfo), and run this again."
        ) from error
