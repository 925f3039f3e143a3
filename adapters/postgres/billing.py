"""Billing accounts, invoices, purchases of credit, charges for usage and prices of plans in PostgreSQL."""

from collections.abc import Sequence
from datetime import date, datetime

from adapters.postgres.stores import (
    CoordinatorStore,
    ReferenceTableReader,
    TenantStore,
    build_field_params,
    execute_count,
    fetch_all,
    fetch_scalar,
    load_statements,
)
from adapters.postgres.table import RowMapping, Table, encode_json
from domain.billing.model import (
    CREDIT_CURRENCY,
    BillingAccount,
    CreditPurchase,
    Invoice,
    PlanPrice,
    PlanSubscription,
    UsageCharge,
    build_automatic_purchase_key,
)
from domain.billing.ports import BillingRegistry, BillingStore, PriceRegistry
from domain.kernel.tenancy import Tenant

ACCOUNTS = Table(
    BillingAccount,
    "billing_accounts",
    conflicts={"billing_accounts_pkey": "Another request opened the billing account at the same time. Try again."},
)
INVOICES = Table(Invoice, "invoices", conflicts={"invoices_provider_id": "The invoice is stored already. Try again."})
PURCHASES = Table(
    CreditPurchase,
    "credit_purchases",
    conflicts={"credit_purchases_request_key": "Another request with this key is in progress. Try again."},
)
CHARGES = Table(UsageCharge, "usage_charges")
_PRICES = RowMapping(PlanPrice)
SQL = load_statements("billing", account=ACCOUNTS.build_column_list("a"), invoice=INVOICES.build_column_list())


class PostgresBillingStore(TenantStore, BillingStore):
    """Billing of the tenant beside the plain resources."""

    _sql = SQL
    find_invoices = fetch_all(INVOICES.build_from_row)
    find_purchase = fetch_scalar()
    void_open_invoices = execute_count()
    begin_plan = execute_count()
    end_plans = execute_count()
    list_plans = fetch_all(lambda *row: row)
    list_prices = fetch_all(_PRICES.build_from_row)

    async def find_overdue_invoice(self, subscription: PlanSubscription | None = None) -> Invoice | None:
        rows = await self._fetch_rows(
            "find_overdue_invoice",
            subscription=subscription.id if subscription else None,
            started_at=subscription.started_at if subscription else None,
        )
        return INVOICES.build_from_row(*rows[0]) if rows else None

    async def set_entitlement(self, plan: str, *, bills_overage: bool) -> None:
        async with self._session.as_owner():
            await self._run("set_entitlement", plan=plan, bills_overage=bills_overage)


class PostgresBillingRegistry(CoordinatorStore, BillingRegistry):
    """Billing accounts of all tenants, node by node."""

    _sql = SQL

    async def find_tenant(self, customer: str) -> Tenant | None:
        rows = await self._gather_all("find_tenant", customer=customer)
        return Tenant(*rows[0]) if rows else None

    async def list_accounts(self, reconciled_before: datetime) -> Sequence[Tenant]:
        return [Tenant(*row) for row in await self._gather("list_accounts", reconciled_before=reconciled_before)]

    async def list_ended_grace(self, now: datetime) -> Sequence[Tenant]:
        return [Tenant(*row) for row in await self._gather("list_ended_grace", now=now)]

    async def list_unclosed(self, month: date) -> Sequence[tuple[Tenant, date]]:
        return [(Tenant(*row[:2]), row[2]) for row in await self._gather("list_unclosed", month=month)]

    async def list_automatic_purchases(self, day: date) -> Sequence[tuple[Tenant, int, str]]:
        rows = await self._gather(
            "list_automatic_purchases", request_key=build_automatic_purchase_key(day), currency=CREDIT_CURRENCY
        )
        return [(Tenant(*row[:2]), *row[2:]) for row in rows]

    async def list_arrears(self) -> Sequence[tuple[Tenant, BillingAccount]]:
        rows = await self._gather_all("list_arrears")
        return [(Tenant(*row[:2]), ACCOUNTS.build_from_row(*row[2:])) for row in rows]


class PostgresPriceRegistry(ReferenceTableReader, PriceRegistry):
    """Prices of plans, for operators."""

    _sql = SQL
    list_prices = fetch_all(_PRICES.build_from_row)

    async def add_price(self, price: PlanPrice) -> None:
        async with self._begin_as_owner() as connection:
            params = build_field_params(price) | {"amounts": encode_json(price.amounts)}
            await connection.run(SQL["add_price"], params)
