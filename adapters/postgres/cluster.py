"""Operation of a PostgreSQL cluster with Citus: distribution of tables, status, and moves of tenants.

Tables with a column `org` are found in the schema, so that new tables are distributed without a change here. Moves copy rows by logical
replication during writes, so that writers wait only for the final switch. `events` and `request_logs` have no replica identity, which Citus
would require; replication is forced, because their rows never change and maintenance repeats its deletions by age.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from adapters.postgres.errors import translated
from adapters.postgres.nodes.connecting import Connection, Fetched, connect, fetch, fetch_value
from adapters.postgres.nodes.node_pool import APPLICATION
from adapters.postgres.privileges import APP, SYSTEM
from adapters.postgres.stores import statements

_SESSION = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_min_messages = warning"

REFERENCE = (
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
"""Reference tables: read before the tenant is known, or joined by tenants' statements. Later ones refer to earlier ones."""
ANCHOR = "jobs"
"""Table that the others are co-located with, so that all rows of an organisation are on one node."""


_STATEMENTS = statements("cluster", anchor=f"'{ANCHOR}'")
_SHOW_SHARDS = b"SET citus.override_table_visibility = off; SET statement_timeout = '60s'"
"""Session settings that make shards visible, which nodes hide from lists of tables."""

_PAUSE = 2.0

Tell = Callable[[str], None]


class ClusterError(Exception):
    """Failure of a cluster operation; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Member:
    """PostgreSQL server of the cluster; `group` is its number in Citus (0 for the coordinator), `holds` whether it accepts shards."""

    group: int
    host: str
    port: int
    holds: bool

    @property
    def name(self) -> str:
        """Display name: host and port."""
        return f"{self.host}:{self.port}"


class Coordinator:
    """Connection to the coordinator as the tables' owner. Citus' errors are raised as ClusterError with their own texts."""

    def __init__(self, connection: Connection, conninfo: str) -> None:
        self.connection, self.conninfo = connection, conninfo

    async def execute(self, statement: LiteralString | sql.Composed, **values: Any) -> list[Fetched]:
        """Execute a statement and return its rows. Raises ClusterError."""
        try:
            cursor = await self.connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            parts = error.diag.message_primary, error.diag.message_detail, error.diag.message_hint
            raise ClusterError(" ".join(filter(None, parts)) or str(error).strip()) from error

    async def rows(self, statement: str, **values: Any) -> list[Fetched]:
        """Return the rows of a named statement. Raises ClusterError."""
        return await self.execute(_STATEMENTS[statement], **values)

    async def value(self, statement: str, **values: Any) -> Any:
        """Return the first column of the first row, or None. Raises ClusterError."""
        rows = await self.rows(statement, **values)
        return rows[0][0] if rows else None


async def members(found: Coordinator) -> Sequence[Member]:
    """Return all servers, the coordinator first. Raises ClusterError."""
    return [Member(*row) for row in await found.rows("nodes")]


@asynccontextmanager
async def coordinator(conninfo: str) -> AsyncIterator[Coordinator]:
    """Connect to the coordinator. Raises ClusterError if the address is not a coordinator's, and Unavailable."""
    with translated():
        async with await connect(conninfo, "joinery cluster") as connection:
            await connection.execute(_SESSION)
            cluster = Coordinator(connection, conninfo)
            [(has_citus, can_have_citus)] = await cluster.rows("found")
            database = f"the database {connection.info.dbname} at {connection.info.host}:{connection.info.port}"
            if not has_citus:
                remedy = (
                    "run CREATE EXTENSION citus in it, on every node, and add the nodes"
                    if can_have_citus
                    else "its server does not have Citus: install it and add citus to shared_preload_libraries"
                )
                raise ClusterError(
                    f"This needs a Citus coordinator, and {database} is a plain PostgreSQL: {remedy} (docs/cluster.md). "
                    "Joinery runs on a plain PostgreSQL without any of this."
                )
            if not await cluster.value("is_coordinator"):
                raise ClusterError(f"This needs the coordinator, and {database} is a worker of the cluster.")
            yield cluster


@dataclass(frozen=True, slots=True)
class Places:
    """Tables by placement: placed ones, missing reference tables, missing tables distributed by organisation, and local ones."""

    done: tuple[str, ...]
    reference: tuple[str, ...]
    by_org: tuple[str, ...]
    local: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Tables that are not yet placed."""
        return self.reference + self.by_org


async def places(found: Coordinator) -> Places:
    """Return the placement of all tables of the schema. Raises ClusterError."""
    rows = await found.rows("places")
    present = {name for name, _, _ in rows}
    done = {name for name, placed, _ in rows if placed}
    by_org = {name for name, _, org in rows if org} - set(REFERENCE)
    return Places(
        done=tuple(sorted(done)),
        reference=tuple(name for name in REFERENCE if name in present - done),
        by_org=tuple(sorted(by_org - done, key=lambda name: (name != ANCHOR, name))),
        local=tuple(sorted(present - by_org - set(REFERENCE))),
    )


async def distribute(found: Coordinator, shards: int, tell: Tell) -> Places:
    """Place all missing tables, each in its own transaction; a later call continues an interrupted one.

    Returns:
        The placement before the call.

    Raises:
        ClusterError: The cluster is not ready, processes are connected, or a table cannot be distributed.

    """
    await _check_nodes(found)
    planned = await places(found)
    # a running process regards the coordinator as the only node, and would write to tables that are no longer used
    if planned.missing and (count := await found.value("processes", name=APPLICATION)):
        raise ClusterError(
            f"Processes of Joinery are connected ({count} connections). Stop all of them first, and start them afterwards."
        )
    # Nodes connect to each other as the role of a statement. joinery_system spans nodes, so it can log in; joinery_app cannot, so that a
    # tenant's statement that is forwarded because its shard has moved fails, whatever the settings between the nodes are.
    await found.execute(f"ALTER ROLE {SYSTEM} LOGIN")
    await found.execute(f"ALTER ROLE {APP} NOLOGIN")
    # Changes of a moving shard are applied as its owner, which forced policies prevent; the owner's policy permits all rows anyway.
    for (name,) in await found.rows("forced", reference=list(REFERENCE)):
        await found.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(name)))
    for name, report in await found.rows("make_ready"):
        raise ClusterError(f"{name} could not be prepared: {report}")
    for name in planned.reference:
        tell(f"{name}: copied to every node")
        await found.rows("to_every_node", name=name)
    for name in planned.by_org:
        tell(f"{name}: distributed by organisation")
        if unsuited := await found.value("unsuited", table=name):
            raise ClusterError(
                f"{name} cannot be distributed: the unique index {unsuited} does not include the organisation."
            )
        await found.rows("distribute_anchor" if name == ANCHOR else "distribute", name=name, shards=shards)
    for (name,) in await found.rows("kept_twice"):
        tell(f"{name}: copy on the coordinator dropped")
        await found.rows("drop_copy", name=name)
    try:
        async with found.connection.transaction():
            await found.execute(f"SET LOCAL ROLE {SYSTEM}")
            await found.execute(f"SELECT count(*) FROM {ANCHOR}")
    except ClusterError as error:
        raise ClusterError(
            f"The tables are distributed, but the nodes cannot connect to each other as {SYSTEM}: {error} "
            "Permit that role from the nodes' addresses in each pg_hba.conf (or pg_dist_authinfo), and run this command again."
        ) from error
    return planned


async def _check_nodes(found: Coordinator) -> None:
    """Raise ClusterError unless the coordinator knows its own address, a node accepts shards, and all nodes reach each other."""
    servers = await members(found)
    if not any(member.group == 0 for member in servers):
        raise ClusterError(
            "The coordinator's own address is not set. Run SELECT citus_set_coordinator_host('its host name', its port)."
        )
    if not any(member.holds for member in servers):
        raise ClusterError(
            "No node accepts shards. Run SELECT citus_add_node('its host name', its port) for each node first."
        )
    if unreached := await found.rows("unreached"):
        pairs = ", ".join(f"{node} cannot reach {other}" for node, other in unreached)
        raise ClusterError(
            f"The nodes must reach each other: {pairs}. Check pg_hba.conf and citus.node_conninfo on each node."
        )


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Rows and bytes of an organisation on a node, by the latest statistics."""

    org: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Status of a node; if `error` is set, it did not answer, and only its member and number of tenants are known."""

    member: Member
    tenants: int
    shards: int = 0
    bytes: int = 0
    open_jobs: int = 0
    largest: Sequence[Tenancy] = ()
    wal_level: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Moving:
    """Move in progress of a shard with its co-located shards."""

    table: str
    shard: int
    source: str
    target: str
    bytes: int
    copied: int
    phase: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Nodes, placement of tables and moves in progress."""

    nodes: Sequence[NodeStatus]
    places: Places
    moving: Sequence[Moving] = field(default_factory=tuple)


async def status(found: Coordinator) -> ClusterStatus:
    """Read the state of the coordinator and, concurrently, of every node. Raises ClusterError."""
    planned = await places(found)
    placed = ANCHOR in planned.done
    homes: dict[int, int] = dict(await found.rows("tenants")) if placed and "organisations" in planned.done else {}
    shards: dict[int, Sequence[int]] = dict(await found.rows("shards")) if placed else {}
    nodes = await asyncio.gather(
        *(
            _node_status(found.conninfo, member, homes.get(member.group, 0), shards.get(member.group, ()))
            for member in await members(found)
        )
    )
    return ClusterStatus(nodes, planned, await moving(found))


async def moving(found: Coordinator) -> Sequence[Moving]:
    """Return the moves in progress, the largest first. Raises ClusterError."""
    return [Moving(*row) for row in await found.rows("moving")]


async def _node_status(conninfo: str, member: Member, tenants: int, shards: Sequence[int]) -> NodeStatus:
    """Read a node's status, with the coordinator's connection settings at the node's address."""
    address = make_conninfo(conninfo, host=member.host, port=member.port) if member.group else conninfo
    try:
        async with await psycopg.AsyncConnection.connect(
            address, autocommit=True, connect_timeout=3, application_name="joinery cluster"
        ) as connection:
            await connection.execute(_SHOW_SHARDS)
            [(count, size)] = await fetch(connection, _STATEMENTS["own_shards"])
            level = await fetch_value(connection, "SHOW wal_level")
            jobs = 0
            for shard in shards:
                statement = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", f"{ANCHOR}_{shard}"))
                jobs += await fetch_value(connection, statement)
            largest = await fetch(connection, _STATEMENTS["largest"])
    except psycopg.Error as error:
        return NodeStatus(member, tenants, error=str(error).strip().splitlines()[0])
    return NodeStatus(member, tenants, count, int(size), jobs, [Tenancy(*row) for row in largest], level)


@dataclass(frozen=True, slots=True)
class Moved:
    """Result of a move; `neighbours` is the number of other organisations on the moved shard."""

    org: str
    source: str
    target: str
    shard: int
    neighbours: int


async def move(found: Coordinator, org: str, to: str | None, tell: Tell) -> Moved:
    """Move the organisation's shard, with all organisations on it, to the node `to` (host:port), by default the one with the fewest bytes.

    The shard is not split first: an update that waits for a split reads the new shard with an older snapshot and finds no row, without an
    error (Citus 13).

    Raises:
        ClusterError: There is no such node, or it does not answer or replicate.

    """
    before = await status(found)
    if ANCHOR not in before.places.done:
        raise ClusterError("The tables are not distributed. Run `joinery cluster init` first.")
    shard = await found.value("shard_of", org=org)
    group = await found.value("placed", shard=shard)
    source = next(node for node in before.nodes if node.member.group == group)
    target = _target(before, source, to)
    _check_replication([source, target])
    neighbours = int(await found.value("neighbours", org=org, shard=shard))
    others = f" and {neighbours} other organisations" if neighbours else ""
    tell(f"moving shard {shard} with {org}{others} from {source.member.name} to {target.member.name}")
    ends = {"from_host": source.member.host, "from_port": source.member.port,
            "to_host": target.member.host, "to_port": target.member.port}  # fmt: skip
    async with _progress_reports(found, tell):
        await found.value("move", shard=shard, **ends)
    return Moved(org, source.member.name, target.member.name, shard, neighbours)


async def rebalance(found: Coordinator, tell: Tell) -> int:
    """Distribute the shards evenly, or follow a running rebalance; return the number of moved shards. Raises ClusterError.

    The coordinator's background worker moves the shards, and continues if this process ends.
    """
    _check_replication([node for node in (await status(found)).nodes if node.member.holds])
    if (job := await found.value("running")) is not None:
        tell(f"The rebalance {job} is already running.")
    elif (job := await found.value("start")) is None:
        return 0
    while True:
        state, tasks, done, message = (await found.rows("job", job=job))[0]
        if state == "finished":
            return int(done)
        if state in ("failed", "cancelled"):
            raise ClusterError(f"The rebalance {job} {state} after {done} of {tasks} moves. {message or ''}".strip())
        progress = await _progress(found)
        tell(f"{done} of {tasks} shards moved" + (f"; {progress}" if progress else ""))
        await asyncio.sleep(_PAUSE)


def _target(seen: ClusterStatus, source: NodeStatus, to: str | None) -> NodeStatus:
    """Return the named node, or by default the other node with the fewest bytes. Raises ClusterError."""
    others = [node for node in seen.nodes if node.member.holds and node.member != source.member]
    names = ", ".join(node.member.name for node in others) or "none"
    if to is not None:
        if to == source.member.name:
            raise ClusterError(f"The organisation is already on {to}.")
        others = [node for node in others if node.member.name == to]
        if not others:
            raise ClusterError(f"{to} is not another node that accepts shards. These are: {names}.")
    alive = [node for node in others if node.error is None]
    if not alive:
        raise ClusterError(f"No other node that accepts shards answers. These are: {names}.")
    return min(alive, key=lambda node: node.bytes)


def _check_replication(nodes: Sequence[NodeStatus]) -> None:
    """Raise ClusterError unless all nodes answer and support logical replication."""
    for node in nodes:
        name = node.member.name
        if node.error is not None:
            raise ClusterError(f"{name} does not answer: {node.error}")
        if node.wal_level != "logical":
            raise ClusterError(
                f"{name} has wal_level = {node.wal_level}. Moves during writes require `wal_level = logical` on every node. "
                "Set it and restart the node."
            )


async def _progress(found: Coordinator) -> str:
    """Return one line about all moves in progress, or an empty string."""
    moves = await moving(found)
    total, copied = sum(shard.bytes for shard in moves), sum(shard.copied for shard in moves)
    phases = sorted({shard.phase.lower() for shard in moves})
    return f"{copied / 2**20:.1f} of {total / 2**20:.1f} MiB, {', '.join(phases)}" if moves else ""


@asynccontextmanager
async def _progress_reports(found: Coordinator, tell: Tell) -> AsyncIterator[None]:
    """Report the progress of moves inside the context, over a second connection."""

    async def report(second: Coordinator) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            if progress := await _progress(second):
                tell(progress)

    async with coordinator(found.conninfo) as second:
        task = asyncio.create_task(report(second), name="progress of a move")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
