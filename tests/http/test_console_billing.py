"""Console pages of billing: plan, card, invoices and credit, with and without a payment provider."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from domain.billing.model import BillingAccount, Card, PlanPrice
from domain.billing.ports import PriceRegistry
from domain.billing.usecases.accounts import BillingService, load_account
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance, Plan
from entrypoints.factories import create_credit_ledger
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_console_pages import check_markup
from tests.http.test_operators_page import request_page
from tests.support import builders
from tests.support.memory.payments import MemoryPayments

pytestmark = pytest.mark.asyncio
BILLING = "/console/billing"
CARD = Card("visa", "4242", 12, 2040)
_LARGE = Plan("large", "Large", "high", "usd", 29_900, frozenset(), {"sources": MeterAllowance(100, 10, 900)})
_FREE = Plan("free", "Free", "standard", "usd", 0, frozenset(), {"sources": MeterAllowance(0, 1, 0)})


@dataclass
class Console:
    """Application whose organisation Fjord pays with the provider in memory."""

    application: ApplicationHarness
    payments: MemoryPayments
    owner: ConsoleBrowser

    @property
    def tenant(self) -> Tenant:
        return Tenant(self.application.orgs["Fjord"].id, True)

    async def read_account(self) -> BillingAccount:
        async with self.application.uow.begin_reading(self.tenant) as tx:
            return await load_account(tx)

    async def synchronise(self) -> None:
        """Store the state of the provider, as after a notification."""
        await self.application.dependencies[BillingService].synchronise(self.tenant, builders.CALL)

    async def store_card(self, *, declines: bool = False) -> None:
        """Store a card, as the browser does."""
        account = await self.application.dependencies[BillingService].open_account(self.tenant, builders.CALL)
        self.payments.store_card(account.customer or "", CARD, declines=declines)
        await self.synchronise()

    async def subscribe(self, plan: str = "standard") -> BrowserPage:
        """Subscribe to a plan with the stored card."""
        place = f"{BILLING}/plans/{plan}"
        return await self.owner.follow(await self.owner.submit(await self.owner.get(place), place))


@pytest_asyncio.fixture
async def console() -> AsyncIterator[Console]:
    payments = MemoryPayments(datetime(2026, 1, 1, tzinfo=UTC))
    async with run_application(payments=payments) as application:
        payments.advance(application.clock.now())
        for plan in (_LARGE, _FREE):
            application.database.save_plan(plan)
        yield Console(application, payments, await application.open_browser())


async def test_a_subscription_without_a_card_continues_with_the_payment(console: Console) -> None:
    owner, place = console.owner, f"{BILLING}/plans/large"
    shown = await owner.get(BILLING)
    assert shown.status == 200 and "has no subscription" in shown.text and f'href="{place}"' in shown.text
    preview = await owner.get(place)
    assert "Due now" in preview.text and "$299.00" in preview.text and "Promotion code" in preview.text
    payment = await owner.submit(preview, place)
    assert payment.status == 200 and 'data-kind="payment"' in payment.text and "_secret" in payment.text
    policy = payment.header("content-security-policy") or ""
    scripts, frames = (
        "https://*.js.stripe.com https://js.stripe.com",
        "https://*.js.stripe.com https://hooks.stripe.com https://js.stripe.com",
    )
    assert f"script-src 'self' {scripts};" in policy and f"frame-src {frames};" in policy
    assert "connect-src 'self' https://api.stripe.com;" in policy and "unsafe" not in policy
    check_markup(payment.text)
    shown = await owner.get(BILLING)
    assert "Confirm the payment" in shown.text and "stripe.com" not in (shown.header("content-security-policy") or "")
    again = await owner.submit(shown, f"{BILLING}/card/confirm")
    assert 'data-kind="payment"' in again.text
    account = await console.read_account()
    assert account.subscription is not None
    console.payments.confirm_payment(account.subscription.latest_invoice or "", CARD)
    assert "Refresh" in (await owner.get(f"{BILLING}?confirmed=1")).text
    await console.synchronise()
    shown = await owner.get(f"{BILLING}?confirmed=1")
    assert "Active" in shown.text and "Renews" in shown.text and "Refresh" not in shown.text


async def test_the_currency_is_chosen_until_the_first_payment(console: Console) -> None:
    owner, now = console.owner, console.application.clock.now()
    assert 'name="currency"' not in (await owner.get(BILLING)).text
    registry = console.application.dependencies[PriceRegistry]
    for price in (
        PlanPrice("large", "eur", 26_900, {"sources": 800}, now),
        PlanPrice("large", "eur", 28_900, {"sources": 800}, now + timedelta(days=45)),
        PlanPrice("large", "gbp", 22_900, {}, now + timedelta(days=45)),
    ):
        await registry.add_price(price)
    shown = await owner.get(BILLING)
    assert 'value="eur" aria-pressed="false"' in shown.text and 'value="usd" aria-pressed="true"' in shown.text
    assert 'value="gbp"' not in shown.text and "$299.00" in shown.text
    shown, place = await owner.get(f"{BILLING}?currency=eur"), f"{BILLING}/plans/large?currency=eur"
    assert "€269.00" in shown.text and "€289.00 from" in shown.text and "then €8.00 per 10" in shown.text
    assert f'href="{place}"' in shown.text and "plans/standard" not in shown.text and "$" not in shown.text
    assert (await owner.get(f"{BILLING}/plans/standard?currency=eur")).status == 404
    check_markup(shown.text)
    preview = await owner.get(place)
    assert "€269.00" in preview.text
    await owner.submit(preview, f"{BILLING}/plans/large", currency=preview.field("currency"))
    account = await console.read_account()
    assert account.subscription is not None and account.subscription.currency == "eur"
    shown = await owner.get(f"{BILLING}?currency=usd")
    assert 'name="currency"' not in shown.text and "€269.00" in shown.text and "$299.00" not in shown.text


async def test_a_form_that_is_submitted_twice_subscribes_once(console: Console) -> None:
    await console.store_card()
    place = f"{BILLING}/plans/standard"
    preview = await console.owner.get(place)
    assert [(await console.owner.submit(preview, place)).status for _ in range(2)] == [303, 303]
    [customer] = console.payments.customers.values()
    assert len(customer.invoices) == 1


async def test_a_plan_is_changed_scheduled_cancelled_and_resumed(console: Console) -> None:
    owner = console.owner
    await console.store_card()
    assert "Plan changed" in (await console.subscribe()).text
    shown = await console.subscribe("large")
    assert "Plan changed" in shown.text and "Large plan" in shown.text
    preview = await owner.get(f"{BILLING}/plans/standard")
    assert "Nothing is charged now" in preview.text and "Promotion code" not in preview.text
    shown = await console.subscribe()
    assert "The plan changes to Standard on" in shown.text
    shown = await owner.follow(await owner.submit(shown, f"{BILLING}/keep-plan"))
    assert "Scheduled change cancelled" in shown.text and "The plan changes to" not in shown.text
    cancel = await owner.get(f"{BILLING}/cancel")
    assert "then has the free plan" in cancel.text
    shown = await owner.follow(await owner.submit(cancel, f"{BILLING}/cancel"))
    assert "The subscription is cancelled." in shown.text
    shown = await owner.follow(await owner.submit(shown, f"{BILLING}/resume"))
    assert "Subscription resumed" in shown.text and "Cancel subscription" in shown.text
    again = await owner.follow(await owner.submit(shown, f"{BILLING}/resume"))
    assert "Subscription resumed" in again.text


async def test_a_declined_card_changes_nothing(console: Console) -> None:
    await console.store_card(declines=True)
    place = f"{BILLING}/plans/large"
    refused = await console.owner.submit(await console.owner.get(place), place, promotion_code="")
    assert refused.status == 402 and "Due now" in refused.text and 'role="alert"' in refused.text
    await console.store_card()
    invalid = await console.owner.submit(refused, place, promotion_code="<none>")
    assert "f-promotion_code-error" in invalid.text and "&lt;none&gt;" in invalid.text
    assert "has no subscription" in (await console.owner.get(BILLING)).text


async def test_an_overdue_invoice_is_shown_to_members_and_operators(console: Console) -> None:
    await console.store_card()
    await console.subscribe("large")
    await console.store_card(declines=True)
    console.application.clock.advance(timedelta(days=33))
    console.payments.advance(console.application.clock.now())
    await console.synchronise()
    owner = await console.application.open_browser()
    shown = await owner.get(BILLING)
    assert "A payment failed" in shown.text and "The plan is kept until" in shown.text
    assert f'href="{BILLING}/plans/' not in shown.text
    invoices = await owner.get(f"{BILLING}/invoices")
    assert "Open" in invoices.text and "$299.00" in invoices.text
    _, _, text = await request_page(console.application)
    table = text.partition("Payments in arrears</h2>")[2].partition("</section>")[0]
    assert console.tenant.org in table and "$299.00" in table, table


async def test_exceeded_quotas_are_shown_by_plan(console: Console) -> None:
    console.application.database.save_plan(
        Plan("small", "Small", "standard", "usd", 100, frozenset(), {"records": MeterAllowance(10, 5, 3)})
    )
    client = await console.application.create_client(scopes=frozenset({"sources:write"}))
    for number in range(2):
        created = await client.post("/v1/sources", {"name": f"Source {number}", "kind": "push", "config": {}})
        assert created.status == 201, created.body
    shown = await console.owner.get(BILLING)
    assert "Sources: 2 of 0" in shown.text and "then $0.03 per 5" in shown.text and "then $9.00 per 10" in shown.text


async def test_card_and_details(console: Console) -> None:
    owner, place = console.owner, f"{BILLING}/card"
    shown = await owner.get(place)
    assert "No card is stored." in shown.text and "Norway" in shown.text
    setup = await owner.submit(shown, f"{place}/confirm")
    assert 'data-kind="setup"' in setup.text and 'data-key="pk_memory"' in setup.text and "Save card" in setup.text
    await console.store_card()
    shown = await owner.get(f"{place}?confirmed=1")
    assert (
        "•••• 4242" in shown.text
        and "12/2040" in shown.text
        and "Replace card" in shown.text
        and "Refresh" in shown.text
    )
    fields = {"name": "Fjord <AS>", "email": "bills@fjord.test", "line1": "1 Quay", "country": "NO"}
    refused = await owner.submit(shown, place, **fields, tax_type="no_vat", tax_id="NO1")
    assert refused.status in (400, 422) and "f-tax_id-error" in refused.text and "Fjord &lt;AS&gt;" in refused.text
    refused = await owner.submit(shown, place, **fields | {"country": ""})
    assert refused.status == 400 and "f-country-error" in refused.text
    saved = await owner.follow(await owner.submit(refused, place, **fields, tax_type="no_vat", tax_id="NO995525828MVA"))
    assert "Billing details saved" in saved.text and 'value="Fjord &lt;AS&gt;"' in saved.text
    assert '<option value="NO" selected>' in saved.text and "995525828MVA" in saved.text, re.findall(
        "<option[^>]*selected", saved.text
    )
    emptied = await owner.follow(await owner.submit(saved, place, name="", email="", country=""))
    assert "bills@fjord.test" not in emptied.text and "1 Quay" not in emptied.text


async def test_invoices_are_listed_with_their_lines(console: Console) -> None:
    assert "No invoices yet" in (await console.owner.get(f"{BILLING}/invoices")).text
    await console.store_card()
    await console.subscribe()
    shown = await console.owner.get(f"{BILLING}/invoices")
    assert "Paid" in shown.text and "$99.00" in shown.text and "1 line" in shown.text


async def test_credit_is_bought_and_shown(console: Console) -> None:
    owner, place = console.owner, f"{BILLING}/credit"
    shown = await owner.get(place)
    assert shown.status == 200 and "$0.00" in shown.text and "Balance of the last 30 days" not in shown.text
    few = await owner.get(f"{place}/buy?credits=1")
    assert few.status == 400 and "f-credits-error" in few.text
    preview = await owner.get(f"{place}/buy?credits=1000")
    assert "Buy for $10.00" in preview.text
    payment = await owner.follow(await owner.submit(preview, f"{place}/buy", credits="1000"))
    assert 'data-kind="payment"' in payment.text and "$10.00" in payment.text
    [purchase] = re.findall(r"/purchases/(crp_\w+)", payment.text)[:1]
    waiting = await owner.get(f"{place}/purchases/{purchase}?confirmed=1")
    assert "Requires payment" in waiting.text and "Refresh" in waiting.text and "data-card-form" not in waiting.text
    [customer] = console.payments.customers.values()
    console.payments.confirm_payment(customer.invoices[0].provider_id, CARD)
    await console.synchronise()
    assert "Succeeded" in (await owner.get(f"{place}/purchases/{purchase}")).text
    shown = await owner.get(place)
    assert "$10.00" in shown.text and "Balance of the last 30 days" in shown.text and "lasts until" not in shown.text
    check_markup(shown.text)
    saved = await owner.submit(
        shown, f"{place}/settings", auto_spend="true", monthly_budget="$50", low_balance="2,5", top_up_credits="1000"
    )
    shown = await owner.follow(saved)
    assert "Settings saved" in shown.text and 'value="50.00"' in shown.text and 'value="2.50"' in shown.text
    refused = await owner.submit(shown, f"{place}/settings", low_balance="much", top_up_credits="")
    assert refused.status == 400 and "f-low_balance-error" in refused.text and 'value="much"' in refused.text


async def test_the_end_of_credit_is_forecast_by_the_average_use(console: Console) -> None:
    ledger, application = create_credit_ledger(), console.application
    place = f"{BILLING}/credit"
    page = await console.owner.get(place)
    await console.owner.submit(page, f"{place}/settings", auto_spend="true", low_balance="1")
    async with application.uow.begin(console.tenant, builders.CALL) as tx:
        await ledger.add_lot(tx, "purchase", 10_000_000, new_id("crp"), tx.now + timedelta(days=365))
    application.clock.advance(timedelta(days=3))
    async with application.uow.begin(console.tenant, builders.CALL) as tx:
        use = new_id("use")
        assert await ledger.reserve(tx, use, 6_000_000)
        await ledger.settle(tx, use, 5_000_000)
    shown = await (await application.open_browser()).get(place)
    until = application.clock.now() + timedelta(days=4)
    assert (
        "average use of the last 4 days" in shown.text
        and f"credit lasts until {until:%b} {until.day}, {until.year}" in shown.text
    )
    assert "-$6.00" in shown.text and "$5.00" in shown.text and "Show table" in shown.text


async def test_members_see_what_their_role_permits(console: Console) -> None:
    await console.store_card()
    await console.subscribe()
    editor, biller = (
        await console.application.open_browser(role="editor"),
        await console.application.open_browser(role="billing"),
    )
    viewer = await console.application.open_browser(role="viewer")
    for path in ("", "/card", "/invoices", "/credit"):
        shown = await editor.get(BILLING + path)
        main = shown.text.partition("<main")[2]
        assert shown.status == 200 and 'method="post"' not in main and "/buy" not in main, path
        assert f'href="{BILLING}/plans' not in main and f'href="{BILLING}/cancel' not in main
        refused = await viewer.get(BILLING + path)
        assert refused.status == 403 and "the role Owner, Admin, Developer, Editor, or Billing" in refused.text
        assert (await biller.get(BILLING + path)).status == 200
    assert BILLING not in (await viewer.get("/console/organisation/usage")).text
    page = await editor.get("/console")
    for path in (
        "/card",
        "/card/confirm",
        "/cancel",
        "/resume",
        "/keep-plan",
        "/plans/large",
        "/credit/buy",
        "/credit/settings",
    ):
        assert (await editor.submit(page, BILLING + path, credits="1000", low_balance="1")).status == 403, path
    page = await biller.get(f"{BILLING}/credit")
    assert "Only owners can change the settings" in page.text
    assert (await biller.get(f"{BILLING}/credit/buy?credits=1000")).status == 403
    assert (await biller.submit(page, f"{BILLING}/credit/settings", low_balance="1")).status == 403
    assert (await biller.submit(page, f"{BILLING}/cancel")).status == 303


@pytest.mark.parametrize("mode", ["live", "test"])
async def test_without_billing_the_pages_offer_no_changes(mode: str) -> None:
    payments = MemoryPayments(datetime(2026, 1, 1, tzinfo=UTC)) if mode == "test" else None
    async with run_application(payments=payments) as application:
        owner = await application.open_browser()
        if mode == "test":
            await owner.submit(await owner.get("/console"), "/console/switch", mode="test", next="/console")
        for path in ("", "/card", "/invoices", "/credit"):
            shown = await owner.get(BILLING + path)
            main = shown.text.partition("<main")[2]
            assert shown.status == 200 and f'action="{BILLING}/card' not in main and "/buy" not in main, path
        shown = await owner.get(BILLING)
        assert ("live mode only" if mode == "test" else "The operator of this service sets the plan") in shown.text
        assert "$99.00" in shown.text and f"{BILLING}/plans/" not in shown.text
        refused = await owner.get(f"{BILLING}/plans/standard")
        assert refused.status == 403


async def test_the_pages_are_translated(console: Console) -> None:
    await console.store_card()
    await console.subscribe()
    for path in ("", "/card", "/invoices", "/credit", "/cancel", "/plans/large"):
        page = await console.owner.get(BILLING + path, accept_language="de")
        check_markup(page.text)
        assert page.status == 200 and 'lang="de"' in page.text
        assert not re.search(r"Subscription|subscription is|Price per month|Billing<|Due now", page.text), path
