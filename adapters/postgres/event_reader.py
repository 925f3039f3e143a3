"""Reading the event log in PostgreSQL: how far it goes, pages, and what licences open of others' catalogues."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from typing import Any, LiteralString, cast

from adapters.postgres.events import SQL, bounds_of
from adapters.postgres.pool import Pool
from domain.changes.model import NETWORK_GROUPS, EventFilter, Licence, Reader
from domain.events.model import OFF_THE_FEED, LoggedEvent
from domain.kernel.tenancy import Tenant
from ports.events import LogBounds, Splice

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


def _licences(reader: Reader, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "owners": [licence.owner.org for licence in reader.licences],
        "licensed": [licence.catalogue for licence in reader.licences],
        "livemode": reader.tenant.livemode,
        **values,
    }


def _position(event: LoggedEvent) -> int:
    return event.position


class PostgresEventReader:
    """Across tenants: one's own rows behind one's own row-level security, others' by the licences that they gave."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._highest = 0

    async def high_watermark(self) -> int:
        return (await self.bounds()).high_watermark

    async def bounds(self) -> LogBounds:
        async with self._pool.system() as link:
            bounds = await bounds_of(link)
        self._highest = max(self._highest, bounds.high_watermark)
        return replace(bounds, high_watermark=self._highest)

    async def licences(self, tenants: Sequence[Tenant]) -> Mapping[Tenant, Sequence[Licence]]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["licences"], {"holders": [tenant.org for tenant in tenants]})
            rows = await cursor.fetchall()
        found: dict[Tenant, dict[tuple[Tenant, str], frozenset[str]]] = {}
        asking = frozenset(tenants)
        for holder, org, livemode, catalogue, groups in rows:
            key = (Tenant(org, livemode), catalogue)
            holders = asking if holder == "*" else asking & {Tenant(holder, livemode)}
            for tenant in holders:
                if tenant.livemode == livemode and tenant.org != org:
                    held = found.setdefault(tenant, {})
                    held[key] = held.get(key, NETWORK_GROUPS) | frozenset(groups)
        return {
            tenant: [Licence(owner, catalogue, groups) for (owner, catalogue), groups in held.items()]
            for tenant, held in found.items()
        }

    async def tenants_with_new_events(
        self, positions: Mapping[Tenant, int], up_to: int, since: datetime | None
    ) -> frozenset[Tenant]:
        params = {
            "orgs": [tenant.org for tenant in positions],
            "livemodes": [tenant.livemode for tenant in positions],
            "positions": list(positions.values()),
            "up_to": up_to,
            "since": since,
        }
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["tenants_with_new_events"], params)
            return frozenset(Tenant(org, livemode) for org, livemode in await cursor.fetchall())

    async def page(
        self,
        reader: Reader,
        after: int,
        up_to: int,
        limit: int,
        wanted: EventFilter,
        *,
        since: datetime | None = None,
    ) -> Sequence[LoggedEvent]:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s"
        values |= {"after": after, "up_to": up_to}
        if since is not None:
            where += " AND time >= %(since)s"
            values["since"] = since
        where += " ORDER BY position" + _limit(limit)
        own = await self._own(reader.tenant, where, values)
        if not reader.licences:
            return own
        return list(merge(own, await self._licensed(reader, where, values), key=_position))[:limit]

    async def recent(
        self, reader: Reader, after: int, up_to: int, limit: int, wanted: EventFilter
    ) -> Sequence[LoggedEvent]:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position DESC" + _limit(limit)
        values |= {"after": after, "up_to": up_to}
        found = await self._own(reader.tenant, where, values)
        if reader.licences:
            found += await self._licensed(reader, where, values)
        return sorted(found, key=_position, reverse=True)[:limit]

    async def stride(self, reader: Reader, after: int, up_to: int, rows: int) -> int:
        where: LiteralString = " AND position > %(after)s AND position <= %(up_to)s ORDER BY position" + _limit(rows)
        values = {"after": after, "up_to": up_to, "rows": rows}
        sql = "SELECT max(position) FROM (" + SQL["positions"] + where + ") AS seen HAVING count(*) = %(rows)s"
        async with self._pool.tenant(reader.tenant) as link:
            row = await (await link.cursor.execute(sql, _own(reader.tenant, **values))).fetchone()
        found = [row[0]] if row else []
        if reader.licences:
            sql = SQL["licensed_stride"] + where + ") AS seen HAVING count(*) = %(rows)s) AS stride"
            async with self._pool.system() as link:
                row = await (await link.cursor.execute(sql, _licences(reader, values))).fetchone()
            found += [row[0]] if row and row[0] is not None else []
        return min(found, default=up_to)

    async def _own(self, tenant: Tenant, where: LiteralString, values: dict[str, Any]) -> list[LoggedEvent]:
        async with self._pool.tenant(tenant) as link:
            cursor = await link.cursor.execute(SQL["page"] + where, _own(tenant, **values))
            return [LoggedEvent(*row) for row in await cursor.fetchall()]

    async def _licensed(self, reader: Reader, where: LiteralString, values: dict[str, Any]) -> list[LoggedEvent]:
        """Of each licensed catalogue as much as is asked for, in order of positions."""
        groups = {licence.catalogue: licence.groups for licence in reader.licences}
        async with self._pool.system() as link:
            sql = SQL["licensed"] + where + ") AS event ORDER BY position"
            cursor = await link.cursor.execute(sql, _licences(reader, values))
            return [LoggedEvent(*(*row, groups[row[6]])) for row in await cursor.fetchall()]

    async def splice(self, tenant: Tenant, after: int, up_to: int, limit: int, wanted: EventFilter) -> Splice:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position" + _limit(limit)
        sql = "SELECT count(*), max(position), string_agg(body, ',' ORDER BY position) FROM (" + SQL["splice"] + where
        async with self._pool.tenant(tenant) as link:
            params = _own(tenant, after=after, up_to=up_to, **values)
            row = await (await link.cursor.execute(sql + ") AS found", params)).fetchone()
        count, position, body = row or (0, None, None)
        return Splice(count, position or after, body or b"")

    async def at(self, reader: Reader, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        where: LiteralString = " AND position = ANY(%(positions)s)"
        values = {"positions": list(positions)}
        found = await self._own(reader.tenant, where, values)
        if reader.licences:
            found += await self._licensed(reader, where, values)
        return sorted(found, key=_position)

    async def later(self, tenant: Tenant, subject: str, after: int) -> Sequence[LoggedEvent]:
        where: LiteralString = " AND position > %(after)s AND subject = %(subject)s ORDER BY position DESC"
        return await self._own(tenant, where, {"after": after, "subject": subject})
