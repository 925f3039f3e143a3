"""Running a cluster of PostgreSQL servers with Citus: distributing the tables, reporting where tenants are, and moving them.

Tables with a column `org` are found in the schema, so a migration's new table is distributed without being named here. Moves copy rows by
logical replication while they are written, so that writers wait only for the last moment. `events` and `request_logs` have no key that
replication could identify rows by; but their rows never change, and what maintenance deletes by age it deletes again at its next turn. So
replication is forced where Citus would ask for a key.
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
"""Tables on every node: read before the tenant is known, or joined by every tenant's statements. Later ones refer to earlier ones."""
ANCHOR = "jobs"
"""The table that the others are co-located with: an organisation's rows of all of them are on one node."""


_STATEMENTS = statements("cluster", anchor=f"'{ANCHOR}'")
_SEEN = b"SET citus.override_table_visibility = off; SET statement_timeout = '60s'"
"""A node hides its shards from lists of its tables."""

_PAUSE = 2.0

Tell = Callable[[str], None]


class ClusterError(Exception):
    """It cannot be done on this database; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Member:
    """A PostgreSQL server of the cluster: `group` is Citus' number of it (the coordinator's is 0), `holds` whether it takes shards."""

    group: int
    host: str
    port: int
    holds: bool

    @property
    def name(self) -> str:
        """The server's name for people."""
        return f"{self.host}:{self.port}"


class Coordinator:
    """A connection to the coordinator as the tables' owner. What Citus refuses is raised as ClusterError, in its own words."""

    def __init__(self, connection: Connection, conninfo: str) -> None:
        self.connection, self.conninfo = connection, conninfo

    async def execute(self, statement: LiteralString | sql.Composed, **values: Any) -> list[Fetched]:
        """Execute a statement; return every row. Raises ClusterError."""
        try:
            cursor = await self.connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            parts = error.diag.message_primary, error.diag.message_detail, error.diag.message_hint
            raise ClusterError(" ".join(filter(None, parts)) or str(error).strip()) from error

    async def rows(self, statement: str, **values: Any) -> list[Fetched]:
        """Return every row of a named statement. Raises ClusterError."""
        return await self.execute(_STATEMENTS[statement], **values)

    async def value(self, statement: str, **values: Any) -> Any:
        """Return the first column of the first row, or None. Raises ClusterError."""
        rows = await self.rows(statement, **values)
        return rows[0][0] if rows else None


async def members(found: Coordinator) -> Sequence[Member]:
    """Return every server, the coordinator first. Raises ClusterError."""
    return [Member(*row) for row in await found.rows("nodes")]


@asynccontextmanager
async def coordinator(conninfo: str) -> AsyncIterator[Coordinator]:
    """Connect to the coordinator that this address must be of. Raises ClusterError, Unavailable."""
    with translated():
        async with await connect(conninfo, "joinery cluster") as connection:
            await connection.execute(_SESSION)
            found = Coordinator(connection, conninfo)
            [(has_citus, could_have)] = await found.rows("found")
            database = f"the database {connection.info.dbname} at {connection.info.host}:{connection.info.port}"
            if not has_citus:
                missing = (
                    "run CREATE EXTENSION citus in it, on every node, and add the nodes"
                    if could_have
                    else "its server has no Citus: install it and put citus into shared_preload_libraries"
                )
                raise ClusterError(
                    f"This needs a Citus coordinator, and {database} is a plain PostgreSQL: {missing} (docs/cluster.md). "
                    "Joinery runs on a plain PostgreSQL without any of this."
                )
            if not await found.value("is_coordinator"):
                raise ClusterError(f"This needs the coordinator, and {database} is a worker of the cluster.")
            yield found


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
    """Return the place of every table of the schema. Raises ClusterError."""
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
    """Give every table that has none its place, each in its own transaction; an interrupted run is continued by the next.

    Returns:
        The places as they were before.

    Raises:
        ClusterError: The cluster is not ready, processes are connected, or a table cannot be distributed.

    """
    await _check_nodes(found)
    planned = await places(found)
    # a running process takes the coordinator for the only node, and would write beside what is moved away
    if planned.missing and (count := await found.value("processes", name=APPLICATION)):
        raise ClusterError(
            f"Processes of Joinery are connected ({count} connections): stop them all first, and start them afterwards."
        )
    # Nodes ask each other as the role of a statement. joinery_system spans nodes, so it may log in; joinery_app never does: a tenant's
    # statement that is passed on because its shard has moved fails there, whatever the connection between the nodes is set to.
    await found.execute(f"ALTER ROLE {SYSTEM} LOGIN")
    await found.execute(f"ALTER ROLE {APP} NOLOGIN")
    # The changes of a shard that moves are applied as its owner, which forced policies forbid; the owner's policy shows it all rows anyway.
    for (name,) in await found.rows("forced", reference=list(REFERENCE)):
        await found.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(name)))
    for name, report in await found.rows("make_ready"):
        raise ClusterError(f"{name} could not be made ready: {report}")
    for name in planned.reference:
        tell(f"{name}: to every node")
        await found.rows("to_every_node", name=name)
    for name in planned.by_org:
        tell(f"{name}: by organisation")
        if unsuited := await found.value("unsuited", table=name):
            raise ClusterError(
                f"{name} cannot be distributed: the unique index {unsuited} does not hold the organisation."
            )
        await found.rows("distribute_anchor" if name == ANCHOR else "distribute", name=name, shards=shards)
    for (name,) in await found.rows("kept_twice"):
        tell(f"{name}: the coordinator's copy dropped")
        await found.rows("drop_copy", name=name)
    try:
        async with found.connection.transaction():
            await found.execute(f"SET LOCAL ROLE {SYSTEM}")
            await found.execute(f"SELECT count(*) FROM {ANCHOR}")
    except ClusterError as error:
        raise ClusterError(
            f"The tables are distributed, but nodes do not let each other in as {SYSTEM}: {error} "
            "Let the nodes' addresses in as that role in each pg_hba.conf (or pg_dist_authinfo), and run this again."
        ) from error
    return planned


async def _check_nodes(found: Coordinator) -> None:
    """Raise ClusterError unless the coordinator knows itself, a node takes shards, and all reach each other."""
    servers = await members(found)
    if not any(member.group == 0 for member in servers):
        raise ClusterError(
            "The coordinator does not know its own address: SELECT citus_set_coordinator_host('its host name', its port)."
        )
    if not any(member.holds for member in servers):
        raise ClusterError("No node takes shards: SELECT citus_add_node('its host name', its port) for each, first.")
    if unreached := await found.rows("unreached"):
        pairs = ", ".join(f"{one} cannot reach {other}" for one, other in unreached)
        raise ClusterError(
            f"The nodes must reach each other: {pairs}. See pg_hba.conf and citus.node_conninfo on each."
        )


@dataclass(frozen=True, slots=True)
class Tenancy:
    """An organisation's share of a node, by the last statistics."""

    org: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node; with `error` it did not answer, and only its name and number of tenants are known."""

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
    """A shard that is being moved, with those co-located with it."""

    table: str
    shard: int
    source: str
    target: str
    bytes: int
    copied: int
    phase: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The nodes, the tables' places and the moves under way."""

    nodes: Sequence[NodeStatus]
    places: Places
    moving: Sequence[Moving] = field(default_factory=tuple)


async def status(found: Coordinator) -> ClusterStatus:
    """Read the state of the coordinator and, side by side, of every node. Raises ClusterError."""
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
    """Return what is being copied to another node now, the largest first. Raises ClusterError."""
    return [Moving(*row) for row in await found.rows("moving")]


async def _node_status(conninfo: str, member: Member, tenants: int, shards: Sequence[int]) -> NodeStatus:
    """Connect to a node as to the coordinator, at its own host and port."""
    address = make_conninfo(conninfo, host=member.host, port=member.port) if member.group else conninfo
    try:
        async with await psycopg.AsyncConnection.connect(
            address, autocommit=True, connect_timeout=3, application_name="joinery cluster"
        ) as connection:
            await connection.execute(_SEEN)
            [(count, size)] = await fetch(connection, _STATEMENTS["own_shards"])
            level = await fetch_value(connection, "SHOW wal_level")
            jobs = 0
            for shard in shards:
                counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", f"{ANCHOR}_{shard}"))
                jobs += await fetch_value(connection, counting)
            largest = await fetch(connection, _STATEMENTS["largest"])
    except psycopg.Error as error:
        return NodeStatus(member, tenants, error=str(error).strip().splitlines()[0])
    return NodeStatus(member, tenants, count, int(size), jobs, [Tenancy(*row) for row in largest], level)


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a move; `neighbours` organisations went along."""

    org: str
    source: str
    target: str
    shard: int
    neighbours: int


async def move(found: Coordinator, org: str, to: str | None, tell: Tell) -> Moved:
    """Move the organisation's shard, with all who share it, to the node `to` (host:port; else to the one that holds least).

    A shard is not divided first: an update that waited for that looks into the new part with a snapshot of before, and finds no row
    without an error (Citus 13).

    Raises:
        ClusterError: There is no such node, or it does not answer or replicate.

    """
    seen = await status(found)
    if ANCHOR not in seen.places.done:
        raise ClusterError("The tables are not distributed; `joinery cluster init` does that.")
    shard = await found.value("shard_of", org=org)
    group = await found.value("placed", shard=shard)
    source = next(node for node in seen.nodes if node.member.group == group)
    target = _target(seen, source, to)
    _must_replicate([source, target])
    neighbours = int(await found.value("neighbours", org=org, shard=shard))
    company = f" and {neighbours} others that share it" if neighbours else ""
    tell(f"shard {shard}, which has {org}{company}, from {source.member.name} to {target.member.name}")
    ends = {"from_host": source.member.host, "from_port": source.member.port,
            "to_host": target.member.host, "to_port": target.member.port}  # fmt: skip
    async with _telling(found, tell):
        await found.value("move", shard=shard, **ends)
    return Moved(org, source.member.name, target.member.name, shard, neighbours)


async def rebalance(found: Coordinator, tell: Tell) -> int:
    """Spread the shards evenly, or watch the rebalance that runs; return how many were moved. Raises ClusterError.

    The coordinator's background worker moves them, and continues when this process ends.
    """
    _must_replicate([node for node in (await status(found)).nodes if node.member.holds])
    if (job := await found.value("running")) is not None:
        tell(f"The rebalance {job} is under way already.")
    elif (job := await found.value("start")) is None:
        return 0
    while True:
        state, tasks, done, message = (await found.rows("job", job=job))[0]
        if state == "finished":
            return int(done)
        if state in ("failed", "cancelled"):
            raise ClusterError(f"The rebalance {job} {state} after {done} of {tasks} moves. {message or ''}".strip())
        progress = await _progress(found)
        tell(f"{done} of {tasks} moved" + (f"; {progress}" if progress else ""))
        await asyncio.sleep(_PAUSE)


def _target(seen: ClusterStatus, source: NodeStatus, to: str | None) -> NodeStatus:
    """Choose the named node, or of the others the one with the fewest bytes. Raises ClusterError."""
    others = [node for node in seen.nodes if node.member.holds and node.member != source.member]
    names = ", ".join(node.member.name for node in others) or "none"
    if to is not None:
        if to == source.member.name:
            raise ClusterError(f"It is at {to} already.")
        others = [node for node in others if node.member.name == to]
        if not others:
            raise ClusterError(f"{to} is no other node that takes shards; there are: {names}.")
    alive = [node for node in others if node.error is None]
    if not alive:
        raise ClusterError(f"There is no other node that takes shards and answers; there are: {names}.")
    return min(alive, key=lambda node: node.bytes)


def _must_replicate(nodes: Sequence[NodeStatus]) -> None:
    """Raise ClusterError unless rows can be copied while they are written."""
    for node in nodes:
        name = node.member.name
        if node.error is not None:
            raise ClusterError(f"{name} does not answer: {node.error}")
        if node.wal_level != "logical":
            raise ClusterError(
                f"{name} has wal_level = {node.wal_level}; moving while it is written needs `wal_level = logical` on every node, "
                "and a restart of it."
            )


async def _progress(found: Coordinator) -> str:
    """Return one line about all moves under way; empty without any."""
    under_way = await moving(found)
    total, copied = sum(one.bytes for one in under_way), sum(one.copied for one in under_way)
    phases = sorted({one.phase.lower() for one in under_way})
    return f"{copied / 2**20:.1f} of {total / 2**20:.1f} MiB, {', '.join(phases)}" if under_way else ""


@asynccontextmanager
async def _telling(found: Coordinator, tell: Tell) -> AsyncIterator[None]:
    """Tell the progress of moves over a second connection meanwhile."""

    async def go_on(beside: Coordinator) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            if progress := await _progress(beside):
                tell(progress)

    async with coordinator(found.conninfo) as beside:
        task = asyncio.create_task(go_on(beside), name="telling the progress of a move")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
