"""Reading event logs in PostgreSQL: how far they go, pages of them, and what licences show of the network's."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.events import SQL, new_epoch
from adapters.postgres.log import (
    BACKWARDS,
    FORWARDS,
    ORDINARY,
    WHATEVER,
    FilteredReading,
    NetworkReading,
    bounds_of,
    confirmed,
    fetched,
    furthest,
    narrowed,
    page_of_log,
    share_of,
    stands,
    weighed,
)
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import rendered
from domain.changes.model import EventBatch, EventFilter, LogBounds, View
from domain.changes.ports import Grant, Recent, Splice
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant


class PostgresEventReader:
    """Own rows behind one's own row-level security, the network's by the licences that their owners gave."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._network, self._filtered = NetworkReading(pool), FilteredReading(pool)

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        return await bounds_of(self._pool, logs, SQL["bounds"], missing=LogBounds())

    async def confirmed(self, log: Tenant) -> LogBounds:
        return await confirmed(self._pool, log)

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        values = {"org": log.org, "livemode": log.livemode, "after": after.epoch, "position": after.position}
        values["epoch"] = new_epoch()
        await self._pool.run(log, SQL["begin_epoch"], values)

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        params = {"orgs": [tenant.org for tenant in tenants], "livemodes": [tenant.livemode for tenant in tenants]}
        async with self._pool.reference() as link:
            rows = await (await link.cursor.execute(SQL["licensed"], params)).fetchall()
        return frozenset(Tenant(org, livemode) for org, livemode in rows)

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        return await self._network.grants(log, after, up_to, tenants)

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
        if wanted.narrow:
            same, batch = await self._filtered.page(view.log, after, end, limit, wanted, most_bytes)
        else:
            same, batch = await self._all(view.log, after, end, limit, wanted, most_bytes)
        if not same and after.time is not None:
            await self._refuse_lost(view.log, after)
        return batch

    async def _all(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> tuple[bool, EventBatch]:
        """A page of everything, and whether the event behind which it begins stands where it stood."""
        names, values = narrowed(wanted, after)
        chosen = rendered(SQL["own"], names | FORWARDS, limit)
        values |= {"after": after.position, "at": after.time, "share": share_of(limit, most_bytes)}
        async with self._pool.tenant(log) as link:
            found = await fetched(link, log, SQL["page"].replace("{chosen}", chosen), values)
            same = bool(found[0][0]) if found else await stands(link, log, after.position, after.time)
            if any(row[-1] is None for row in found):
                found = await weighed(link, log, chosen, values, most_bytes)
        events = [LoggedEvent(*row[1:]) for row in found]
        whole = len(events) < limit and weight_of(events) < most_bytes
        position = after.behind(events[-1]) if events else after
        return same, EventBatch(events, furthest(position, end, whole=whole), caught_up=whole)

    async def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        """Unless the event there, and nothing beyond it, was dropped by age."""
        if (await self.confirmed(log)).low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        if view.of_network:
            return await self._network.recent(view, before, limit, wanted)
        if wanted.narrow:
            return await self._filtered.recent(view.log, before, limit, wanted)
        names, values = narrowed(wanted, LogPosition())
        chosen = rendered(SQL["own"], names | BACKWARDS, limit)
        values["up_to"] = before - 1
        async with self._pool.tenant(view.log) as link:
            events = await page_of_log(link, view.log, chosen, values, limit, CHANGES_BYTES, direction=-1)
        whole = len(events) < limit and weight_of(events) < CHANGES_BYTES
        return Recent(events, 1 if whole else events[-1].position)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        if wanted.narrow:
            return _joined(await self.page(View.own(tenant), after, end, limit, wanted))
        names, values = narrowed(wanted, after)
        chosen = rendered(SQL["own"], names | FORWARDS, limit)
        values |= {"after": after.position, "at": after.time, "share": share_of(limit, CHANGES_BYTES)}
        async with self._pool.tenant(tenant) as link:
            rows = await fetched(link, tenant, SQL["splice"].replace("{chosen}", chosen), values)
            values["last"] = rows[-1][0] if rows else None
            [(same, time)] = await fetched(link, tenant, SQL["spliced"], values)
        bodies = [body for _, body in rows]
        if None in bodies:
            return _joined(await self.page(View.own(tenant), after, end, limit, wanted))
        if not same and after.time is not None:
            await self._refuse_lost(tenant, after)
        body = b",".join(bodies)
        whole = len(rows) < limit and len(body) < CHANGES_BYTES
        last = LogPosition(after.epoch, values["last"], time) if rows else after
        return Splice(len(rows), furthest(last, end, whole=whole), body, caught_up=whole)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.of_network:
            return await self._network.at(view, positions)
        values = {"positions": list(positions), "share": WHATEVER}
        return await self._plain(view.log, frozenset({"positions", "forwards"}), values, len(positions), 1)

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        values = {"after": after, "subject": subject, "share": ORDINARY}
        return await self._plain(tenant, frozenset({"subject", "after", "backwards"}), values, limit, -1)

    async def of_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        values = {"after": after, "products": list(products), "share": ORDINARY}
        return await self._plain(tenant, frozenset({"products", "after", "backwards"}), values, limit, -1)

    async def counts(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        async with self._pool.tenant(tenant) as link:
            return dict(await fetched(link, tenant, SQL["counts"], {"after": after, "since": since}))

    async def _plain(
        self, log: Tenant, names: frozenset[str], values: dict[str, Any], limit: int, direction: int
    ) -> list[LoggedEvent]:
        chosen = rendered(SQL["own"], names, limit)
        async with self._pool.tenant(log) as link:
            rows = await weighed(link, log, chosen, values, PROCESS_BYTES, direction)
        return [LoggedEvent(*row[1:]) for row in rows]


def _joined(batch: EventBatch) -> Splice:
    body = b",".join(event.body for event in batch.events)
    return Splice(len(batch.events), batch.position, body, batch.caught_up)
