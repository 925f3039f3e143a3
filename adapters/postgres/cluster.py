"""Administration of a PostgreSQL cluster with Citus: distribution of tables, status, and moves of organisations.

All tables with a column `org`, except reference tables, are distributed. They are found in the schema, so a new table
requires no change here.

A move copies rows by logical replication, so writers wait only for the final switch. For this, Citus requires a replica
identity, which `events` and `request_logs` lack. Their replication is forced: their rows never change, and maintenance
repeats its deletions by age.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from adapters.postgres.errors import translate_errors
from adapters.postgres.nodes.connections import Connection, DatabaseRow, connect, fetch_rows, fetch_value
from adapters.postgres.nodes.node_pool import APPLICATION
from adapters.postgres.privileges import APP, SYSTEM
from adapters.postgres.stores import load_statements

_SESSION = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_min_messages = warning"

REFERENCE_TABLES = (
    "plans",
    "organisations",
    "members",
    "invitations",
    "api_keys",
    "licences",
    "published_products",
    "published_terms",
    "published_facets",
    "published_documents",
    "published_variants",
    "published_offers",
    "published_images",
    "oauth_apps",
    "oauth_grants",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
    "agreements",
    "demand_queries",
    "credit_rates",
    "vendor_profiles",
    "vendor_profile_terms",
    "vendor_words",
    "brand_claims",
    "claim_invitations",
    "plan_prices",
)
"""Tables that are replicated to every node. Each table comes after the tables that it refers to.

They are read before the tenant is known, or are joined by statements about one tenant.
"""
ANCHOR_TABLE = "jobs"
"""Table with which all distributed tables are co-located, so that all rows of an organisation are on one node."""


_STATEMENTS = load_statements("cluster", anchor=f"'{ANCHOR_TABLE}'")
_MAKE_SHARDS_VISIBLE = b"SET citus.override_table_visibility = off; SET statement_timeout = '60s'"
"""Session settings with which a node lists its shards among its tables, where they are hidden by default."""

_POLL_SECONDS = 2.0
_MAX_REMOVAL_POLLS = 30

ProgressReporter = Callable[[str], None]


class ClusterError(Exception):
    """Failure of a cluster operation; the message states the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class ClusterServer:
    """PostgreSQL server of the cluster.

    Attributes:
        group: Number of the server in Citus; 0 for the coordinator.
        host: Host name or IP address.
        port: TCP port.
        accepts_shards: Whether shards may be placed on the server.
    """

    group: int
    host: str
    port: int
    accepts_shards: bool

    @property
    def name(self) -> str:
        """Display name: host and port."""
        return f"{self.host}:{self.port}"


class CoordinatorConnection:
    """Connection to the coordinator as the owner of the tables.

    A failed SQL statement raises ClusterError with the message of PostgreSQL or Citus.
    """

    def __init__(self, connection: Connection, conninfo: str) -> None:
        self.connection, self.conninfo = connection, conninfo

    async def execute(self, statement: LiteralString | sql.Composed, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement and return its rows. Raises ClusterError."""
        try:
            cursor = await self.connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            parts = error.diag.message_primary, error.diag.message_detail, error.diag.message_hint
            raise ClusterError(" ".join(filter(None, parts)) or str(error).strip()) from error

    async def fetch_rows(self, statement: str, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement of sql/cluster.sql and return its rows. Raises ClusterError."""
        return await self.execute(_STATEMENTS[statement], **values)

    async def fetch_value(self, statement: str, **values: Any) -> Any:
        """Execute an SQL statement of sql/cluster.sql; return the first column of its first row, or None.

        Raises ClusterError.
        """
        rows = await self.fetch_rows(statement, **values)
        return rows[0][0] if rows else None


async def list_servers(connection: CoordinatorConnection) -> Sequence[ClusterServer]:
    """Return all servers of the cluster, the coordinator first. Raises ClusterError."""
    return [ClusterServer(*row) for row in await connection.fetch_rows("list_nodes")]


@asynccontextmanager
async def connect_to_coordinator(conninfo: str) -> AsyncIterator[CoordinatorConnection]:
    """Connect to the coordinator. Raises Unavailable, or ClusterError if the database is not that of a coordinator."""
    with translate_errors():
        async with await connect(conninfo, "joinery cluster") as connection:
            await connection.execute(_SESSION)
            cluster = CoordinatorConnection(connection, conninfo)
            [(has_citus, can_have_citus)] = await cluster.fetch_rows("check_citus")
            database = f"the database {connection.info.dbname} at {connection.info.host}:{connection.info.port}"
            if not has_citus:
                remedy = (
                    "run CREATE EXTENSION citus in this database on every node, and add the nodes"
                    if can_have_citus
                    else "install Citus on the server, and add citus to shared_preload_libraries"
                )
                raise ClusterError(
                    f"This command requires a Citus coordinator, but {database} is a plain PostgreSQL database. "
                    f"To set up a cluster, {remedy} (docs/cluster.md). Joinery also works without a cluster."
                )
            if not await cluster.fetch_value("is_coordinator"):
                raise ClusterError(
                    f"This command requires the coordinator, but {database} is a worker node of the cluster. "
                    "Set JOINERY_DATABASE_URL to the URL of the coordinator."
                )
            yield cluster


@dataclass(frozen=True, slots=True)
class TablePlacement:
    """Tables of the schema by their placement in the cluster.

    Attributes:
        placed_tables: Tables that are already distributed or replicated.
        unplaced_reference_tables: Reference tables that are not yet replicated to all nodes.
        unplaced_distributed_tables: Tables that must still be distributed by organisation.
        local: Tables that remain on the coordinator.
    """

    placed_tables: tuple[str, ...]
    unplaced_reference_tables: tuple[str, ...]
    unplaced_distributed_tables: tuple[str, ...]
    local: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Unplaced tables, which must still be distributed or replicated."""
        return self.unplaced_reference_tables + self.unplaced_distributed_tables


async def read_placement(connection: CoordinatorConnection) -> TablePlacement:
    """Return the placement of all tables of the schema. Raises ClusterError."""
    rows = await connection.fetch_rows("list_table_placements")
    all_tables = {name for name, _, _ in rows}
    placed_tables = {name for name, is_placed, _ in rows if is_placed}
    by_org = {name for name, _, has_org in rows if has_org} - set(REFERENCE_TABLES)
    return TablePlacement(
        placed_tables=tuple(sorted(placed_tables)),
        unplaced_reference_tables=tuple(name for name in REFERENCE_TABLES if name in all_tables - placed_tables),
        unplaced_distributed_tables=tuple(
            sorted(by_org - placed_tables, key=lambda name: (name != ANCHOR_TABLE, name))
        ),
        local=tuple(sorted(all_tables - by_org - set(REFERENCE_TABLES))),
    )


async def distribute_tables(connection: CoordinatorConnection, shards: int, report: ProgressReporter) -> TablePlacement:
    """Distribute or replicate all tables that are not placed yet, each in its own transaction.

    After an interruption, a further call distributes the remaining tables.

    Args:
        connection: Connection to the coordinator.
        shards: Number of shards per distributed table.
        report: Function that receives a line of text for each step.

    Returns:
        The placement before the call.

    Raises:
        ClusterError: The cluster is not ready, processes are connected, or a table cannot be distributed.
    """
    await _check_nodes(connection)
    placement_before = await read_placement(connection)
    # a running process treats the coordinator as the only node, and would write to tables that are no longer used
    if placement_before.missing and (count := await connection.fetch_value("count_connections", name=APPLICATION)):
        raise ClusterError(
            f"Joinery's processes have {count} connections to the database. Stop all processes, run this command again, "
            "and then start the processes."
        )
    # Nodes connect to each other as the role of a statement. joinery_system spans nodes, so it can log in; joinery_app cannot, so that a
    # tenant's statement that is forwarded because its shard has moved fails under all settings between the nodes.
    await connection.execute(f"ALTER ROLE {SYSTEM} LOGIN")
    await connection.execute(f"ALTER ROLE {APP} NOLOGIN")
    # Changes of a moving shard are applied as its owner, which forced policies prevent; the owner's policy permits all rows anyway.
    for (name,) in await connection.fetch_rows("list_tables_with_forced_rls", reference=list(REFERENCE_TABLES)):
        await connection.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(name)))
    for name, fault in await connection.fetch_rows("create_log_server_tables"):
        raise ClusterError(f"The table log_server could not be created on {name}: {fault}")
    await _replicate_tables(connection, placement_before.unplaced_reference_tables, report)
    for name in placement_before.unplaced_distributed_tables:
        report(f"{name}: distributed by organisation")
        if index := await connection.fetch_value("list_unsuitable_indexes", table=name):
            raise ClusterError(
                f"{name} cannot be distributed: its unique index {index} does not contain the column org."
            )
        await connection.fetch_rows(
            "distribute_anchor_table" if name == ANCHOR_TABLE else "distribute_table", name=name, shards=shards
        )
    for name, fault in await connection.fetch_rows("grant_views"):
        raise ClusterError(f"The views could not be granted on {name}: {fault}")
    for (name,) in await connection.fetch_rows("list_tables_with_local_rows"):
        report(f"{name}: copy on the coordinator dropped")
        await connection.fetch_rows("truncate_local_copy", name=name)
    try:
        async with connection.connection.transaction():
            await connection.execute(f"SET LOCAL ROLE {SYSTEM}")
            await connection.execute(f"SELECT count(*) FROM {ANCHOR_TABLE}")
    except ClusterError as error:
        raise ClusterError(
            f"The tables are distributed, but the nodes cannot connect to each other as {SYSTEM}: {error} "
            "Permit logins of this role between the nodes (pg_hba.conf or pg_dist_authinfo), and run this command again."
        ) from error
    return placement_before


async def _replicate_tables(connection: CoordinatorConnection, names: Sequence[str], report: ProgressReporter) -> None:
    """Replicate reference tables to every node, and adapt the policies of published tables to a cluster."""
    if names:  # tables cannot be replicated while their policies contain subqueries
        await connection.fetch_rows("avoid_subqueries_in_policies")
    for name in names:
        report(f"{name}: copied to every node")
        await connection.fetch_rows("replicate_table", name=name)
    await connection.fetch_rows("use_shard_of_licences")


async def _check_nodes(connection: CoordinatorConnection) -> None:
    """Raise ClusterError unless the cluster is ready for tables.

    The coordinator's address must be set, a node must accept shards, and all nodes must be able to connect to each
    other.
    """
    servers = await list_servers(connection)
    if not any(server.group == 0 for server in servers):
        raise ClusterError(
            "The coordinator's own address is not set. Run SELECT citus_set_coordinator_host('its host name', its port)."
        )
    if not any(server.accepts_shards for server in servers):
        raise ClusterError(
            "No node accepts shards. Run SELECT citus_add_node('its host name', its port) for each node first."
        )
    if unreachable_pairs := await connection.fetch_rows("list_unreachable_nodes"):
        pairs = ", ".join(f"{node} to {other}" for node, other in unreachable_pairs)
        raise ClusterError(
            f"These nodes cannot connect to each other: {pairs}. Check pg_hba.conf and citus.node_conninfo on each node."
        )


@dataclass(frozen=True, slots=True)
class OrganisationSize:
    """Size of an organisation (in both modes) on a node, according to the node's latest statistics."""

    org: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Status of a node.

    Attributes:
        server: Server of the node.
        tenants: Number of organisations on the node.
        shards: Number of shards on the node.
        bytes: Size of the shards in bytes.
        open_jobs: Number of jobs that are not completed.
        largest: Sizes of the largest organisations on the node.
        wal_level: PostgreSQL's setting of this name; None if the node did not respond.
        error: Reason why the node did not respond; the values after `tenants` are then unknown.
    """

    server: ClusterServer
    tenants: int
    shards: int = 0
    bytes: int = 0
    open_jobs: int = 0
    largest: Sequence[OrganisationSize] = ()
    wal_level: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ShardMove:
    """Running move of a shard, together with the shards that are co-located with it.

    Attributes:
        table: Name of the shard's table.
        shard: Number of the shard.
        source: Server that the shard is moved from.
        target: Server that the shard is moved to.
        bytes: Size of the shards in bytes.
        copied: Number of bytes copied so far.
        phase: Phase of the move, as Citus names it.
    """

    table: str
    shard: int
    source: str
    target: str
    bytes: int
    copied: int
    phase: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Status of a cluster.

    Attributes:
        nodes: Status of each node.
        placement: Placement of the tables.
        running_moves: Running moves of shards.
    """

    nodes: Sequence[NodeStatus]
    placement: TablePlacement
    running_moves: Sequence[ShardMove] = field(default_factory=tuple)


async def read_cluster_status(connection: CoordinatorConnection) -> ClusterStatus:
    """Read the status of the cluster from the coordinator, and from all nodes concurrently. Raises ClusterError."""
    placement = await read_placement(connection)
    is_anchor_placed = ANCHOR_TABLE in placement.placed_tables
    organisation_counts: dict[int, int] = (
        dict(await connection.fetch_rows("count_organisations_by_node"))
        if is_anchor_placed and "organisations" in placement.placed_tables
        else {}
    )
    shards: dict[int, Sequence[int]] = (
        dict(await connection.fetch_rows("list_anchor_shards")) if is_anchor_placed else {}
    )
    nodes = await asyncio.gather(
        *(
            _read_node_status(
                connection.conninfo, server, organisation_counts.get(server.group, 0), shards.get(server.group, ())
            )
            for server in await list_servers(connection)
        )
    )
    return ClusterStatus(nodes, placement, await list_running_moves(connection))


async def list_running_moves(connection: CoordinatorConnection) -> Sequence[ShardMove]:
    """Return the running moves of shards, the largest first. Raises ClusterError."""
    return [ShardMove(*row) for row in await connection.fetch_rows("list_running_moves")]


async def _read_node_status(conninfo: str, server: ClusterServer, tenants: int, shards: Sequence[int]) -> NodeStatus:
    """Connect to a node with the coordinator's settings except the address, and return the status of the node.

    Args:
        conninfo: Address and login of the coordinator.
        server: Server of the node.
        tenants: Number of organisations on the node.
        shards: Numbers of the node's shards of ANCHOR_TABLE, whose rows are counted as open jobs.
    """
    address = make_conninfo(conninfo, host=server.host, port=server.port) if server.group else conninfo
    try:
        async with await psycopg.AsyncConnection.connect(
            address, autocommit=True, connect_timeout=3, application_name="joinery cluster"
        ) as connection:
            await connection.execute(_MAKE_SHARDS_VISIBLE)
            [(count, size)] = await fetch_rows(connection, _STATEMENTS["measure_own_shards"])
            level = await fetch_value(connection, "SHOW wal_level")
            jobs = 0
            for shard in shards:
                statement = sql.SQL("SELECT count(*) FROM {}").format(
                    sql.Identifier("public", f"{ANCHOR_TABLE}_{shard}")
                )
                jobs += await fetch_value(connection, statement)
            largest = await fetch_rows(connection, _STATEMENTS["list_largest_organisations"])
    except psycopg.Error as error:
        return NodeStatus(server, tenants, error=str(error).strip().splitlines()[0])
    sizes = [OrganisationSize(*row) for row in largest]
    return NodeStatus(server, tenants, count, int(size), jobs, sizes, level)


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Result of moving an organisation to another node.

    Attributes:
        org: ID of the organisation.
        source: Node that stored the organisation before.
        target: Node that stores the organisation now.
        shard: Number of the moved shard.
        neighbours: Number of other organisations on the shard, which were moved as well.
    """

    org: str
    source: str
    target: str
    shard: int
    neighbours: int


async def move_organisation(
    connection: CoordinatorConnection, org: str, target_name: str | None, report: ProgressReporter
) -> MoveResult:
    """Move the organisation's shard to another node, with all organisations on the shard.

    Args:
        connection: Connection to the coordinator.
        org: ID of the organisation.
        target_name: Target node as `host:port`; None for the node with the fewest bytes.
        report: Function that receives a line of text for each step.

    Raises:
        ClusterError: The target node does not exist, does not respond, or does not support logical replication.
    """
    before = await read_cluster_status(connection)
    if ANCHOR_TABLE not in before.placement.placed_tables:
        raise ClusterError("The tables are not distributed. Run `joinery cluster init` first.")
    shard = await connection.fetch_value("find_shard", org=org)
    group = await connection.fetch_value("find_shard_group", shard=shard)
    source = next(node for node in before.nodes if node.server.group == group)
    target = _choose_target(before, source, target_name)
    _check_replication([source, target])
    neighbours = int(await connection.fetch_value("count_neighbours", org=org, shard=shard))
    others = f" and {neighbours} other organisations" if neighbours else ""
    report(f"moving shard {shard} with {org}{others} from {source.server.name} to {target.server.name}")
    ends = {"from_host": source.server.host, "from_port": source.server.port,
            "to_host": target.server.host, "to_port": target.server.port}  # fmt: skip
    # The shard is not split first: an update that waits for a split reads the new shard with an older snapshot and finds no
    # row, without an error (Citus 13).
    await _remove_moved_shards(connection, target, report)
    async with _report_move_progress(connection, report):
        await connection.fetch_value("move_shard", shard=shard, **ends)
    return MoveResult(org, source.server.name, target.server.name, shard, neighbours)


async def _remove_moved_shards(connection: CoordinatorConnection, node: NodeStatus, report: ProgressReporter) -> None:
    """Wait, for at most a minute, until the node has deleted the shards that were moved away from it.

    A shard cannot be moved to a node that still stores it. The node deletes it as soon as no transaction uses it.
    """
    for _ in range(_MAX_REMOVAL_POLLS):
        await connection.fetch_rows("remove_moved_shards")
        remaining = await connection.fetch_value("count_moved_shards", group=node.server.group)
        if not remaining:
            return
        report(f"{node.server.name} still has to delete {remaining} shards that were moved away")
        await asyncio.sleep(_POLL_SECONDS)


async def rebalance_shards(connection: CoordinatorConnection, report: ProgressReporter) -> int:
    """Distribute the shards evenly over the nodes, and wait until that is complete; return the number of moved shards.

    If a rebalance is already running, wait for it. The coordinator's background worker moves the shards, and continues
    if this process ends. Raises ClusterError.
    """
    _check_replication([node for node in (await read_cluster_status(connection)).nodes if node.server.accepts_shards])
    if (job := await connection.fetch_value("find_running_rebalance")) is not None:
        report(f"The rebalance {job} is already running.")
    elif (job := await connection.fetch_value("start_rebalance")) is None:
        return 0
    while True:
        state, tasks, done, message = (await connection.fetch_rows("get_rebalance_progress", job=job))[0]
        if state == "finished":
            return int(done)
        if state in ("failed", "cancelled"):
            raise ClusterError(f"The rebalance {job} {state} after {done} of {tasks} moves. {message or ''}".strip())
        progress = await _describe_progress(connection)
        report(f"{done} of {tasks} shards moved" + (f"; {progress}" if progress else ""))
        await asyncio.sleep(_POLL_SECONDS)


def _choose_target(status: ClusterStatus, source: NodeStatus, target_name: str | None) -> NodeStatus:
    """Return the node to which a shard is moved. Raises ClusterError if no such node responds.

    Args:
        status: Status of the cluster.
        source: Node that stores the shard.
        target_name: Name of the node; None for the node with the fewest bytes.
    """
    others = [node for node in status.nodes if node.server.accepts_shards and node.server != source.server]
    names = ", ".join(node.server.name for node in others) or "none"
    if target_name is not None:
        if target_name == source.server.name:
            raise ClusterError(f"The organisation is already on {target_name}.")
        others = [node for node in others if node.server.name == target_name]
        if not others:
            raise ClusterError(
                f"{target_name} is not a node that the organisation can be moved to. Available: {names}."
            )
    alive = [node for node in others if node.error is None]
    if not alive:
        raise ClusterError(f"No other node that accepts shards responds. Nodes that accept shards: {names}.")
    return min(alive, key=lambda node: node.bytes)


def _check_replication(nodes: Sequence[NodeStatus]) -> None:
    """Raise ClusterError unless all nodes respond and support logical replication."""
    for node in nodes:
        name = node.server.name
        if node.error is not None:
            raise ClusterError(f"{name} does not respond: {node.error}")
        if node.wal_level != "logical":
            raise ClusterError(
                f"{name} has wal_level = {node.wal_level}. To move organisations without blocking writes, every node requires `wal_level = logical`. "
                "Set it and restart the node."
            )


async def _describe_progress(connection: CoordinatorConnection) -> str:
    """Return one line of text about all running moves, or an empty string."""
    moves = await list_running_moves(connection)
    total, copied = sum(shard.bytes for shard in moves), sum(shard.copied for shard in moves)
    phases = sorted({shard.phase.lower() for shard in moves})
    return f"{copied / 2**20:.1f} of {total / 2**20:.1f} MiB, {', '.join(phases)}" if moves else ""


@asynccontextmanager
async def _report_move_progress(connection: CoordinatorConnection, report: ProgressReporter) -> AsyncIterator[None]:
    """Report the progress of running moves at regular intervals while the context is open, over a second connection."""

    async def report_progress(second: CoordinatorConnection) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if progress := await _describe_progress(second):
                report(progress)

    async with connect_to_coordinator(connection.conninfo) as second:
        task = asyncio.create_task(report_progress(second), name="progress of a move")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
