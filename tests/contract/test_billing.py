"""Billing accounts on PostgreSQL, with the provider in memory and with Stripe's adapter on the imitated server."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.billing.model import SubscriptionStatus
from domain.kernel.errors import Conflict, PaymentDeclined
from tests.support.backend import Backend
from tests.support.billing import BAD_CARD, PROVIDERS, BillingHarness, StripeProvider
from tests.support.builders import CALL

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]


@pytest_asyncio.fixture(params=PROVIDERS)
async def billing(request: pytest.FixtureRequest, backend: Backend) -> AsyncIterator[BillingHarness]:
    """Return the billing of a new organisation with the plan free."""
    free = await backend.registry.find_plan("free")
    organisation = await backend.organisation(plan=free)
    from domain.kernel.tenancy import Tenant

    harness = BillingHarness(backend, PROVIDERS[request.param](backend.now()), Tenant(organisation.id, True))
    yield harness
    if isinstance(harness.provider, StripeProvider):
        harness.provider.server.assert_valid()


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
    from domain.billing.model import Invoice
    from domain.billing.usecases.accounts import SubscriptionRequest
    from domain.kernel.paging import PageRequest

    await billing.store_card()
    await billing.subscribe("standard")
    await billing.advance(timedelta(days=11, hours=5))
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        compute = await billing.service.preview(tx, CALL, SubscriptionRequest("high"))
    preview = await compute()
    assert 0 < preview.due_now < 49900 - 9900
    await billing.subscribe("high")
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        [charged, _] = (await tx.store(Invoice).page(PageRequest(10))).items
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
