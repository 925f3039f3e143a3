"""Reading the event log in PostgreSQL: how far it goes, pages, and what licences open of others' catalogues."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from typing import Any, Final, LiteralString, cast

from adapters.postgres.events import SQL, bounds_of
from adapters.postgres.node_pool import PooledConnection
from adapters.postgres.pool import Pool
from domain.changes.model import NETWORK_GROUPS, EventFilter, Licence, Reader
from domain.events.model import OFF_THE_FEED, LoggedEvent, within
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.tenancy import Tenant
from ports.events import LogBounds, Splice

_HIDDEN = list(OFF_THE_FEED)
_ORDINARY: Final = 4 << 10
"""Bytes up to which an event is read whatever its share: nearly all are smaller."""


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


_SPLICED: Final = (
    "SELECT count(*), max(position), string_agg(CASE WHEN octet_length(body) <= %(share)s THEN body END, ',' "
    "ORDER BY position), bool_or(octet_length(body) > %(share)s) "
)


class _Weight:
    """How much a page may come to. Ordinary events are read at once, each within its share; else all are weighed."""

    def __init__(self, limit: int, most_bytes: int, direction: int = 1) -> None:
        self.share = max(most_bytes // max(limit, 1), _ORDINARY)
        self._values = {"most_bytes": most_bytes, "direction": direction}

    async def rows(self, link: PooledConnection, sql: LiteralString, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a page up to the one that reaches the weight; `sql` is one of the weighed statements."""
        sql += ") AS ordered) AS weighed WHERE before < %(most_bytes)s ORDER BY nth"
        return await (await link.cursor.execute(sql, values | self._values)).fetchall()


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
        most_bytes: int = CHANGES_BYTES,
    ) -> Sequence[LoggedEvent]:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s"
        values |= {"after": after, "up_to": up_to}
        if since is not None:
            where += " AND time >= %(since)s"
            values["since"] = since
        where += " ORDER BY position" + _limit(limit)
        weight = _Weight(limit, most_bytes)
        own = await self._own(reader.tenant, where, values, weight)
        if not reader.licences:
            return own
        found = list(merge(own, await self._licensed(reader, where, values, weight), key=_position))
        return within(found, limit, most_bytes)

    async def recent(
        self, reader: Reader, after: int, up_to: int, limit: int, wanted: EventFilter
    ) -> Sequence[LoggedEvent]:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position DESC" + _limit(limit)
        values |= {"after": after, "up_to": up_to}
        weight = _Weight(limit, CHANGES_BYTES, direction=-1)
        found = await self._own(reader.tenant, where, values, weight)
        if reader.licences:
            found += await self._licensed(reader, where, values, weight)
        return within(sorted(found, key=_position, reverse=True), limit, CHANGES_BYTES)

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

    async def _own(
        self, tenant: Tenant, where: LiteralString, values: dict[str, Any], weight: _Weight
    ) -> list[LoggedEvent]:
        values = _own(tenant, share=weight.share, **values)
        async with self._pool.tenant(tenant) as link:
            found = await (await link.cursor.execute(SQL["page"] + where, values)).fetchall()
            if any(row[-1] is None for row in found):
                found = await weight.rows(link, SQL["weighed"] + where + ") AS page", values)
        return [LoggedEvent(*row) for row in found]

    async def _licensed(
        self, reader: Reader, where: LiteralString, values: dict[str, Any], weight: _Weight
    ) -> list[LoggedEvent]:
        """Of each licensed catalogue as much as is asked for, in order of positions."""
        groups = {licence.catalogue: licence.groups for licence in reader.licences}
        values = _licences(reader, {"share": weight.share, **values})
        async with self._pool.system() as link:
            sql = SQL["licensed"] + where + ") AS event ORDER BY position"
            found = await (await link.cursor.execute(sql, values)).fetchall()
            if any(row[-1] is None for row in found):
                found = await weight.rows(link, SQL["weighed_licensed"] + where + ") AS event) AS page", values)
        return [LoggedEvent(*(*row, groups[row[6]])) for row in sorted(found)]

    async def splice(self, tenant: Tenant, after: int, up_to: int, limit: int, wanted: EventFilter) -> Splice:
        where, values = _narrowed(wanted)
        where += " AND position > %(after)s AND position <= %(up_to)s ORDER BY position" + _limit(limit)
        weight = _Weight(limit, CHANGES_BYTES)
        values = _own(tenant, after=after, up_to=up_to, share=weight.share, **values)
        async with self._pool.tenant(tenant) as link:
            sql = _SPLICED + "FROM (" + SQL["splice"] + where + ") AS found"
            row = await (await link.cursor.execute(sql, values)).fetchone()
            if row and row[3]:
                rows = await weight.rows(link, SQL["weighed"] + where + ") AS page", values)
                return Splice(len(rows), rows[-1][0], b",".join(found[-1] for found in rows))
        count, position, body, _ = row or (0, None, None, None)
        return Splice(count, position or after, body or b"")

    async def at(self, reader: Reader, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        where: LiteralString = " AND position = ANY(%(positions)s)"
        values = {"positions": list(positions)}
        weight = _Weight(1, PROCESS_BYTES)
        found = await self._own(reader.tenant, where, values, weight)
        if reader.licences:
            found += await self._licensed(reader, where, values, weight)
        return sorted(found, key=_position)

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        where: LiteralString = " AND position > %(after)s AND subject = %(subject)s ORDER BY position DESC"
        where += _limit(limit)
        return await self._own(tenant, where, {"after": after, "subject": subject}, _Weight(1, PROCESS_BYTES))
