"""Credit in PostgreSQL: ledgers, lots, entries and reservations by tenant, and rates in a reference table."""

from collections.abc import Sequence
from datetime import datetime

from adapters.postgres.session import encode_rows
from adapters.postgres.stores import (
    CoordinatorStore,
    ReferenceTableReader,
    TenantStore,
    fetch_all,
    fetch_page,
    load_statements,
)
from adapters.postgres.table import RowMapping, Table
from domain.credits.model import (
    CreditAction,
    CreditDay,
    CreditEntry,
    CreditLot,
    CreditOutcome,
    CreditRate,
    CreditSettings,
)
from domain.credits.ports import CreditRateRegistry, CreditStore, CreditUpkeep
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

CREDIT_SETTINGS = Table(
    CreditSettings,
    "credit_settings",
    conflicts={
        "credit_settings_pkey": "Another request changed the settings at the same time. Read them and try again."
    },
)
_ENTRIES = RowMapping(CreditEntry)
_RATES = RowMapping(CreditRate)
SQL = load_statements("credits", entry=_ENTRIES.build_column_list(), rate=_RATES.build_column_list())


class PostgresCreditStore(TenantStore, CreditStore):
    """Credit of the tenant."""

    _sql = SQL
    list_lots = fetch_all(CreditLot)
    announce_expiry = fetch_all(CreditLot)
    page_entries = fetch_page(_ENTRIES.build_from_row, key=lambda row: str(row.number))
    list_days = fetch_all(CreditDay)
    list_rates = fetch_all(_RATES.build_from_row)

    async def apply(self, actions: Sequence[CreditAction]) -> CreditOutcome:
        rows = encode_rows(
            {
                "kind": action.kind,
                "reference": action.reference,
                "micros": action.micros,
                "expires_at": action.expires_at,
                "lot": action.lot,
            }
            for action in actions
        )
        [row] = await self._fetch_rows("apply", actions=rows, seed=new_id("cre"))
        return CreditOutcome(*row)

    async def get_totals(self) -> tuple[int, int]:
        rows = await self._fetch_rows("get_totals")
        return rows[0] if rows else (0, 0)


class PostgresCreditUpkeep(CoordinatorStore, CreditUpkeep):
    """Credit of all tenants, node by node."""

    _sql = SQL

    async def list_due(self, now: datetime, announced_before: datetime, limit: int) -> Sequence[Tenant]:
        rows = await self._gather("list_due", now=now, announced_before=announced_before, limit=limit)
        return [Tenant(*row) for row in rows]

    async def delete_reservations(self, before: datetime) -> None:
        await self._delete_by_org("list_orgs_with_old_reservations", "delete_reservations", before=before)


class PostgresCreditRateRegistry(ReferenceTableReader, CreditRateRegistry):
    """Rates of models, for operators."""

    _sql = SQL
    list_rates = fetch_all(_RATES.build_from_row)

    async def add_rate(self, rate: CreditRate) -> None:
        async with self._begin_as_owner() as connection:
            await connection.run(SQL["add_rate"], _RATES.build_params(rate))
