"""Payment providers with a virtual clock, and a tenant's billing on them."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, Protocol, Self

import stripe

from adapters.api_json.billing import render_purchase
from adapters.postgres.billing import PostgresBillingRegistry, PostgresPriceRegistry
from adapters.postgres.erasure import PostgresErasure
from adapters.stripe_payments import StripePayments
from domain.billing.model import BillingAccount, Card, CreditPurchase, Invoice, PlanPrice
from domain.billing.ports import Payments
from domain.billing.usecases.accounts import BillingService, SubscriptionRequest, load_account
from domain.billing.usecases.automatic_purchases import AutomaticPurchaser
from domain.billing.usecases.purchases import PurchaseService, PurchaseUpdater
from domain.billing.usecases.synchronisation import (
    BILLING_LANE,
    RECONCILIATION_JOB,
    SYNCHRONISATION_JOB,
    AccountSynchroniser,
)
from domain.billing.usecases.usage_charges import CHARGING_JOB, MonthCloser
from domain.jobs.model import build_lane_name
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.matching.usecases.judge import resume_judging
from domain.orgs.ports import OrgStore
from domain.orgs.usecases.erasure import OrganisationEraser
from domain.usage.meters import find_month_start
from domain.usage.ports import UsageMeters
from entrypoints.factories import create_credit_ledger, create_usage_service
from entrypoints.settings import STRIPE_URL
from tests.stripe_server import InProcessClient, StripeServer
from tests.support.backend import Backend
from tests.support.builders import CALL
from tests.support.memory.payments import MemoryPayments

_CARD = Card("visa", "4242", 12, 2040)
GOOD_CARD, BAD_CARD, CONFIRMED_CARD = "pm_card_visa", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired"


class VirtualProvider(Protocol):
    """Payment provider whose clock and customers a test controls."""

    payments: Payments

    async def store_card(self, customer: str, card: str) -> None:
        """Store one of the cards above, as the browser does."""
        ...

    async def pay(self, secret: str) -> None:
        """Pay what belongs to a client secret with a good card, as the browser does."""
        ...

    def advance(self, to: datetime) -> None:
        """Move the clock."""
        ...


class StripeProvider:
    """Stripe's adapter on the imitated server."""

    def __init__(self, now: datetime) -> None:
        self.server = StripeServer(start=int(now.timestamp()))
        self._connect(InProcessClient(self.server))

    @classmethod
    def attach(cls, server: StripeServer, client: InProcessClient) -> Self:
        """Return the adapter on an existing server, with another transport."""
        provider = cls.__new__(cls)
        provider.server = server
        provider._connect(client)
        return provider

    def _connect(self, client: InProcessClient) -> None:
        self.payments: Payments = StripePayments(
            self.server.key, "pk_test", self.server.webhook_secret, url="http://stripe.test", http_client=client
        )
        self.client = stripe.StripeClient(self.server.key, http_client=InProcessClient(self.server)).v1

    async def store_card(self, customer: str, card: str) -> None:
        self.client.payment_methods.attach(card, {"customer": customer})

    async def pay(self, secret: str) -> None:
        self.client.payment_intents.confirm(secret.partition("_secret")[0], {"payment_method": GOOD_CARD})

    def advance(self, to: datetime) -> None:
        self.server.advance(int(to.timestamp()))
        self.server.assert_valid()


class _ClockedPayments(StripePayments):
    """Stripe's adapter whose customers live on a test clock."""

    clock = ""

    async def create_customer(self, org: str, name: str, key: str) -> str:
        created = await self._api.customers.create_async(
            {"name": name, "metadata": {"org": org}, "test_clock": self.clock},
            {"idempotency_key": f"{key}:{self.clock}"},
        )
        return str(created.id)


class SandboxProvider:
    """Stripe's adapter on a sandbox of Stripe, or on the imitated server over HTTP; time passes on a test clock."""

    def __init__(self, now: datetime) -> None:
        key, url = os.environ["JOINERY_TEST_STRIPE_KEY"], os.environ.get("JOINERY_TEST_STRIPE_URL", STRIPE_URL)
        clocked = _ClockedPayments(key, "pk_test", "whsec_test", url=url)
        self.payments: Payments = clocked
        self.client = stripe.StripeClient(key, base_addresses={"api": url}, max_network_retries=2).v1
        self.clock = self.client.test_helpers.test_clocks.create({"frozen_time": int(now.timestamp())}).id
        clocked.clock = self.clock

    async def store_card(self, customer: str, card: str) -> None:
        await asyncio.to_thread(self.client.payment_methods.attach, card, {"customer": customer})

    async def pay(self, secret: str) -> None:
        intent = secret.partition("_secret")[0]
        await asyncio.to_thread(self.client.payment_intents.confirm, intent, {"payment_method": GOOD_CARD})

    def advance(self, to: datetime) -> None:
        clocks = self.client.test_helpers.test_clocks
        if int(to.timestamp()) > clocks.retrieve(self.clock).frozen_time:
            clocks.advance(self.clock, {"frozen_time": int(to.timestamp())})
            while clocks.retrieve(self.clock).status != "ready":
                time.sleep(0.2)


class MemoryProvider:
    """The provider in memory."""

    def __init__(self, now: datetime) -> None:
        self.payments = self.memory = MemoryPayments(now)

    async def store_card(self, customer: str, card: str) -> None:
        self.memory.store_card(customer, _CARD, declines=card != GOOD_CARD)

    async def pay(self, secret: str) -> None:
        self.memory.confirm_payment(secret.removesuffix("_secret"), _CARD)

    def advance(self, to: datetime) -> None:
        self.memory.advance(to)


class BackendClock:
    """The clock of a backend."""

    def __init__(self, backend: Backend) -> None:
        self.now = backend.now


@dataclass
class BillingHarness:
    """Billing of one organisation."""

    backend: Backend
    provider: VirtualProvider
    tenant: Tenant

    def __post_init__(self) -> None:
        clock, uow, usage = BackendClock(self.backend), self.backend.uow, create_usage_service()
        self.ledger = create_credit_ledger()
        updater = PurchaseUpdater(self.ledger, render_purchase, resume_judging)
        self.registry = PostgresBillingRegistry(self.backend.pool)
        self.service = BillingService(uow, clock, self.provider.payments, usage, updater.apply)
        self.purchases = PurchaseService(self.service)
        self.synchroniser = AccountSynchroniser(self.registry, self.service)
        self.automatic_purchases = AutomaticPurchaser(self.registry, self.purchases)
        self.charges = MonthCloser(self.registry, self.service)
        self._keys = 0

    def create_key(self) -> str:
        """Return a new key of a request."""
        self._keys += 1
        return f"{self.tenant.org}:{self._keys}"

    async def read(self) -> BillingAccount:
        """Return the stored account."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return await load_account(tx)

    async def get_plan(self) -> tuple[str, bool]:
        """Return the plan of the organisation, and whether usage beyond it is charged."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            organisation = await tx[OrgStore].get_organisation()
        return organisation.plan.code, organisation.bills_overage

    async def store_card(self, card: str = GOOD_CARD) -> None:
        """Store a card."""
        account = await self.service.open_account(self.tenant, CALL)
        await self.provider.store_card(account.customer or "", card)
        await self.synchronise()

    async def subscribe(self, plan: str, key: str | None = None, **more: str) -> None:
        """Subscribe to a plan, or change it."""
        await self.service.subscribe(self.tenant, CALL, SubscriptionRequest(plan, **more), key or self.create_key())

    async def synchronise(self) -> None:
        """Synchronise as after a notification."""
        await self.service.synchronise(self.tenant, CALL)

    async def advance(self, delta: timedelta) -> None:
        """Move all clocks, and synchronise."""
        await self.backend.pass_time(delta)
        self.provider.advance(self.backend.now())
        await self.synchronise()
        if self.tenant in await self.registry.list_ended_grace(self.backend.now()):
            await self.service.end_grace(self.tenant, CALL)

    async def use(self, meter: str, amount: int) -> None:
        """Record usage of a meter."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[UsageMeters].add_usage(meter, amount, self.create_key())

    async def list_invoices(self) -> list[Invoice]:
        """Return the newest 100 invoices, newest first."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return list((await tx.store(Invoice).page(PageRequest(100))).items)


class StripeBilling(BillingHarness):
    """Billing of one organisation on the imitated server."""

    provider: StripeProvider

    @property
    def server(self) -> Any:
        """The imitated server."""
        return self.provider.server

    def select(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the server's objects of a kind with these fields."""
        return list(self.server.state.select(kind, **fields))

    def find_subscription(self) -> dict[str, Any]:
        """Return the only active subscription of the server."""
        [found] = self.select("subscription", status="active")
        return found

    async def buy_paid(self, credits: int = 1000) -> CreditPurchase:
        """Buy credit, and pay it."""
        purchase = await self.purchases.buy(self.tenant, CALL, credits, self.create_key())
        await self.provider.pay(purchase.client_secret or "")
        await self.synchronise()
        return purchase

    async def set_price(self, plan: str, monthly: int, since: datetime, currency: str = "usd", **amounts: int) -> None:
        """Store a price of a plan."""
        price = PlanPrice(plan, currency, monthly, amounts, since)
        await PostgresPriceRegistry(self.backend.pool).add_price(price)

    async def reconcile(self) -> None:
        """Reconcile the accounts that are due."""
        await self.synchroniser.queue_reconciliations()
        await run_jobs(self)

    async def get_available(self) -> int:
        """Return the available credit in micro-US-dollars."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return (await self.ledger.get_balance(tx)).available_micros

    async def erase(self) -> None:
        """Delete the organisation as `joinery org delete` does."""
        await self.service.delete_customer(self.tenant)
        objects: Any = None
        eraser = OrganisationEraser(PostgresErasure(self.backend.pool), objects, (), grace_seconds=0)
        await eraser.erase(SimpleNamespace(id=self.tenant.org))  # type: ignore[arg-type]

    async def count_rows(self, table: str) -> int:
        """Return the number of rows of the organisation."""
        async with self.backend.pool.connect_as_owner() as pooled:
            rows = await pooled.driver_connection.execute(
                f"SELECT count(*) FROM {table} WHERE org = %s".encode(), (self.tenant.org,)
            )
            return int((await rows.fetchone() or (0,))[0])

    async def close_months(self) -> int:
        """Close the ended months of this organisation, and create their invoices; return their number."""
        month = find_month_start((self.backend.now() - timedelta(days=1)).date())
        unclosed = [month for tenant, month in await self.registry.list_unclosed(month) if tenant == self.tenant]
        await self.charges.close_months()
        await run_jobs(self)
        return len(unclosed)


PROVIDERS: dict[str, Callable[[datetime], VirtualProvider]] = {
    "memory": MemoryProvider,
    "stripe": StripeProvider,
}
if "JOINERY_TEST_STRIPE_KEY" in os.environ:
    PROVIDERS["sandbox"] = SandboxProvider


async def run_jobs(billing: BillingHarness) -> int:
    """Execute the due jobs of the organisation's billing; return their number."""
    handlers = {
        SYNCHRONISATION_JOB: billing.synchroniser.synchronise,
        RECONCILIATION_JOB: billing.synchroniser.reconcile,
        CHARGING_JOB: billing.charges.create_usage_invoice,
    }
    count = 0
    lane = build_lane_name(billing.tenant.org, BILLING_LANE)
    while jobs := await billing.backend.dispatch.claim(lane, 1, timedelta(minutes=1)):
        await handlers[jobs[0].kind](jobs[0])
        count += 1
    return count
