"""Reading the network's logs: as much of them as the reader's licences show, a bounded look at a time."""

from collections.abc import Sequence
from typing import Any, Final

from adapters.postgres.events import SQL
from adapters.postgres.node_pool import PooledConnection
from adapters.postgres.pool import Pool
from adapters.postgres.session import Fetched
from adapters.postgres.sqlfile import rendered
from domain.changes.model import NETWORK, NETWORK_GROUPS, OPEN_END, EventBatch, EventFilter, LogPosition, View
from domain.events.model import OFF_THE_FEED, LoggedEvent, weight_of, within
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from ports.events import Recent

WINDOW: Final = 2_000
"""Events of the log that are looked at in one go, whoever may see them."""
ORDINARY: Final = 4 << 10
"""Bytes up to which an event is read whatever its share: nearly all are smaller."""
FORWARDS: Final = frozenset({"forwards", "after"})
BACKWARDS: Final = frozenset({"backwards", "up_to"})
_BODY: Final = 9


def narrowed(wanted: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """The optional lines of a statement that a filter and a position need, and their parameters."""
    given: dict[str, Any] = {}
    if wanted.types is not None:
        given["types"] = sorted(wanted.types)
    if not wanted.everything:
        given["hidden"] = list(OFF_THE_FEED)
    if wanted.catalogues is not None:
        given["catalogues"] = sorted(wanted.catalogues)
    if after.since is not None:
        given["since"] = after.since
    return frozenset(given), given


def share_of(limit: int, most_bytes: int) -> int:
    """How large a body may be to be read at once; where any is larger, all are weighed."""
    return max(most_bytes // max(limit, 1), ORDINARY)


def furthest(position: LogPosition, end: LogPosition, *, whole: bool) -> LogPosition:
    """How far a page has come: to the end that was known before, or beyond."""
    return end if whole and position.position <= end.position < OPEN_END else position


class NetworkReading:
    """The cost of a look is bounded by what is looked at, and does not hang on how many licences the reader holds."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(
        self, view: View, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> EventBatch:
        """EventReader.page."""
        names, values = narrowed(wanted, after)
        values |= {"after": after.position, "at": after.time}
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names | FORWARDS, values, limit, most_bytes)
            same, reached, dated, scanned, *_ = rows[0]
            if not same and after.time is not None and await self._low(link, view.log) != after.position:
                raise CursorExpired
            events = await self._events(link, view, rows, limit, most_bytes)
        if len(events) == limit or weight_of(events) >= most_bytes:
            return EventBatch(events, after.behind(events[-1]), caught_up=False)
        whole = scanned < max(WINDOW, limit)
        position = LogPosition(after.epoch, reached, dated) if reached else after
        return EventBatch(events, furthest(position, end, whole=whole), caught_up=whole)

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        """EventReader.recent."""
        names, values = narrowed(wanted, LogPosition())
        values["up_to"] = before - 1
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names | BACKWARDS, values, limit, CHANGES_BYTES)
            events = await self._events(link, view, rows, limit, CHANGES_BYTES)
        if len(events) == limit or weight_of(events) >= CHANGES_BYTES:
            return Recent(events, events[-1].position)
        _, reached, _, scanned, *_ = rows[0]
        return Recent(events, 1 if scanned < max(WINDOW, limit) else reached)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """EventReader.at."""
        if not positions:
            return []
        values = {"after": min(positions) - 1, "up_to": max(positions), "positions": list(positions), "at": None}
        names = FORWARDS | {"positions", "up_to"}
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names, values, len(positions), PROCESS_BYTES)
            return await self._events(link, view, rows, len(positions), PROCESS_BYTES)

    @staticmethod
    async def _look(
        link: PooledConnection, view: View, names: frozenset[str], values: dict[str, Any], limit: int, most_bytes: int
    ) -> list[Fetched]:
        sql = rendered(SQL["network"], names, limit).replace("{window}", str(max(WINDOW, limit)))
        params = {
            **values, "org": view.log.org, "livemode": view.log.livemode, "share": share_of(limit, most_bytes),
            "holder": view.tenant.org, "holders": [view.tenant.org, "*"],
        }  # fmt: skip
        return await (await link.cursor.execute(sql, params)).fetchall()

    async def _events(
        self, link: PooledConnection, view: View, rows: list[Fetched], limit: int, most_bytes: int
    ) -> Sequence[LoggedEvent]:
        """The events of a look, with bodies that were left where they were as far as there is room for them."""
        found = [row[4:] for row in rows if row[4] is not None]
        events, weight = [], 0
        for row in found:
            body = row[_BODY] if row[_BODY] is not None else await self._body(link, view.log, row[0])
            events.append(LoggedEvent(*(*row[:_BODY], body, NETWORK_GROUPS.union(row[-1]))))
            weight += len(body)
            if weight >= most_bytes:
                break
        return within(events, limit, most_bytes)

    @staticmethod
    async def _body(link: PooledConnection, log: Tenant, position: int) -> bytes:
        params = {"org": log.org, "livemode": log.livemode, "position": position}
        row = await (await link.cursor.execute(SQL["network_body"], params)).fetchone()
        return row[0] if row else b""

    @staticmethod
    async def _low(link: PooledConnection, log: Tenant) -> int:
        params = {"org": log.org, "livemode": log.livemode}
        row = await (await link.cursor.execute(SQL["low_watermark"], params)).fetchone()
        return int(row[0]) if row else 0
