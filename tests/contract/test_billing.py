"""Billing accounts on PostgreSQL, with the provider in memory and with Stripe's adapter on the imitated server."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.billing.model import BillingAccount, Invoice, Subscription, SubscriptionStatus
from domain.billing.usecases.accounts import SubscriptionRequest
from domain.kernel.errors import Conflict, DomainError, PaymentDeclined
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.support.backend import Backend
from tests.support.billing import BAD_CARD, GOOD_CARD, PROVIDERS, BillingHarness, StripeProvider
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
    organisation = await backend.organisation(plan=await backend.registry.find_plan("free"))
    return BillingHarness(backend, PROVIDERS[provider](backend.now()), Tenant(organisation.id, True))


async def list_invoices(billing: BillingHarness) -> list[Invoice]:
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        return list((await tx.store(Invoice).page(PageRequest(100))).items)


async def test_subscription_with_a_card_is_active(billing: BillingHarness) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    account = await billing.read()
    assert account.subscription is not None
    assert (account.subscription.status, account.subscription.plan) == (SubscriptionStatus.ACTIVE, "standard")
    assert await billing.get_plan() == ("standard", True)
    with pytest.raises(Conflict):
        await billing.subscribe("standard")


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
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        compute = await billing.service.preview(tx, CALL, SubscriptionRequest("high"))
    preview = await compute()
    assert 0 < preview.due_now < 49900 - 9900
    await billing.subscribe("high")
    [charged, _] = await list_invoices(billing)
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
    refunded = await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400, "refund")
    assert refunded.refunded == 400


def _compare(account: BillingAccount) -> Any:
    """Return what must be equal with all providers."""
    subscription: Subscription | None = account.subscription
    if subscription is not None:
        subscription = replace(subscription, id="", latest_invoice=None, cancel_at=None)
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
                for invoice in await list_invoices(billing):
                    secret = await service.require_payments(tenant).find_payment_secret(invoice.reference)
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


@pytest.mark.parametrize("seed", range(6))
async def test_providers_agree_on_random_histories(backend: Backend, seed: int) -> None:
    harnesses = [await create_harness(backend, name) for name in PROVIDERS]
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
            sorted((one.status, one.total) for one in await list_invoices(each) if one.total) for each in harnesses
        ]
        assert totals[0] == totals[1], history
