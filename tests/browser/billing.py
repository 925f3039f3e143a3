"""Console with an organisation for each state of billing, on its own server with payments in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.billing.model import Address, Card, Discount, PlanPrice, PurchaseKind, TaxId, TaxIdType
from domain.billing.ports import PriceRegistry
from domain.billing.usecases.accounts import BillingService, SubscriptionRequest
from domain.billing.usecases.purchases import PurchaseService
from domain.credits.model import CreditSettings
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance, Plan
from domain.people.model import AuthMethod, User
from domain.people.usecases.sessions import ClientInfo
from entrypoints.factories import create_credit_ledger
from entrypoints.operators_page import OperatorsPage
from tests.browser.service import LiveService, run_service
from tests.http.application import ApplicationHarness
from tests.support import builders
from tests.support.memory.limits import UnlimitedRates
from tests.support.memory.payments import MemoryPayments

BILLING = "/console/billing"
CARD = Card("visa", "4242", 12, 2040)
STATES = ("none", "incomplete", "active", "scheduled", "cancelled", "past_due", "credit", "first_credit")
"""States of billing; each has an organisation of that name, with an owner."""
FLOWS = ("payment", "declined", "unavailable", "setup", "scriptless")
"""Organisations without a subscription for tests that change the state."""


def _build_plans() -> list[Plan]:
    """Return the plans, which are sold for US dollars."""
    sizes = {"free": (0, 2, 1_000), "standard": (9_900, 10, 50_000), "high": (29_900, 50, 500_000)}
    features = {"free": (), "standard": ("stream",), "high": ("stream", "bulk_exports", "sso")}
    return [
        Plan(
            code, code.title(), "high" if code == "high" else "standard", "usd", monthly, frozenset(features[code]),
            {
                "sources": MeterAllowance(sources, 1, 900 if monthly else 0),
                "records": MeterAllowance(records, 1_000, 9 if monthly else 0),
                "stored_bytes": MeterAllowance(sources * 10**9, 10**9, 20 if monthly else 0),
            },
        )
        for code, (monthly, sources, records) in sizes.items()
    ]  # fmt: skip


class BillingStates:
    """Builder of the organisations, at the times at which the states come about."""

    def __init__(self, application: ApplicationHarness, payments: MemoryPayments) -> None:
        self.application, self.payments = application, payments
        self.accounts = application.dependencies[BillingService]
        self.ledger = create_credit_ledger()
        self.now = datetime.now(UTC)
        self.cookies: dict[str, str] = {}

    def move_to(self, moment: datetime) -> None:
        """Set the clocks of the application and of the provider."""
        self.application.clock.set(moment)
        self.payments.advance(moment)

    def find_tenant(self, state: str) -> Tenant:
        """Return the tenant in a state."""
        return Tenant(self.application.orgs[state].id, True)

    async def create(self) -> None:
        """Create the organisations."""
        plans = {plan.code: plan for plan in _build_plans()}
        for plan in plans.values():
            self.application.database.save_plan(plan)
        sold = datetime(2026, 1, 1, tzinfo=UTC)
        for price in (
            PlanPrice("standard", "eur", 8_900, {"sources": 800}, sold),
            PlanPrice("high", "eur", 26_900, {}, sold),
            PlanPrice("high", "usd", 31_900, {"sources": 900}, self.now + timedelta(days=45)),
        ):
            await self.application.dependencies[PriceRegistry].add_price(price)
        for state in (*STATES, *FLOWS):
            await self.application.create_organisation(state, plans["free"])
        await self._create_subscriptions()
        self._add_links_and_discount()
        await self.store_card("scriptless")
        for state in (*STATES, *FLOWS):
            await self.accounts.synchronise(self.find_tenant(state), builders.CALL)
            self.cookies[state] = await self.sign_in(state)
        self.cookies["viewer"] = await self.sign_in("active", "viewer")
        self.cookies["editor"] = await self.sign_in("credit", "editor")

    async def _create_subscriptions(self) -> None:
        self.move_to(self.now - timedelta(days=33))
        await self.subscribe("past_due", "high")
        await self.store_card("past_due", declines=True)
        self.move_to(self.now - timedelta(days=25))
        await self._create_credit()
        self.move_to(self.now)
        await self.accounts.synchronise(self.find_tenant("past_due"), builders.CALL)
        await self.subscribe("active", "standard")
        await self.accounts.change_details(self.find_tenant("active"), builders.CALL, {
            "name": "Fjord & Oak AS", "email": "bills@fjord.test", "tax_id": TaxId(TaxIdType.NO_VAT, "NO995525828MVA"),
            "address": Address("NO", "1 Harbour Street", city="Bergen", postal_code="5003"),
        })  # fmt: skip
        await self.subscribe("scheduled", "high")
        await self.subscribe("scheduled", "standard")
        await self.subscribe("cancelled", "standard")
        await self.accounts.cancel(self.find_tenant("cancelled"), builders.CALL)
        await self.accounts.subscribe(
            self.find_tenant("incomplete"), builders.CALL, SubscriptionRequest("standard"), "incomplete"
        )
        await self.buy("first_credit", 1_000)

    def _add_links_and_discount(self) -> None:
        """Add to the provider's state what payments in memory do not have."""
        for customer in self.payments.customers.values():
            customer.invoices = [
                replace(
                    one, hosted_invoice_url="https://invoice.example/i/1", invoice_pdf="https://invoice.example/1.pdf"
                )
                for one in customer.invoices
            ]
            if customer.subscription and customer.subscription.plan == "high" and not customer.declines:
                customer.subscription = replace(
                    customer.subscription, discount=Discount("Launch offer", 20.0, None, self.now + timedelta(days=90))
                )

    async def sign_in(self, state: str, role: str = "owner") -> str:
        """Return the session cookie of a new member."""
        email = f"{new_id('usr')[4:].lower()}@fjord.test"
        now = self.application.clock.now()
        user = await self.application.people.add(User(new_id("usr"), email, "Ada Moreau", now, now))
        await self.application.add_member(user, state, role)
        started = await self.application.sessions.start(user, [AuthMethod.PASSKEY], ClientInfo("127.0.0.1"))
        return str(started[1])

    async def store_card(self, state: str, *, declines: bool = False) -> None:
        """Store a card, as the browser does."""
        tenant = self.find_tenant(state)
        account = await self.accounts.open_account(tenant, builders.CALL)
        self.payments.store_card(account.customer or "", CARD, declines=declines)
        await self.accounts.synchronise(tenant, builders.CALL)

    async def subscribe(self, state: str, plan: str) -> None:
        """Subscribe with a card."""
        await self.store_card(state)
        await self.accounts.subscribe(
            self.find_tenant(state), builders.CALL, SubscriptionRequest(plan), f"{state}-{plan}"
        )

    async def buy(self, state: str, credits: int) -> None:
        """Buy credit and confirm the payment, as the browser does."""
        tenant, service = self.find_tenant(state), PurchaseService(self.accounts)
        account = await self.accounts.open_account(tenant, builders.CALL)
        await service.buy(tenant, builders.CALL, credits, f"{state}-{credits}")
        self.payments.confirm_payment(self.payments.customers[account.customer or ""].invoices[-1].provider_id, CARD)
        await self.accounts.synchronise(tenant, builders.CALL)

    async def _create_credit(self) -> None:
        """Buy credit, use some of it on several days, and enable automatic purchases."""
        tenant, service = self.find_tenant("credit"), PurchaseService(self.accounts)
        await self.store_card("credit")
        await self.buy("credit", 2_000)
        async with self.application.uow.begin(tenant, builders.CALL) as tx:
            await tx.store(CreditSettings).add(
                CreditSettings(
                    low_balance_micros=5_000_000,
                    auto_spend=True,
                    monthly_budget_micros=50_000_000,
                    top_up_credits=1_000,
                    created_at=tx.now,
                    updated_at=tx.now,
                )
            )
        uses = (
            (22, 3_210_000), (18, 4_000_000), (17, 120_000), (12, 5_400_000), (9, 3_333_333), (4, 4_800_000), (1, 900_000),
        )  # fmt: skip
        for days, used in uses:
            self.move_to(self.now - timedelta(days=days))
            async with self.application.uow.begin(tenant, builders.CALL) as tx:
                use = new_id("use")
                assert await self.ledger.reserve(tx, use, 6_000_000 if days > 12 else used)
                await self.ledger.settle(tx, use, used)
            if days == 9:
                await service.buy(tenant, builders.CALL, 1_000, "automatic", PurchaseKind.AUTOMATIC)
        await service.buy(tenant, builders.CALL, 500, "unpaid")
        async with self.application.uow.begin(tenant, builders.CALL) as tx:
            assert await self.ledger.reserve(tx, new_id("use"), 250_000)


@contextmanager
def run_billing() -> Iterator[LiveService]:
    """Run the console until the context ends; `prepared` contains the states and the payments."""
    payments = MemoryPayments(datetime(2026, 1, 1, tzinfo=UTC))

    async def prepare(application: ApplicationHarness) -> dict[str, Any]:
        states = BillingStates(application, payments)
        await states.create()
        return {"states": states}

    with run_service(
        prepare,
        lambda application, port: OperatorsPage(application.dependencies, port),
        payments=payments,
        limits=UnlimitedRates(),
    ) as made:
        yield made
