"""Which node is whose, as far as it was asked: remembered, asked again when it was wrong, and now and then."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from adapters.postgres.nodes.placement import Node, Parts, Placement
from domain.kernel.errors import Unavailable

REFRESH: Final = 30.0
"""Seconds after which the nodes are asked for again: one may have been added, or have failed over to another address."""
MOST: Final = 100_000
"""Organisations whose node is remembered."""

LOG: Final = logging.getLogger("joinery.nodes")


class Router:
    """One a pool. `changed` hears of the nodes whenever they were asked for."""

    def __init__(self, placement: Placement, changed: Callable[[Sequence[Node]], None]) -> None:
        self._placement, self._changed = placement, changed
        self._nodes: Sequence[Node] = ()
        self._homes: OrderedDict[str, Node] = OrderedDict()
        self._only: Node | None = None
        self.parts: Mapping[Node, Parts | None] = {}
        self._asked = asyncio.Lock()
        self._due = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def known_nodes(self) -> Sequence[Node]:
        """The nodes as they were told last; none before the first time."""
        return self._nodes

    async def nodes(self) -> Sequence[Node]:
        """Every node, the coordinator first. Raises Unavailable."""
        if self._nodes:
            self._mind_age()
        else:
            await self.refresh()
        return self._nodes

    @property
    def alone(self) -> bool:
        """Whether there is but one node, which has everything."""
        return self._only is not None

    def known(self, org: str) -> Node | None:
        """The organisation's node, unless it must be asked for."""
        if self._nodes:
            self._mind_age()
        return self._only or self._homes.get(org)

    async def homes(self, orgs: Iterable[str]) -> dict[str, Node]:
        """The node of each organisation. Raises Unavailable."""
        await self.nodes()
        found = {org: self.known(org) for org in orgs}
        if unknown := [org for org, node in found.items() if node is None]:
            asked = await self._placement.homes(unknown)
            self._homes.update(asked)
            found.update(asked)
            while len(self._homes) > MOST:
                self._homes.popitem(last=False)
        return {org: node for org, node in found.items() if node is not None}

    async def moved(self, org: str, from_node: Node) -> bool:
        """Ask anew where the organisation is; whether it is elsewhere by now. Raises Unavailable."""
        self.forget([org])
        await self.refresh()
        return (await self.homes([org])).get(org) != from_node

    def forget(self, orgs: Iterable[str]) -> None:
        """Have these asked for again."""
        for org in orgs:
            self._homes.pop(org, None)

    async def refresh(self, *, divided: bool = False) -> None:
        """Ask for the nodes, and what lies on them; when it is divided otherwise, whose homes are where, too. Raises Unavailable."""
        before = self._due
        async with self._asked:
            if self._nodes and self._due != before:
                return  # somebody else has just done so
            nodes = await self._placement.nodes()
            parts = await self._placement.parts()
            self._homes = OrderedDict((org, node) for org, node in self._homes.items() if node in nodes)
            if divided or parts != self.parts:
                self._homes.clear()
            self._nodes, self.parts = tuple(nodes), parts
            alone = len(nodes) == 1 and parts.get(nodes[0]) is None
            self._only = nodes[0] if alone else None
            self._due = asyncio.get_running_loop().time() + REFRESH
            self._changed(self._nodes)

    def _mind_age(self) -> None:
        """Have what is old asked for again, while everybody goes on with it."""
        now = asyncio.get_running_loop().time()
        if now > self._due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh_quietly(), name="refreshing nodes")

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except Unavailable as error:
            self._due = asyncio.get_running_loop().time() + REFRESH
            LOG.warning("the nodes could not be asked for: %s", error)

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))
