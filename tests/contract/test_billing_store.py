"""Contract of the storage of billing: plans of a month, and overdue invoices."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from domain.billing.model import Invoice, InvoiceStatus, PlanSubscription, SubscriptionStatus
from domain.billing.ports import BillingStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support.backend import Backend
from tests.support.builders import CALL

pytestmark = pytest.mark.asyncio
MONTH, BEGAN = date(2026, 11, 1), datetime(2026, 11, 5, tzinfo=UTC)
SUBSCRIPTION = PlanSubscription(
    "sub_1",
    SubscriptionStatus.ACTIVE,
    "standard",
    "usd",
    9900,
    9900,
    BEGAN,
    BEGAN + timedelta(days=30),
    started_at=BEGAN,
)


def build_invoice(days: int, **changes: Any) -> Invoice:
    """Build an open invoice with a failed payment, created some days after the subscription."""
    values: dict[str, Any] = {
        "id": new_id("inv"), "provider_id": f"in_{days}", "number": None, "status": InvoiceStatus.OPEN, "currency": "usd",
        "total": 100, "tax": 0, "amount_due": 100, "lines": (), "has_failed": True, "created_at": BEGAN + timedelta(days=days),
    }  # fmt: skip
    return Invoice(**values | changes)


async def test_plans_of_a_month_have_days(backend: Backend) -> None:
    tenant = Tenant((await backend.organisation()).id, True)
    async with backend.uow.begin(tenant, CALL) as tx:
        store = tx[BillingStore]
        for day in (5, 7):  # the first day is kept
            await store.begin_plan(MONTH, "standard", date(2026, 11, day))
        await store.end_plans(MONTH, date(2026, 11, 9))
        await store.begin_plan(MONTH, "standard", date(2026, 11, 20))
        await store.begin_plan(MONTH, "high", date(2026, 11, 20))
        assert list(await store.list_plans(MONTH)) == [
            ("high", date(2026, 11, 20), None),
            ("standard", date(2026, 11, 5), date(2026, 11, 9)),
            ("standard", date(2026, 11, 20), None),
        ]
        await store.end_plans(MONTH, date(2026, 11, 20))
        await store.begin_plan(MONTH, "high", date(2026, 11, 20))  # begins again on the day on which it ended
        assert [one for one in await store.list_plans(MONTH) if one[0] == "high"] == [
            ("high", date(2026, 11, 20), None)
        ]


async def test_the_oldest_failed_invoice_is_overdue(backend: Backend) -> None:
    tenant = Tenant((await backend.organisation()).id, True)
    purchase, usage = build_invoice(1, cause=new_id("crp")), build_invoice(3, cause="usage-2026-11")
    invoices = [
        purchase,
        build_invoice(2, has_failed=False),
        usage,
        build_invoice(-1, cause="usage-2026-10"),
        build_invoice(4, subscription="sub_1"),
        build_invoice(-2, subscription="sub_0"),
    ]
    async with backend.uow.begin(tenant, CALL) as tx:
        for invoice in invoices:
            await tx.store(Invoice).add(invoice)
        assert await tx[BillingStore].find_overdue_invoice() == invoices[-1]
        assert await tx[BillingStore].find_overdue_invoice(SUBSCRIPTION) == usage
        await tx[BillingStore].void_open_invoices()
        assert await tx[BillingStore].find_overdue_invoice() is None
        voided = await tx.store(Invoice).get(purchase.id)
        assert voided is not None
        assert (voided.status, voided.amount_due) == (InvoiceStatus.VOID, 0)
