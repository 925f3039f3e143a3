"""Routing of tenants to nodes, with a cache of the nodes, the organisations on each node, and the shards of tables.

A node is a PostgreSQL server. A plain PostgreSQL is one node; with Citus, tables are distributed over several nodes by
organisation, and the system catalogue of each node contains the placement. The router caches the placement, refreshes
it regularly, and reads it again when a tenant is not on the cached node.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from domain.kernel.errors import Unavailable

ShardNames = Mapping[str, Sequence[str]]
"""Names of the shards that a node stores, by distributed table."""
SystemCatalogueQuery = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[tuple[Any, ...]]]]
"""Function that executes an SQL statement on one responding node and returns the rows.

Any node is suitable, because all nodes have the same system catalogue.
"""
COORDINATOR = "coordinator"
REFRESH_SECONDS = 30.0
"""Seconds after which the nodes are read again, because one may have been added or have failed over to another address."""
MAX_CACHED_ORGS = 100_000
"""Maximum number of cached organisations; beyond it, the oldest entries are removed."""
LOG = logging.getLogger("joinery.nodes")

_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_IS_DISTRIBUTED = """
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('public.jobs') AND partmethod = 'h')
"""
_NODES = "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid, nodeid"
_NODES_OF_ORGS = """
SELECT wanted.org, p.groupid FROM unnest(%(orgs)s::text[]) AS wanted (org)
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('public.jobs', wanted.org)
"""
_SHARDS = """
SELECT p.groupid, c.relname, array_agg(format('%%I.%%I', c.relnamespace::regnamespace, c.relname || '_' || s.shardid))
FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid AND NOT c.relispartition
JOIN pg_dist_shard s ON s.logicalrelid = d.logicalrelid JOIN pg_dist_placement p ON p.shardid = s.shardid
WHERE d.partmethod = 'h' GROUP BY p.groupid, c.relname
"""


@dataclass(frozen=True, slots=True)
class Node:
    """PostgreSQL server.

    Attributes:
        name: Display name.
        conninfo: Address and login.
    """

    name: str
    conninfo: str = field(repr=False)


class Placement:
    """Placement of tenants on nodes, read from Citus' system catalogue; without Citus, all tenants are on one node.

    Every method raises Unavailable if no node responds.
    """

    def __init__(self, coordinator: Node, query: SystemCatalogueQuery) -> None:
        self._coordinator, self._query = coordinator, query
        self._groups: dict[int, Node] = {}
        """Nodes by Citus' number of the group that a server and its standbys form; empty without Citus."""

    async def list_nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first."""
        groups: dict[int, Node] = {}  # replaced as a whole, because `find_nodes` reads it concurrently
        if (await self._query(_HAS_CITUS, {}))[0][0] and (await self._query(_IS_DISTRIBUTED, {}))[0][0]:
            settings: dict[str, Any] = dict(conninfo_to_dict(self._coordinator.conninfo))
            settings.pop("hostaddr", None)
            groups[0] = self._coordinator
            for group, host, port in await self._query(_NODES, {}):
                if group != 0:
                    groups[group] = Node(f"{host}:{port}", make_conninfo(**settings | {"host": host, "port": port}))
        self._groups = groups
        return list(groups.values()) or [self._coordinator]

    async def find_nodes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        """Return the node that stores each of the organisations."""
        if not self._groups:
            return dict.fromkeys(orgs, self._coordinator)
        groups: dict[str, int] = dict(await self._query(_NODES_OF_ORGS, {"orgs": list(orgs)}))
        if not self._groups.keys() >= set(groups.values()):
            await self.list_nodes()
        return {org: self._groups[group] for org, group in groups.items()}

    async def list_shards(self) -> Mapping[Node, ShardNames | None]:
        """Return the names of the shards on each node that stores tenants; None if the tables are not distributed."""
        if not self._groups:
            return {self._coordinator: None}
        shards_by_node: dict[Node, dict[str, Sequence[str]]] = {}
        for group, table, names in await self._query(_SHARDS, {}):
            if group in self._groups:
                shards_by_node.setdefault(self._groups[group], {})[table] = sorted(names)
        return {node: shards_by_node[node] for node in self._groups.values() if node in shards_by_node}


class Router:
    """Router of tenants to nodes, with a cache of the placement.

    The function `on_nodes_read` is called with the nodes each time they are read.
    """

    def __init__(self, placement: Placement, on_nodes_read: Callable[[Sequence[Node]], None]) -> None:
        self._placement, self._changed = placement, on_nodes_read
        self._node_by_org: OrderedDict[str, Node] = OrderedDict()
        self._only_node: Node | None = None
        self.cached_nodes: Sequence[Node] = ()
        """Nodes that were read last, the coordinator first; empty before the first read."""
        self.shards_by_node: Mapping[Node, ShardNames | None] = {}
        """Names of the shards on each node that stores tenants, by table; None if the tables are not distributed."""
        self._mutex = asyncio.Lock()
        self._refresh_at = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def list_nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first. Raises Unavailable."""
        if self.cached_nodes:
            self._refresh_when_due()
        else:
            await self.refresh()
        return self.cached_nodes

    def get_cached_node(self, org: str) -> Node | None:
        """Return the node of the organisation from the cache, or None if it is not cached."""
        if self.cached_nodes:
            self._refresh_when_due()
        return self._only_node or self._node_by_org.get(org)

    async def find_nodes(self, orgs: Iterable[str]) -> dict[str, Node]:
        """Return the node that stores each of the organisations, from the cache or the placement. Raises Unavailable."""
        await self.list_nodes()
        node_by_org = {org: self.get_cached_node(org) for org in orgs}
        if uncached := [org for org, node in node_by_org.items() if node is None]:
            placed = await self._placement.find_nodes(uncached)
            self._node_by_org.update(placed)
            node_by_org.update(placed)
            while len(self._node_by_org) > MAX_CACHED_ORGS:
                self._node_by_org.popitem(last=False)
        return {org: node for org, node in node_by_org.items() if node is not None}

    async def find_node(self, org: str) -> Node:
        """Return the node that stores the organisation, from the cache or the placement. Raises Unavailable."""
        return (await self.find_nodes([org]))[org]

    async def has_moved(self, org: str, from_node: Node | None = None) -> bool:
        """Return whether the organisation's node differs from `from_node`, by default the cached node.

        The node is read from the placement into the cache if the tables are distributed. Raises Unavailable.
        """
        if self._only_node is not None:
            return self._only_node != (from_node or self._only_node)
        from_node = from_node or self._node_by_org.get(org)
        self.remove_from_cache([org])
        return await self.find_node(org) != from_node

    def remove_from_cache(self, orgs: Iterable[str]) -> None:
        """Remove the nodes of these organisations from the cache."""
        for org in orgs:
            self._node_by_org.pop(org, None)

    async def refresh(self, *, have_shards_moved: bool = False) -> None:
        """Read the nodes and their shards again. Raises Unavailable.

        `have_shards_moved` means that shards were split or moved, so the cached nodes of all organisations are discarded.
        """
        before = self._refresh_at
        async with self._mutex:
            if self.cached_nodes and self._refresh_at != before:
                return  # another task has just refreshed
            nodes = await self._placement.list_nodes()
            shards = await self._placement.list_shards()
            valid_node_by_org = {} if have_shards_moved or shards != self.shards_by_node else self._node_by_org
            self._node_by_org = OrderedDict((org, node) for org, node in valid_node_by_org.items() if node in nodes)
            self.cached_nodes, self.shards_by_node = tuple(nodes), shards
            self._only_node = nodes[0] if len(nodes) == 1 and shards.get(nodes[0]) is None else None
            self._refresh_at = asyncio.get_running_loop().time() + REFRESH_SECONDS
            self._changed(self.cached_nodes)

    def _refresh_when_due(self) -> None:
        """Start a refresh in the background if the cache is too old. Callers use the cached values meanwhile."""
        is_due = asyncio.get_running_loop().time() > self._refresh_at
        if is_due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh_quietly(), name="refreshing nodes")

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except Unavailable as error:
            self._refresh_at = asyncio.get_running_loop().time() + REFRESH_SECONDS
            LOG.warning("could not read the list of nodes: %s", error)

    async def close(self) -> None:
        """Stop the background refresh."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))
