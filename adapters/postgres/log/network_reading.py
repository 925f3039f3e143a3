"""Reading the network's logs: as much of them as the reader's licences show, a bounded look at a time."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from adapters.postgres.events import SQL
from adapters.postgres.log.pages import BACKWARDS, FORWARDS, fetched, furthest, narrowed, share_of
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Fetched
from adapters.postgres.sqlfile import rendered
from domain.changes.model import NETWORK, NETWORK_GROUPS, EventBatch, EventFilter, View
from domain.changes.ports import Grant, Recent
from domain.events.model import LoggedEvent, LogPosition, weight_of, within
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

WINDOW: Final = 2_000
"""Events of the log that are looked at in one go, whoever may see them."""
_BODY: Final = 9


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

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        """EventReader.grants."""
        holders = [*sorted({tenant.org for tenant in tenants}), "*"]
        values = {"after": after, "up_to": up_to, "holders": holders}
        async with self._pool.home(NETWORK) as link:
            rows = await fetched(link, log, SQL["grants"], values)
        return [Grant(position, owner, holder, frozenset(groups)) for position, owner, holder, groups in rows]

    @staticmethod
    async def _look(
        link: PooledConnection, view: View, names: frozenset[str], values: dict[str, Any], limit: int, most_bytes: int
    ) -> list[Fetched]:
        sql = rendered(SQL["network"], names, limit).replace("{window}", str(max(WINDOW, limit)))
        reader = {"holder": view.tenant.org, "holders": [view.tenant.org, "*"]}
        return await fetched(link, view.log, sql, values | reader | {"share": share_of(limit, most_bytes)})

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
        rows = await fetched(link, log, SQL["network_body"], {"position": position})
        return rows[0][0] if rows else b""

    @staticmethod
    async def _low(link: PooledConnection, log: Tenant) -> int:
        rows = await fetched(link, log, SQL["low_watermark"], {})
        return int(rows[0][0]) if rows else 0
