"""Demand in PostgreSQL: signals by hour, released cells, and their aggregation across organisations."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from hashlib import blake2b
from typing import Any

from adapters.postgres.nodes.pool import create_row_reader
from adapters.postgres.session import encode_rows, encode_texts
from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    fetch_all,
    fetch_page,
    load_statements,
)
from domain.demand.cells import MIN_ORGANISATIONS, Cell, CellSummary, sum_summaries
from domain.demand.model import DemandDay, SignalCount, SignalType
from domain.demand.ports import DemandStore, DemandUpkeep, VendorStatsStore
from domain.demand.statistics import DayAmount, ProductAmounts, QueryAmount, TypeAmount
from domain.kernel import retention

SQL = load_statements("demand")
_PAGE_SUBJECTS = 20_000
"""Maximum number of subjects that are read from a node at once."""


def _compute_hash(signal_id: str) -> bytes:
    return blake2b(signal_id.encode(), digest_size=16).digest()


class PostgresDemandStore(TenantStore, DemandStore):
    """Counts of the tenant's signals."""

    _sql = SQL
    find_own_products = fetch_all(str)
    find_own_variants = fetch_all(str)

    async def find_publishers(self, product_ids: Collection[str]) -> Mapping[str, str | None]:
        return dict(await self._fetch_rows("find_publishers", product_ids=list(product_ids)))

    async def add_signal_ids(self, signal_ids: Collection[str]) -> Collection[str]:
        id_by_hash = {_compute_hash(id): id for id in signal_ids}
        expires_at = self._session.now + retention.SIGNAL_IDS
        rows = await self._fetch_rows(
            "add_signal_ids", hashes=encode_texts(map(bytes.hex, id_by_hash)), expires_at=expires_at
        )
        return [id_by_hash[bytes(hash)] for (hash,) in rows]

    async def add_counts(self, counts: Sequence[SignalCount]) -> None:
        rows = (
            {
                "hour": int(count.hour.timestamp()),
                "vendor": count.vendor,
                "subject": count.subject,
                "type": count.type,
                "amount": count.amount,
            }
            for count in counts
        )
        if counts:
            await self._run("add_counts", rows=encode_rows(rows))


def _encode_cells(cells: Sequence[Cell]) -> Any:
    return encode_rows(
        {"subject": cell.subject, "type": cell.type, "amount": cell.amount, "organisations": cell.organisations}
        for cell in cells
    )


class PostgresVendorStatsStore(TenantStore, VendorStatsStore):
    """Released cells of the tenant."""

    _sql = SQL
    sum_by_type = fetch_all(TypeAmount, miss=SignalType.SEARCH_MISS)
    page_products = fetch_page(ProductAmounts, key=lambda row: row.product)
    list_top_queries = fetch_all(QueryAmount)

    async def add_cells(self, day: date, cells: Sequence[Cell]) -> None:
        await self._session.acquire_lock("demand", day)
        await self._run("add_cells", day=day, rows=_encode_cells(cells))

    async def sum_by_day(self, kind: SignalType, since: date, until: date) -> Sequence[DayAmount]:
        statement = "sum_queries_by_day" if kind is SignalType.SEARCH_MISS else "sum_by_day"
        return await self._fetch_all(DayAmount, statement, kind=kind, since=since, until=until)


def _build_day_params(day: DemandDay) -> dict[str, Any]:
    start = datetime.combine(day.day, time(), UTC)
    return {"vendor": day.vendor, "livemode": day.livemode, "start": start, "end": start + timedelta(days=1)}


class PostgresDemandUpkeep(CoordinatorStore, DemandUpkeep):
    """Signals of all organisations, node by node."""

    _sql = SQL

    async def list_days(self, before: date) -> Sequence[DemandDay]:
        rows = await self._gather("list_days", before=datetime.combine(before, time(), UTC))
        return sorted({DemandDay(*row) for row in rows}, key=lambda row: (row.day, row.vendor, row.livemode))

    async def summarise_subjects(self, day: DemandDay, kind: SignalType) -> Mapping[str, CellSummary]:
        found: dict[str, CellSummary] = {}
        params = _build_day_params(day) | {"kind": kind, "limit": _PAGE_SUBJECTS, "after": ""}
        while True:
            summaries: dict[str, CellSummary] = {}
            bounds = []  # the last subject of each node that may have more
            for rows in await self._pool.scatter_all(create_row_reader(SQL["summarise_subjects"], **params)):
                for subject, *values in rows:
                    summaries[subject] = summaries.get(subject, CellSummary()) + CellSummary(*values)
                if len(rows) == _PAGE_SUBJECTS:
                    bounds.append(rows[-1][0])
            params["after"] = min(bounds, default="")
            found |= {
                subject: summary
                for subject, summary in summaries.items()
                if summary.organisations >= MIN_ORGANISATIONS and (not bounds or subject <= params["after"])
            }
            if not bounds:
                return found

    async def summarise_rest(self, day: DemandDay, kind: SignalType, released: Collection[str]) -> CellSummary:
        params = _build_day_params(day) | {"released": list(released)}
        rows = await self._gather_all("summarise_rest", kind=kind, **params)
        return sum_summaries(*(CellSummary(*row) for row in rows))

    async def add_query_cells(self, livemode: bool, day: date, cells: Sequence[Cell]) -> None:
        await self._run_as_owner("add_query_cells", livemode=livemode, day=day, rows=_encode_cells(cells))

    async def remove_signals(self, day: DemandDay) -> None:
        await self._delete_by_org("list_orgs_of_day", "remove_signals", **_build_day_params(day))

    async def delete_expired(self, now: datetime) -> None:
        await self._delete_by_org("list_orgs_with_old_ids", "delete_ids", before=now)
        before = (now - retention.DEMAND_CELLS).date()
        await self._delete_by_org("list_orgs_with_old_cells", "delete_cells", before=before)
        await self._run_as_owner("delete_query_cells", before=before)

    async def _run_as_owner(self, statement: str, **values: Any) -> None:
        async with self._begin_as_owner() as connection:
            await connection.run(SQL[statement], values)
