"""Reading event logs in PostgreSQL: how far they go, pages of them, and what licences show of the network's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from adapters.postgres.events import SQL, new_epoch
from adapters.postgres.network_reading import (
    BACKWARDS,
    FORWARDS,
    ORDINARY,
    NetworkReading,
    furthest,
    narrowed,
    share_of,
)
from adapters.postgres.pool import Pool, PooledConnection
from adapters.postgres.session import Fetched
from adapters.postgres.sqlfile import rendered
from domain.changes.model import EventBatch, EventFilter, LogBounds, LogPosition, View
from domain.events.model import LoggedEvent, weight_of
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from ports.events import Recent, Splice

_FEW_TYPES: Final = 8
"""So many are looked for one by one, by their index; more are hardly rare."""
WINDOW: Final = 10_000
"""Positions that are looked through in one go for what has no index."""
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
        look, share = _Look.forwards(wanted, after, end, limit), {"share": share_of(limit, most_bytes)}
        async with self._pool.tenant(view.log) as link:
            rows = await _fetched(link, view.log, SQL["page"].replace("{chosen}", look.chosen), look.values | share)
            same = bool(rows[0][0])
            found = [row for row in rows if row[1] is not None]
            if any(row[-1] is None for row in found):
                found = await _weighed(link, view.log, look.chosen, look.values, most_bytes)
        if not same and after.time is not None:
            await self._refuse_lost(view.log, after)
        events = [LoggedEvent(*row[1:]) for row in found]
        whole = len(events) < limit and weight_of(events) < most_bytes
        position = after.behind(events[-1]) if events else after
        if whole and look.end is not None:
            return EventBatch(events, position.at(look.end), caught_up=False)
        return EventBatch(events, furthest(position, end, whole=whole), caught_up=whole)

    async def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        """Unless the event there, and nothing beyond it, was dropped by age."""
        if (await self.bounds([log]))[log].low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        if view.of_network:
            return await self._network.recent(view, before, limit, wanted)
        look, share = _Look.backwards(wanted, before, limit), {"share": share_of(limit, CHANGES_BYTES)}
        async with self._pool.tenant(view.log) as link:
            found = await _fetched(link, view.log, SQL["plain"].replace("{chosen}", look.chosen), look.values | share)
            if any(row[-1] is None for row in found):
                found = await _weighed(link, view.log, look.chosen, look.values, CHANGES_BYTES, direction=-1)
        events = [LoggedEvent(*row[1:]) for row in found]
        whole = len(events) < limit and weight_of(events) < CHANGES_BYTES
        return Recent(events, (look.end or 0) + 1 if whole else events[-1].position)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        look, share = _Look.forwards(wanted, after, end, limit), {"share": share_of(limit, CHANGES_BYTES)}
        [row] = await self._rows(tenant, SQL["splice"].replace("{chosen}", look.chosen), look.values | share)
        same, count, position, time, body, large = row
        if large:
            page = await self.page(View.own(tenant), after, end, limit, wanted)
            return Splice(len(page.events), page.position, b",".join(e.body for e in page.events), page.caught_up)
        if not same and after.time is not None:
            await self._refuse_lost(tenant, after)
        whole = count < limit and len(body or b"") < CHANGES_BYTES
        last = LogPosition(after.epoch, position, time) if count else after
        if whole and look.end is not None:
            return Splice(count, last.at(look.end), body or b"", caught_up=False)
        return Splice(count, furthest(last, end, whole=whole), body or b"", caught_up=whole)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.of_network:
            return await self._network.at(view, positions)
        values = {"positions": list(positions), "share": _WHATEVER}
        return await self._plain(view.log, frozenset({"positions", "forwards"}), values, len(positions), 1)

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        values = {"after": after, "subject": subject, "share": ORDINARY}
        return await self._plain(tenant, frozenset({"subject", "after", "backwards"}), values, limit, -1)

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


@dataclass(frozen=True, slots=True)
class _Look:
    """Which events of a log are looked at: the statement that chooses them, its parameters, and where it ends.

    Catalogues have no index of their own, because a log has hardly any but its organisation's: of those asked for, a
    window of the log is looked through. `end` is where it ends, None where nothing but the limit ends it.
    """

    chosen: LiteralString
    values: dict[str, Any]
    end: int | None

    @classmethod
    def forwards(cls, wanted: EventFilter, after: LogPosition, end: LogPosition, limit: int) -> "_Look":
        """From a position on."""
        names, values = narrowed(wanted, after)
        values |= {"after": after.position, "at": after.time}
        window = after.position + WINDOW if wanted.catalogues is not None else end.position
        if window < end.position:
            values["up_to"], names = window, names | {"up_to"}
        return cls(_rendered(wanted, names | FORWARDS, limit), values, window if window < end.position else None)

    @classmethod
    def backwards(cls, wanted: EventFilter, before: int, limit: int) -> "_Look":
        """From the newest below a position on."""
        names, values = narrowed(wanted, LogPosition())
        values["up_to"] = before - 1
        window = max(0, before - 1 - WINDOW) if wanted.catalogues is not None else 0
        if window:
            values["after"], names = window, names | {"after"}
        return cls(_rendered(wanted, names | BACKWARDS, limit), values, window or None)


def _rendered(wanted: EventFilter, names: frozenset[str], limit: int) -> LiteralString:
    if "types" not in names:
        return rendered(SQL["own"], names, limit)
    if wanted.types is not None and len(wanted.types) > _FEW_TYPES:
        return rendered(SQL["own"], names - {"types"} | {"some_types"}, limit)
    return rendered(SQL["own_by_type"], names, limit)


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
