"""Reading event logs in PostgreSQL: how far they go, pages of them, and what licences show of the network's."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, LiteralString

from adapters.postgres.events import SQL, new_epoch
from adapters.postgres.network_reading import BACKWARDS, FORWARDS, ORDINARY, NetworkReading, narrowed, share_of
from adapters.postgres.pool import Pool, PooledConnection
from adapters.postgres.session import Fetched
from adapters.postgres.sqlfile import rendered
from domain.changes.model import OPEN_END, EventBatch, EventFilter, LogBounds, LogPosition, View
from domain.events.model import OFF_THE_FEED, LoggedEvent, weight_of
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from ports.events import Recent, Splice

_FEW_TYPES: Final = 8
"""So many are looked for one by one, by their index; more are hardly rare."""
_WHATEVER: Final = 1 << 30


class PostgresEventReader:
    """Own rows behind one's own row-level security, the network's by the licences that their owners gave."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._network = NetworkReading(pool)

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        params = {"orgs": [log.org for log in logs], "livemodes": [log.livemode for log in logs]}
        async with self._pool.system() as link:
            rows = await (await link.cursor.execute(SQL["bounds"], params)).fetchall()
        found = {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in rows}
        return {log: found.get(log, LogBounds()) for log in logs}

    async def begin_epoch(self, log: Tenant, after: int) -> None:
        await self._rows(log, SQL["begin_epoch"], {"after": after, "epoch": new_epoch()})

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        params = {"orgs": [tenant.org for tenant in tenants], "livemodes": [tenant.livemode for tenant in tenants]}
        async with self._pool.system() as link:
            rows = await (await link.cursor.execute(SQL["licensed"], params)).fetchall()
        return frozenset(Tenant(org, livemode) for org, livemode in rows)

    async def page(
        self,
        view: View,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter,
        *,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        if view.of_network:
            return await self._network.page(view, after, end, limit, wanted, most_bytes)
        chosen, values = _chosen(wanted, after, end.position, limit, FORWARDS)
        values |= {"share": share_of(limit, most_bytes), "at": after.time}
        async with self._pool.tenant(view.log) as link:
            rows = await _fetched(link, view.log, SQL["page"].replace("{chosen}", chosen), values)
            same = bool(rows[0][0])
            found = [row for row in rows if row[1] is not None]
            if any(row[-1] is None for row in found):
                found = await _weighed(link, view.log, chosen, values, most_bytes)
        if not same and after.time is not None:
            await self._refuse_lost(view.log, after)
        events = [LoggedEvent(*row[1:]) for row in found]
        whole = len(events) < limit and weight_of(events) < most_bytes
        return EventBatch(events, _reached(after, end, events, whole=whole), caught_up=whole)

    async def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        """Unless the event there, and nothing beyond it, was dropped by age."""
        if (await self.bounds([log]))[log].low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        if view.of_network:
            return await self._network.recent(view, before, limit, wanted)
        chosen, values = _chosen(wanted, LogPosition(), before - 1, limit, BACKWARDS)
        values["share"] = share_of(limit, CHANGES_BYTES)
        async with self._pool.tenant(view.log) as link:
            found = await _fetched(link, view.log, SQL["plain"].replace("{chosen}", chosen), values)
            if any(row[-1] is None for row in found):
                found = await _weighed(link, view.log, chosen, values, CHANGES_BYTES, direction=-1)
        events = [LoggedEvent(*row[1:]) for row in found]
        whole = len(events) < limit and weight_of(events) < CHANGES_BYTES
        return Recent(events, 1 if whole else events[-1].position)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        chosen, values = _chosen(wanted, after, end.position, limit, FORWARDS)
        values |= {"share": share_of(limit, CHANGES_BYTES), "at": after.time}
        [row] = await self._rows(tenant, SQL["splice"].replace("{chosen}", chosen), values)
        same, count, position, time, body, large = row
        if large:
            page = await self.page(View.own(tenant), after, end, limit, wanted)
            return Splice(len(page.events), page.position, b",".join(e.body for e in page.events), page.caught_up)
        if not same and after.time is not None:
            await self._refuse_lost(tenant, after)
        whole = count < limit and len(body or b"") < CHANGES_BYTES
        last = LogPosition(after.epoch, position, time) if count else after
        return Splice(count, end if whole else last, body or b"", whole)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.of_network:
            return await self._network.at(view, positions)
        values = {"after": 0, "up_to": OPEN_END, "positions": list(positions), "share": _WHATEVER}
        return await self._plain(view.log, frozenset({"positions", "forwards"}), values, len(positions), 1)

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        values = {"after": after, "up_to": OPEN_END, "subject": subject, "share": ORDINARY}
        return await self._plain(tenant, frozenset({"subject", "backwards"}), values, limit, -1)

    async def _plain(
        self, log: Tenant, names: frozenset[str], values: dict[str, Any], limit: int, direction: int
    ) -> list[LoggedEvent]:
        chosen = rendered(SQL["own"], names, limit)
        async with self._pool.tenant(log) as link:
            rows = await _weighed(link, log, chosen, values, PROCESS_BYTES, direction)
        return [LoggedEvent(*row[1:]) for row in rows]

    async def _rows(self, log: Tenant, sql: LiteralString, values: dict[str, Any]) -> list[Fetched]:
        async with self._pool.tenant(log) as link:
            return await _fetched(link, log, sql, values)


def _chosen(
    wanted: EventFilter, after: LogPosition, up_to: int, limit: int, direction: frozenset[str]
) -> tuple[LiteralString, dict[str, Any]]:
    """The events of a page, and the parameters."""
    names, values = narrowed(wanted, after)
    values |= {"after": after.position, "up_to": up_to}
    if wanted.types is None or len(wanted.types) > _FEW_TYPES:
        lines = (names - {"types"} | {"some_types"}) if "types" in names else names
        return rendered(SQL["own"], lines | direction, limit), values
    if not wanted.everything:
        values["types"] = [kind for kind in values["types"] if kind not in OFF_THE_FEED]
    return rendered(SQL["own_by_type"], names | direction, limit), values


def _reached(after: LogPosition, end: LogPosition, events: Sequence[LoggedEvent], *, whole: bool) -> LogPosition:
    if whole and end.position < OPEN_END:
        return end
    return after.behind(events[-1]) if events else after


async def _fetched(link: PooledConnection, log: Tenant, sql: LiteralString, values: dict[str, Any]) -> list[Fetched]:
    cursor = await link.cursor.execute(sql, {"org": log.org, "livemode": log.livemode, **values})
    return await cursor.fetchall() if cursor.description else []


async def _weighed(
    link: PooledConnection,
    log: Tenant,
    chosen: LiteralString,
    values: dict[str, Any],
    most_bytes: int,
    direction: int = 1,
) -> list[Fetched]:
    """The rows of a page up to the one that reaches the weight."""
    sql = SQL["weighed"].replace("{chosen}", chosen)
    return await _fetched(
        link, log, sql, values | {"share": _WHATEVER, "most_bytes": most_bytes, "direction": direction}
    )
