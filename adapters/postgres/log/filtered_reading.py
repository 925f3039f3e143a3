"""Reading of one's own log what a filter asks for: only the blocks in which there may be something of it are looked into."""

from collections.abc import Sequence
from typing import Any, Final

from adapters.postgres.events import BLOCK, SQL
from adapters.postgres.log.pages import BACKWARDS, FORWARDS, fetched, furthest, narrowed, page_of_log, stands
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import rendered
from domain.changes.model import OPEN_END, EventBatch, EventFilter
from domain.changes.ports import Recent
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant

_TIME: Final = 8
_LOOKS: Final = (2, 8, 32)
"""Blocks that are looked into, one look after the other, until there is enough: rare events have a block to themselves."""


class FilteredReading:
    """A request looks into some forty blocks at most, wherever in the log they lie."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> tuple[bool, EventBatch]:
        """EventReader.page, and whether the event behind which it begins stands where it stood."""
        names, values = narrowed(wanted, after)
        found: list[LoggedEvent] = []
        reached, looked = after.position, 0
        async with self._pool.tenant(log) as link:
            same, last = await stands(link, log, after.position, after.time), end.position
            if last >= OPEN_END:
                last = (await fetched(link, log, SQL["high_watermark"], {}) or [(0,)])[0][0]
            values |= {"after": after.position, "up_to": last}
            for most_blocks in _LOOKS:
                most = _enough(most_blocks, looked, len(found), limit)
                blocks = await self._blocks(link, log, wanted, reached // BLOCK, most, "forwards")
                values["after"] = reached
                left = limit - len(found), most_bytes - weight_of(found)
                found += await self._look(link, log, blocks, names | FORWARDS | {"up_to"}, values, left)
                whole = len(blocks) < most
                if len(found) >= limit or weight_of(found) >= most_bytes or whole:
                    break
                reached, looked = (blocks[-1] + 1) * BLOCK, looked + len(blocks)
        full = len(found) >= limit or weight_of(found) >= most_bytes
        position = after.behind(found[-1]) if found else after
        if full:
            return same, EventBatch(found, position, caught_up=False)
        if whole or reached >= last:
            return same, EventBatch(found, furthest(position, end, whole=True), caught_up=True)
        return same, EventBatch(found, await self._behind(log, after, reached), caught_up=False)

    async def recent(self, log: Tenant, before: int, limit: int, wanted: EventFilter) -> Recent:
        """EventReader.recent."""
        names, values = narrowed(wanted, LogPosition())
        found: list[LoggedEvent] = []
        async with self._pool.tenant(log) as link:
            for most in _LOOKS:
                blocks = await self._blocks(link, log, wanted, (before - 2) // BLOCK, most, "backwards")
                values["up_to"] = before - 1
                left = limit - len(found), CHANGES_BYTES - weight_of(found)
                found += await self._look(link, log, blocks, names | BACKWARDS, values, left)
                if len(found) >= limit or weight_of(found) >= CHANGES_BYTES:
                    return Recent(found, found[-1].position)
                if len(blocks) < most or blocks[-1] == 0:
                    return Recent(found, 1)
                before = blocks[-1] * BLOCK + 1
        return Recent(found, before)

    async def _behind(self, log: Tenant, after: LogPosition, position: int) -> LogPosition:
        """Behind the event there, which need not be one that is asked for."""
        names, values = narrowed(EventFilter(everything=True), after)
        chosen = rendered(SQL["own"], names | {"positions", "forwards"}, 1)
        async with self._pool.tenant(log) as link:
            rows = await fetched(link, log, chosen, values | {"positions": [position], "share": 0})
        return LogPosition(after.epoch, position, rows[0][_TIME] if rows else None)

    @staticmethod
    async def _blocks(
        link: PooledConnection, log: Tenant, wanted: EventFilter, block: int, most: int, direction: str
    ) -> Sequence[int]:
        terms = wanted.types if wanted.types is not None else wanted.catalogues
        values = {"terms": sorted(terms or ()), "block": block}
        rows = await fetched(link, log, rendered(SQL["blocks"], frozenset({direction}), most), values)
        return [block for (block,) in rows]

    @staticmethod
    async def _look(
        link: PooledConnection,
        log: Tenant,
        blocks: Sequence[int],
        names: frozenset[str],
        values: dict[str, Any],
        left: tuple[int, int],
    ) -> list[LoggedEvent]:
        if not blocks:
            return []
        limit, most_bytes = left
        chosen = rendered(SQL["own_in_blocks"], names, limit)
        given = values | {"blocks": list(blocks)}
        return await page_of_log(link, log, chosen, given, limit, most_bytes, 1 if "forwards" in names else -1)


def _enough(most: int, looked: int, found: int, limit: int) -> int:
    """No more blocks than what is still wanted will lie in, if it lies as close as until now: all that is read is sorted."""
    return min(most, -(-(limit - found) * looked // found) + 1) if found else most
