"""Reading the event log in PostgreSQL: horizons, pages, and what licences open of others' catalogues."""

from collections.abc import Sequence
from heapq import merge
from typing import Any, LiteralString, cast

from adapters.postgres.events import SQL, reach_of
from adapters.postgres.pool import Pool
from domain.changes.model import NETWORK_GROUPS, EventFilter, Licence, Reader
from domain.events.model import OFF_THE_FEED, LoggedEvent
from domain.kernel.tenancy import Tenant
from ports.events import Reach, Splice

_HIDDEN = list(OFF_THE_FEED)


def _narrowed(wanted: EventFilter) -> tuple[LiteralString, dict[str, Any]]:
    """Conditions and parameters of a filter."""
    where: LiteralString = ""
    values: dict[str, Any] = {}
    if wanted.types is not None:
        where += " AND type = ANY(%(types)s)"
        values["types"] = sorted(wanted.types)
    if not wanted.everything:
        where += " AND type <> ALL(%(hidden)s)"
        values["hidden"] = _HIDDEN
    if wanted.catalogues is not None:
        where += " AND catalogue = ANY(%(catalogues)s)"
        values["catalogues"] = sorted(wanted.catalogues)
    return where, values


def _limit(limit: int) -> LiteralString:
    """Written out: as a parameter it would have PostgreSQL plan every page anew."""
    return cast("Any", f" LIMIT {int(limit)}")  # type: ignore[no-any-return]


def _own(tenant: Tenant, **values: Any) -> dict[str, Any]:
    return {"org": tenant.org, "livemode": tenant.livemode, **values}


class PostgresEventReader:
    """Across tenants, each tenant's rows behind its own row-level security."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._highest = 0

    async def horizon(self) -> int:
        """The position up to which every event is visible and none can appear later."""
        return (await self.reach()).horizon

    async def reach(self) -> Reach:
        """How far the log goes now; the horizon told never goes back."""
        async with self._pool.system() as link:
            reach = await reach_of(link)
        self._highest = max(self._highest, reach.horizon)
        return Reach(self._highest, reach.last, reach.floor)

    async def licences(self, tenant: Tenant) -> Sequence[Licence]:
        """What the tenant may read of others' catalogues; a grant to it by name adds to what everybody is granted."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["licences"], _own(tenant))
            rows = await cursor.fetchall()
        found: dict[tuple[Tenant, str], frozenset[str]] = {}
        for org, livemode, catalogue, groups in rows:
            key = (Tenant(org, livemode), catalogue)
            found[key] = found.get(key, NETWORK_GROUPS) | frozenset(groups)
        return [Licence(owner, catalogue, groups) for (owner, catalogue), groups in found.items()]

    async def page(
        self, reader: Reader, after: int, up_to: int, limit: int, wanted: EventFilter
    ) -> Sequence[LoggedEvent]:
        """The first `limit` events, oldest first."""
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position" + _limit(limit)
        values |= {"after": after, "up_to": up_to}
        parts = await self._parts(reader, where, values)
        return parts[0] if len(parts) == 1 else list(merge(*parts, key=lambda event: event.position))[:limit]

    async def recent(self, reader: Reader, before: int, limit: int, wanted: EventFilter) -> Sequence[LoggedEvent]:
        """The last `limit` events up to the position, newest first."""
        where, values = _narrowed(wanted)
        where += " AND position <= %(before)s ORDER BY position DESC" + _limit(limit)
        values |= {"before": before}
        parts = await self._parts(reader, where, values)
        return sorted((event for part in parts for event in part), key=lambda event: -event.position)[:limit]

    async def _parts(
        self, reader: Reader, where: LiteralString, values: dict[str, Any]
    ) -> Sequence[Sequence[LoggedEvent]]:
        """The tenant's own events, then those of each licensed catalogue, each read as its owner's."""
        async with self._pool.tenant(reader.tenant) as link:
            cursor = await link.cursor.execute(SQL["page"] + where, _own(reader.tenant, **values))
            parts = [[LoggedEvent(*row) for row in await cursor.fetchall()]]
        for licence in reader.licences:
            async with self._pool.tenant(licence.owner) as link:
                told = _own(licence.owner, catalogue=licence.catalogue, **values)
                cursor = await link.cursor.execute(SQL["licensed"] + where, told)
                parts.append([LoggedEvent(*(*row, licence.groups)) for row in await cursor.fetchall()])
        return parts

    async def splice(self, tenant: Tenant, after: int, up_to: int, limit: int, wanted: EventFilter) -> Splice:
        """The bodies of the tenant's own first `limit` events, joined by the database."""
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position" + _limit(limit)
        sql = "SELECT count(*), max(position), string_agg(body, ',' ORDER BY position) FROM (" + SQL["splice"] + where
        async with self._pool.tenant(tenant) as link:
            told = _own(tenant, after=after, up_to=up_to, **values)
            row = await (await link.cursor.execute(sql + ") AS found", told)).fetchone()
        count, position, body = row or (0, None, None)
        return Splice(count, position or after, body or b"")

    async def at(self, tenant: Tenant, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """The tenant's own events at those positions, oldest first."""
        async with self._pool.tenant(tenant) as link:
            cursor = await link.cursor.execute(SQL["at"], _own(tenant, positions=list(positions)))
            return [LoggedEvent(*row) for row in await cursor.fetchall()]
