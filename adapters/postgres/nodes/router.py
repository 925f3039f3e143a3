"""Where tenants are: which nodes there are, which organisation is on which, and which shards of a table lie there.

A node is a PostgreSQL server. A plain PostgreSQL is one node; with Citus, tables are divided among several by organisation, and every
node's catalogue knows where each part lies. What was read of it is remembered, read again when it proves wrong, and refreshed in between.
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
"""The names of the shards of each distributed table on a node."""
Query = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[tuple[Any, ...]]]]
"""Runs a statement on whichever node answers: every node's catalogue says the same."""
COORDINATOR = "coordinator"
REFRESH = 30.0
"""Seconds after which the nodes are read again: one may have been added, or have failed over to another address."""
MOST = 100_000
"""Organisations whose node is remembered."""
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
    """A PostgreSQL server; its name is for people."""

    name: str
    conninfo: str = field(repr=False)


class Placement:
    """The source of what the router remembers: the server's own catalogue, Citus' or that there is this server alone.

    Each call reads anew and raises Unavailable.
    """

    def __init__(self, coordinator: Node, query: Query) -> None:
        self._coordinator, self._query = coordinator, query
        self._groups: dict[int, Node] = {}
        """Nodes by Citus' number of a server and its standbys; empty without Citus."""

    async def nodes(self) -> Sequence[Node]:
        """Return every node, the coordinator first."""
        groups: dict[int, Node] = {}  # replaced as a whole: `homes` reads them meanwhile
        if (await self._query(_CLUSTERED, {}))[0][0] and (await self._query(_DISTRIBUTED, {}))[0][0]:
            given: dict[str, Any] = dict(conninfo_to_dict(self._coordinator.conninfo))
            given.pop("hostaddr", None)
            groups[0] = self._coordinator
            for group, host, port in await self._query(_NODES, {}):
                if group != 0:
                    groups[group] = Node(f"{host}:{port}", make_conninfo(**given | {"host": host, "port": port}))
        self._groups = groups
        return list(groups.values()) or [self._coordinator]

    async def homes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        """Return the node of each of these organisations."""
        if not self._groups:
            return dict.fromkeys(orgs, self._coordinator)
        found: dict[str, int] = dict(await self._query(_HOMES, {"orgs": list(orgs)}))
        if not self._groups.keys() >= set(found.values()):
            await self.nodes()
        return {org: self._groups[group] for org, group in found.items()}

    async def parts(self) -> Mapping[Node, Parts | None]:
        """Return the shards on each node that holds tenants; None stands for the undivided tables."""
        if not self._groups:
            return {self._coordinator: None}
        found: dict[Node, dict[str, Sequence[str]]] = {}
        for group, table, shards in await self._query(_PARTS, {}):
            if group in self._groups:
                found.setdefault(self._groups[group], {})[table] = sorted(shards)
        return {node: found[node] for node in self._groups.values() if node in found}


class Router:
    """What is remembered of a placement. `changed` is given the nodes whenever they were read."""

    def __init__(self, placement: Placement, changed: Callable[[Sequence[Node]], None]) -> None:
        self._placement, self._changed = placement, changed
        self._homes: OrderedDict[str, Node] = OrderedDict()
        self._only: Node | None = None
        self.known_nodes: Sequence[Node] = ()
        """The nodes as they were read last."""
        self.parts: Mapping[Node, Parts | None] = {}
        self._reading = asyncio.Lock()
        self._due = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def nodes(self) -> Sequence[Node]:
        """Return every node, the coordinator first. Raises Unavailable."""
        if self.known_nodes:
            self._refresh_when_due()
        else:
            await self.refresh()
        return self.known_nodes

    def known(self, org: str) -> Node | None:
        """Return the organisation's node as far as it is remembered."""
        if self.known_nodes:
            self._refresh_when_due()
        return self._only or self._homes.get(org)

    async def homes(self, orgs: Iterable[str]) -> dict[str, Node]:
        """Return the node of each organisation. Raises Unavailable."""
        await self.nodes()
        found = {org: self.known(org) for org in orgs}
        if unknown := [org for org, node in found.items() if node is None]:
            read = await self._placement.homes(unknown)
            self._homes.update(read)
            found.update(read)
            while len(self._homes) > MOST:
                self._homes.popitem(last=False)
        return {org: node for org, node in found.items() if node is not None}

    async def home(self, org: str) -> Node:
        """Return the organisation's node. Raises Unavailable."""
        return (await self.homes([org]))[org]

    async def has_moved(self, org: str, from_node: Node | None = None) -> bool:
        """Read anew where the organisation is, and return whether it is on another node, by default than was known. Raises Unavailable."""
        if self._only is not None:
            return self._only != (from_node or self._only)
        from_node = from_node or self._homes.get(org)
        self.forget([org])
        return await self.home(org) != from_node

    def forget(self, orgs: Iterable[str]) -> None:
        """Have the nodes of these organisations read again."""
        for org in orgs:
            self._homes.pop(org, None)

    async def refresh(self, *, divided: bool = False) -> None:
        """Read the nodes and their shards; when shards moved (`divided`), forget all homes. Raises Unavailable."""
        before = self._due
        async with self._reading:
            if self.known_nodes and self._due != before:
                return  # another task has just done so
            nodes = await self._placement.nodes()
            parts = await self._placement.parts()
            kept = {} if divided or parts != self.parts else self._homes
            self._homes = OrderedDict((org, node) for org, node in kept.items() if node in nodes)
            self.known_nodes, self.parts = tuple(nodes), parts
            self._only = nodes[0] if len(nodes) == 1 and parts.get(nodes[0]) is None else None
            self._due = asyncio.get_running_loop().time() + REFRESH
            self._changed(self.known_nodes)

    def _refresh_when_due(self) -> None:
        """Refresh in the background; callers go on with what is remembered."""
        due = asyncio.get_running_loop().time() > self._due
        if due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh_quietly(), name="refreshing nodes")

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except Unavailable as error:
            self._due = asyncio.get_running_loop().time() + REFRESH
            LOG.warning("the nodes could not be asked for: %s", error)

    async def close(self) -> None:
        """Stop refreshing."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))
