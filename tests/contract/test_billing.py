"""Billing accounts on PostgreSQL, with the provider in memory and with Stripe's adapter on the imitated server."""

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.billing.model import BillingAccount, CreditPurchase, PlanSubscription, SubscriptionStatus
from domain.billing.ports import InvalidSignature
from domain.billing.usecases.accounts import SubscriptionRequest
from domain.credits.usecases.ledger import CreditSettingsService
from domain.kernel.errors import Conflict, DomainError, PaymentDeclined
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance
from domain.usage.meters import RECORDS, SOURCES, find_month_start, find_next_month
from domain.usage.usecases.quota import get_monthly_quota
from entrypoints.factories import create_usage_service
from tests.stripe_server import InProcessClient
from tests.support import builders
from tests.support.backend import Backend
from tests.support.billing import BAD_CARD, GOOD_CARD, PROVIDERS, BillingHarness, StripeProvider, run_jobs
from tests.support.builders import CALL

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]


@pytest_asyncio.fixture(params=PROVIDERS)
async def billing(request: pytest.FixtureRequest, backend: Backend) -> AsyncIterator[BillingHarness]:
    """Return the billing of a new organisation with the plan free."""
    harness = await create_harness(backend, request.param)
    yield harness
    if isinstance(harness.provider, StripeProvider):
        harness.provider.server.assert_valid()


async def create_harness(backend: Backend, provider: str) -> BillingHarness:
    for code, monthly in (("free", 0), ("standard", 9_900), ("high", 49_900), ("max", 199_900)):
        meters = {RECORDS: MeterAllowance(500_000, 1_000, 10), SOURCES: MeterAllowance(10, 1, 900)}
        await backend.offer(builders.plan(code, monthly=monthly, meters=meters))
    organisation = await backend.organisation(plan=await backend.registry.find_plan("free"))
    return BillingHarness(backend, PROVIDERS[provider](backend.now()), Tenant(organisation.id, True))


async def test_subscription_with_a_card_is_active(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    account = await billing.read()
    assert account.subscription is not None
    assert (account.subscription.status, account.subscription.plan) == (SubscriptionStatus.ACTIVE, "standard")
    assert await billing.get_plan() == ("standard", True)
    before = await billing.list_invoices()
    await billing.subscribe("standard")  # has no further effect
    assert await billing.list_invoices() == before


async def test_subscription_without_a_card_waits_for_its_payment(billing: BillingHarness) -> None:
    await billing.subscribe("standard")
    account = await billing.read()
    assert account.subscription is not None
    assert account.subscription.status is SubscriptionStatus.INCOMPLETE
    assert await billing.get_plan() == ("free", False)
    confirmation = await billing.service.confirm_card(billing.tenant, CALL, "k")
    await billing.provider.pay(confirmation.client_secret)
    await billing.synchronise()
    assert await billing.get_plan() == ("standard", True)


async def test_declined_card_leaves_no_subscription(billing: BillingHarness) -> None:
    await billing.store_card(BAD_CARD)
    with pytest.raises(PaymentDeclined):
        await billing.subscribe("standard")
    assert (await billing.read()).subscription is None
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.store_card(BAD_CARD)
    with pytest.raises(PaymentDeclined):
        await billing.subscribe("high")
    assert await billing.get_plan() == ("standard", True)


async def test_preview_states_what_an_upgrade_costs(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.advance(timedelta(days=11, hours=5))
    preview = await billing.service.preview(billing.tenant, CALL, SubscriptionRequest("high"))
    assert 0 < preview.due_now < 49900 - 9900
    await billing.subscribe("high")
    [charged, _] = await billing.list_invoices()
    assert charged.total == preview.due_now
    assert await billing.get_plan() == ("high", True)


async def test_downgrade_is_scheduled_and_can_be_cancelled(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("high")
    await billing.subscribe("standard")
    account = await billing.read()
    assert account.subscription is not None
    assert account.subscription.scheduled_change is not None
    assert account.subscription.scheduled_change.effective_at == account.subscription.current_period_end
    await billing.service.cancel_scheduled_change(billing.tenant, CALL)
    account = await billing.read()
    assert account.subscription is not None
    assert account.subscription.scheduled_change is None
    await billing.subscribe("standard")
    await billing.advance(timedelta(days=32))
    assert await billing.get_plan() == ("standard", True)


async def test_cancelled_subscription_ends_with_its_period(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.service.cancel(billing.tenant, CALL)
    await billing.service.resume(billing.tenant, CALL)
    await billing.advance(timedelta(days=32))
    assert await billing.get_plan() == ("standard", True)
    await billing.service.cancel(billing.tenant, CALL)
    await billing.advance(timedelta(days=32))
    assert await billing.get_plan() == ("free", False)
    assert (await billing.read()).subscription is None


async def test_failed_payment_keeps_the_plan_for_the_grace_period(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.store_card(BAD_CARD)
    await billing.advance(timedelta(days=32))
    account = await billing.read()
    assert account.subscription is not None
    assert account.subscription.status is SubscriptionStatus.PAST_DUE
    assert await billing.get_plan() == ("standard", True)
    with pytest.raises(Conflict):
        await billing.subscribe("high")
    await billing.advance(timedelta(days=15))
    assert await billing.get_plan() == ("free", False)


async def test_purchase_succeeds_when_its_payment_is_confirmed(billing: BillingHarness) -> None:
    purchase = await billing.purchases.buy(billing.tenant, CALL, 1000, "key-1")
    assert purchase.status == "requires_payment"
    assert await billing.purchases.buy(billing.tenant, CALL, 1000, "key-1") == purchase
    await billing.provider.pay(purchase.client_secret or "")
    await billing.synchronise()
    paid = await billing.purchases.buy(billing.tenant, CALL, 1000, "key-1")
    assert (paid.status, paid.client_secret) == ("succeeded", None)
    refunded = await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    assert refunded.refunded == 400


def _compare(account: BillingAccount) -> Any:
    """Return what must be equal with all providers."""
    subscription: PlanSubscription | None = account.subscription
    if subscription is not None:
        subscription = replace(subscription, id="", latest_invoice=None, cancel_at=None, started_at=None)
    return subscription, account.granted_plan, account.currency, account.card is not None


STEPS = ("subscribe", "cancel", "resume", "unschedule", "good card", "bad card", "pay", "buy", "days", "month")


async def take_step(billing: BillingHarness, step: str, value: float) -> str:
    """Take a step; return the name of its error, or an empty text."""
    service, tenant = billing.service, billing.tenant
    try:
        match step:
            case "subscribe":
                await billing.subscribe(("standard", "high", "max")[int(value * 3)])
            case "cancel":
                await service.cancel(tenant, CALL)
            case "resume":
                await service.resume(tenant, CALL)
            case "unschedule":
                await service.cancel_scheduled_change(tenant, CALL)
            case "good card" | "bad card":
                await billing.store_card(GOOD_CARD if step == "good card" else BAD_CARD)
            case "pay":
                for invoice in await billing.list_invoices():
                    secret = await service.require_payments(tenant).find_payment_secret(invoice.provider_id)
                    if secret is not None:
                        await billing.provider.pay(secret)
                await billing.synchronise()
            case "buy":
                await billing.purchases.buy(tenant, CALL, 500 + int(value * 1000), billing.create_key())
            case "days":
                await billing.advance(timedelta(days=value * 12, seconds=17))
            case "month":
                await billing.advance(timedelta(days=28 + int(value * 5)))
    except DomainError as error:
        return error.code
    return ""


@pytest.mark.parametrize("seed", range(3))
async def test_providers_agree_on_random_histories(backend: Backend, seed: int) -> None:
    harnesses = [await create_harness(backend, name) for name in ("memory", "stripe")]
    rng, history = random.Random(seed), []
    for _ in range(30):
        step, value = rng.choice(STEPS), rng.random()
        history.append((step, value))
        errors = []
        for billing in harnesses:
            if step in ("days", "month") and billing is not harnesses[0]:
                billing.provider.advance(backend.now())
                await billing.advance(timedelta())
                errors.append("")
            else:
                errors.append(await take_step(billing, step, value))
        states = [_compare(await billing.read()) for billing in harnesses]
        assert states[0] == states[1], history
        assert errors[0] == errors[1], history
        assert await harnesses[0].get_plan() == await harnesses[1].get_plan(), history
        totals = [
            sorted((one.status, one.total) for one in await each.list_invoices() if one.total) for each in harnesses
        ]
        assert totals[0] == totals[1], history


async def test_a_month_is_charged_once_beyond_its_quota(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    month = find_month_start(billing.backend.now().date())
    await billing.use(RECORDS, 400_000)
    await billing.advance(timedelta(days=1))
    await billing.use(RECORDS, 102_001)
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        assert await get_monthly_quota(tx, RECORDS) is None
        series = await create_usage_service().get_series(tx, RECORDS, month, None)
    await billing.advance(timedelta(days=40))
    for _ in range(2):
        unclosed = [
            one for one in await billing.registry.list_unclosed(find_next_month(month)) if one[0] == billing.tenant
        ]
        for _, open_month in unclosed:
            async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
                charge = await billing.charges.close_month(tx, open_month)
                assert await billing.charges.close_month(tx, open_month) == charge
        await run_jobs(billing)
    assert charge.total == 3 * 10
    [line] = charge.lines
    assert (line.meter, line.quantity) == (RECORDS, sum(one.amount for one in series.days[RECORDS]) - 500_000)
    [invoice] = [one for one in await billing.list_invoices() if one.cause == f"usage-{charge.id}"]
    assert (invoice.total, invoice.status) == (30, "paid")
    assert [(one.meter, one.quantity, one.amount) for one in invoice.lines] == [(RECORDS, 2_001, 30)]


@pytest.mark.parametrize("seed", range(3))
async def test_notifications_may_be_repeated_lost_and_out_of_order(backend: Backend, seed: int) -> None:
    billing = await create_harness(backend, "stripe")
    provider = billing.provider
    assert isinstance(provider, StripeProvider)
    await billing.store_card()
    await billing.subscribe("standard")
    rng = random.Random(seed)
    received: list[tuple[bytes, dict[str, str]]] = []
    for _ in range(6):
        customer = (await billing.read()).customer or ""
        await provider.store_card(customer, rng.choice([GOOD_CARD, BAD_CARD]))
        await backend.pass_time(timedelta(days=rng.randrange(3, 12)))
        provider.advance(backend.now())
        provider.server.deliver(
            lambda body, headers: received.append((body, headers)), order="shuffled", duplicates=0.4, drop=0.2, rng=rng
        )
        for body, headers in received:
            await billing.synchroniser.receive(body, headers["Stripe-Signature"])
        received.clear()
        await run_jobs(billing)
        state = await billing.service.require_payments(billing.tenant).fetch_account(customer)
        account = await billing.read()
        assert (account.subscription, account.card) == (state.subscription, state.card)
    with pytest.raises(InvalidSignature):
        await billing.synchroniser.receive(b"{}", "t=1,v1=00")
    # all notifications of a period are lost
    await provider.store_card(customer, GOOD_CARD)
    await billing.service.require_payments(billing.tenant).fetch_account(customer)
    await backend.pass_time(timedelta(days=35))
    provider.advance(backend.now())
    assert billing.tenant in await billing.registry.list_accounts(backend.now() - timedelta(hours=20))
    await billing.synchroniser.queue_reconciliations()
    await run_jobs(billing)
    state = await billing.service.require_payments(billing.tenant).fetch_account(customer)
    assert (await billing.read()).subscription == state.subscription


class Killed(BaseException):
    """The process was killed."""


class KillableClient(InProcessClient):
    """Transport that kills the process before or after a request."""

    left = 10**9

    async def request_async(self, *args: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise Killed
        answer = await super().request_async(*args, **more)
        self.left -= 1
        if self.left <= 0:
            raise Killed
        return answer


@pytest.mark.slow
@pytest.mark.parametrize("action", ["subscribe", "upgrade", "downgrade", "buy"])
async def test_a_killed_request_can_be_repeated(backend: Backend, action: str) -> None:
    """Kill the process before and after each request to the provider, and repeat the operation with the same key."""
    for kill_at in range(1, 200):
        billing = await create_harness(backend, "stripe")
        provider = billing.provider
        assert isinstance(provider, StripeProvider)
        await billing.store_card()
        if action in ("upgrade", "downgrade"):
            await billing.subscribe("standard" if action == "upgrade" else "high")
        key, charged = billing.create_key(), len(provider.server.state.select("charge"))
        client = KillableClient(provider.server)

        async def act(billing: BillingHarness, key: str = key) -> None:
            if action == "buy":
                await billing.purchases.buy(billing.tenant, CALL, 700, key)
            else:
                await billing.subscribe({"upgrade": "high", "downgrade": "standard"}.get(action, "standard"), key)

        client.left = kill_at
        killed = BillingHarness(backend, StripeProvider.attach(provider.server, client), billing.tenant)
        try:
            await act(killed)
        except Killed:
            # the lease of the killed request ends
            await backend.pass_time(timedelta(minutes=3))
            provider.advance(backend.now())
            with contextlib.suppress(Conflict):  # the change took effect before
                await act(billing)
        else:
            assert kill_at > 10
            return
        account = await billing.read()
        if action == "buy":
            [purchase] = provider.server.state.select("invoice", status="open")
            assert purchase["total"] == 700
            continue
        assert account.subscription is not None
        assert account.subscription.status is SubscriptionStatus.ACTIVE
        if action == "downgrade":
            assert account.subscription.scheduled_change is not None
        else:
            assert account.subscription.plan == ("high" if action == "upgrade" else "standard")
            assert len(provider.server.state.select("charge")) == charged + 1
        provider.server.assert_valid()
    raise AssertionError("the operation never completed")


async def test_credit_is_bought_automatically_once_a_day(billing: BillingHarness) -> None:
    await billing.store_card()
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await CreditSettingsService().update(tx, "credits", {"top_up_credits": 600})
        await billing.ledger.process_expiry(tx)
    for _ in range(2):
        await billing.automatic_purchases.buy_due()
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        [purchase] = (await tx.store(CreditPurchase).page(PageRequest(10))).items
    assert (purchase.kind, purchase.status, purchase.credits) == ("automatic", "succeeded", 600)


async def test_other_products_and_unknown_plans_change_nothing(backend: Backend) -> None:
    billing = await create_harness(backend, "stripe")
    provider = billing.provider
    assert isinstance(provider, StripeProvider)
    await billing.store_card()
    customer = (await billing.read()).customer or ""
    for product in ("consulting", "joinery_plan_former"):
        provider.client.products.create({"id": product, "name": product})
        price = {"currency": "usd", "product": product, "recurring": {"interval": "month"}, "unit_amount": 500}
        provider.client.subscriptions.create({"customer": customer, "items": [{"price_data": price}]})
        await billing.synchronise()
        assert await billing.get_plan() == ("free", False)
