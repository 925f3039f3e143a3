"""Where tenants live: which nodes there are, who is on which, and what of a table lies there.

A node is a PostgreSQL server. A plain PostgreSQL is the case of one; with Citus, tables are divided among several by
organisation, and every node knows where each part lies.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from adapters.postgres.nodes.connecting import Connection

Parts = Mapping[str, Sequence[str]]
"""Of each tenants' table, the tables that hold what of it lies on a node."""
Ask = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[tuple[Any, ...]]]]
"""Asks whichever node answers; every node's catalogue says the same."""
COORDINATOR: Final = "coordinator"

_CLUSTERED: Final = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_DISTRIBUTED: Final = """
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('public.jobs') AND partmethod = 'h')
"""
_NODES: Final = (
    "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid, nodeid"
)
_HOMES: Final = """
SELECT wanted.org, p.groupid FROM unnest(%(orgs)s::text[]) AS wanted (org)
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('public.jobs', wanted.org)
"""
_PARTS: Final = """
SELECT p.groupid, c.relname, array_agg(format('%%I.%%I', c.relnamespace::regnamespace, c.relname || '_' || s.shardid))
FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid AND NOT c.relispartition
JOIN pg_dist_shard s ON s.logicalrelid = d.logicalrelid JOIN pg_dist_placement p ON p.shardid = s.shardid
WHERE d.partmethod = 'h' GROUP BY p.groupid, c.relname
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A PostgreSQL server; its name is for people."""

    name: str
    conninfo: str = field(repr=False)


class Placement(Protocol):
    """Who knows where tenants live. Each call asks anew. Raises Unavailable."""

    async def nodes(self) -> Sequence[Node]:
        """Every node; the one with what lies in one place, or on all of them, first."""
        ...

    async def homes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        """The node of each of these organisations."""
        ...

    async def parts(self) -> Mapping[Node, Parts | None]:
        """What of tenants' tables lies on each node. None: the tables themselves; a node that holds no tenant has none."""
        ...


class CataloguePlacement:
    """What the server's own catalogue says: that of Citus, or that there is this server alone."""

    def __init__(self, coordinator: Node, ask: Ask) -> None:
        self._coordinator, self._ask = coordinator, ask
        self._groups: dict[int, Node] = {}
        """By Citus' number of a node and its standbys; empty without Citus."""

    async def nodes(self) -> Sequence[Node]:
        if not await self._clustered():
            self._groups = {}
            return [self._coordinator]
        groups = {0: self._coordinator}
        for group, host, port in await self._ask(_NODES, {}):
            if group != 0:
                groups[group] = Node(f"{host}:{port}", self._conninfo(host, port))
        self._groups = groups
        return list(groups.values())

    async def homes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        if not self._groups:
            return dict.fromkeys(orgs, self._coordinator)
        found: dict[str, int] = dict(await self._ask(_HOMES, {"orgs": list(orgs)}))
        if not self._groups.keys() >= set(found.values()):
            await self.nodes()
        return {org: self._groups[group] for org, group in found.items()}

    async def parts(self) -> Mapping[Node, Parts | None]:
        if not self._groups:
            return {self._coordinator: None}
        found: dict[Node, dict[str, Sequence[str]]] = {node: {} for node in self._groups.values()}
        for group, table, shards in await self._ask(_PARTS, {}):
            if group in self._groups:
                found[self._groups[group]][table] = sorted(shards)
        return {node: parts for node, parts in found.items() if parts}

    async def _clustered(self) -> bool:
        if not (await self._ask(_CLUSTERED, {}))[0][0]:
            return False
        return bool((await self._ask(_DISTRIBUTED, {}))[0][0])

    def _conninfo(self, host: str, port: int) -> str:
        """As the coordinator is reached, with the node's own address."""
        given: dict[str, Any] = dict(conninfo_to_dict(self._coordinator.conninfo))
        given.pop("hostaddr", None)
        return make_conninfo(**given | {"host": host, "port": port})


async def is_distributed(connection: Connection, table: str) -> bool:
    """Whether a cluster's nodes share the table: never on a plain PostgreSQL."""
    cursor = await connection.execute("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL")
    if not (await cursor.fetchone() or [False])[0]:
        return False
    cursor = await connection.execute(
        "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s))", (table,)
    )
    return bool((await cursor.fetchone() or [False])[0])
