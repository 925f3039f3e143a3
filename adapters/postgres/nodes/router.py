"""Routing of tenants: nodes, organisations on them, and their shards of tables.

A node is a PostgreSQL server. A plain PostgreSQL is one node; with Citus, tables are distributed over several by organisation, and every
node's catalogue contains the placement. The router caches it, refreshes it regularly, and reads it again when it proves wrong.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from domain.kernel.errors import Unavailable

Parts = Mapping[str, Sequence[str]]
"""Names of the shards on a node, by distributed table."""
Query = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[tuple[Any, ...]]]]
"""Function that executes a statement on any node that answers, since all nodes have the same catalogue."""
COORDINATOR = "coordinator"
REFRESH = 30.0
"""Seconds after which the nodes are read again, because one may have been added or have failed over to another address."""
MOST = 100_000
"""Maximum number of cached organisations."""
LOG = logging.getLogger("joinery.nodes")

_CLUSTERED = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_DISTRIBUTED = """
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('public.jobs') AND partmethod = 'h')
"""
_NODES = "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid, nodeid"
_HOMES = """
SELECT wanted.org, p.groupid FROM unnest(%(orgs)s::text[]) AS wanted (org)
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('public.jobs', wanted.org)
"""
_PARTS = """
SELECT p.groupid, c.relname, array_agg(format('%%I.%%I', c.relnamespace::regnamespace, c.relname || '_' || s.shardid))
FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid AND NOT c.relispartition
JOIN pg_dist_shard s ON s.logicalrelid = d.logicalrelid JOIN pg_dist_placement p ON p.shardid = s.shardid
WHERE d.partmethod = 'h' GROUP BY p.groupid, c.relname
"""


@dataclass(frozen=True, slots=True)
class Node:
    """PostgreSQL server with a display name."""

    name: str
    conninfo: str = field(repr=False)


class Placement:
    """Placement of tenants in the catalogue of Citus, or on the only server without Citus.

    Every call reads the catalogue and raises Unavailable.
    """

    def __init__(self, coordinator: Node, query: Query) -> None:
        self._coordinator, self._query = coordinator, query
        self._groups: dict[int, Node] = {}
        """Nodes by Citus' group number of a server and its standbys; empty without Citus."""

    async def nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first."""
        groups: dict[int, Node] = {}  # replaced as a whole, because `homes` reads them concurrently
        if (await self._query(_CLUSTERED, {}))[0][0] and (await self._query(_DISTRIBUTED, {}))[0][0]:
            settings: dict[str, Any] = dict(conninfo_to_dict(self._coordinator.conninfo))
            settings.pop("hostaddr", None)
            groups[0] = self._coordinator
            for group, host, port in await self._query(_NODES, {}):
                if group != 0:
                    groups[group] = Node(f"{host}:{port}", make_conninfo(**settings | {"host": host, "port": port}))
        self._groups = groups
        return list(groups.values()) or [self._coordinator]

    async def homes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        """Return the nodes by organisation."""
        if not self._groups:
            return dict.fromkeys(orgs, self._coordinator)
        groups: dict[str, int] = dict(await self._query(_HOMES, {"orgs": list(orgs)}))
        if not self._groups.keys() >= set(groups.values()):
            await self.nodes()
        return {org: self._groups[group] for org, group in groups.items()}

    async def parts(self) -> Mapping[Node, Parts | None]:
        """Return the shards on each node that holds tenants; None means undistributed tables."""
        if not self._groups:
            return {self._coordinator: None}
        parts: dict[Node, dict[str, Sequence[str]]] = {}
        for group, table, shards in await self._query(_PARTS, {}):
            if group in self._groups:
                parts.setdefault(self._groups[group], {})[table] = sorted(shards)
        return {node: parts[node] for node in self._groups.values() if node in parts}


class Router:
    """Cache of a placement; `changed` is called with the nodes whenever they were read."""

    def __init__(self, placement: Placement, changed: Callable[[Sequence[Node]], None]) -> None:
        self._placement, self._changed = placement, changed
        self._homes: OrderedDict[str, Node] = OrderedDict()
        self._only_node: Node | None = None
        self.known_nodes: Sequence[Node] = ()
        """Nodes as last read."""
        self.parts: Mapping[Node, Parts | None] = {}
        self._mutex = asyncio.Lock()
        self._refresh_at = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first. Raises Unavailable."""
        if self.known_nodes:
            self._refresh_when_due()
        else:
            await self.refresh()
        return self.known_nodes

    def known(self, org: str) -> Node | None:
        """Return the organisation's node from the cache, or None."""
        if self.known_nodes:
            self._refresh_when_due()
        return self._only_node or self._homes.get(org)

    async def homes(self, orgs: Iterable[str]) -> dict[str, Node]:
        """Return the nodes by organisation. Raises Unavailable."""
        await self.nodes()
        homes = {org: self.known(org) for org in orgs}
        if uncached := [org for org, node in homes.items() if node is None]:
            placed = await self._placement.homes(uncached)
            self._homes.update(placed)
            homes.update(placed)
            while len(self._homes) > MOST:
                self._homes.popitem(last=False)
        return {org: node for org, node in homes.items() if node is not None}

    async def home(self, org: str) -> Node:
        """Return the organisation's node. Raises Unavailable."""
        return (await self.homes([org]))[org]

    async def has_moved(self, org: str, from_node: Node | None = None) -> bool:
        """Read the organisation's node again; return whether it differs from `from_node` or, by default, the cached one. Raises Unavailable."""
        if self._only_node is not None:
            return self._only_node != (from_node or self._only_node)
        from_node = from_node or self._homes.get(org)
        self.forget([org])
        return await self.home(org) != from_node

    def forget(self, orgs: Iterable[str]) -> None:
        """Remove the organisations from the cache."""
        for org in orgs:
            self._homes.pop(org, None)

    async def refresh(self, *, divided: bool = False) -> None:
        """Read the nodes and their shards again; if shards have changed (`divided`), clear the cache of homes. Raises Unavailable."""
        before = self._refresh_at
        async with self._mutex:
            if self.known_nodes and self._refresh_at != before:
                return  # another task has just refreshed
            nodes = await self._placement.nodes()
            parts = await self._placement.parts()
            valid = {} if divided or parts != self.parts else self._homes
            self._homes = OrderedDict((org, node) for org, node in valid.items() if node in nodes)
            self.known_nodes, self.parts = tuple(nodes), parts
            self._only_node = nodes[0] if len(nodes) == 1 and parts.get(nodes[0]) is None else None
            self._refresh_at = asyncio.get_running_loop().time() + REFRESH
            self._changed(self.known_nodes)

    def _refresh_when_due(self) -> None:
        """Refresh in the background if due; callers continue with the cached values."""
        is_due = asyncio.get_running_loop().time() > self._refresh_at
        if is_due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh_quietly(), name="refreshing nodes")

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except Unavailable as error:
            self._refresh_at = asyncio.get_running_loop().time() + REFRESH
            LOG.warning("the list of nodes could not be read: %s", error)

    async def close(self) -> None:
        """Stop the background refresh."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))
