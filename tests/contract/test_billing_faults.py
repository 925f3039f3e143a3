"""Billing accounts on the imitated Stripe server after faults, races and changes that were made by hand in Stripe."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
import stripe

from adapters.stripe_payments import StripePayments
from domain.billing.model import Invoice, PlanSubscription, SubscriptionStatus
from domain.billing.usecases import accounts
from domain.credits.usecases.ledger import CreditSettingsService
from domain.kernel.errors import Conflict, IdempotencyKeyReused, PaymentDeclined, Unavailable, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.stripe_server.server import Fault
from tests.support.backend import Backend
from tests.support.billing import BAD_CARD, StripeBilling, StripeProvider
from tests.support.builders import CALL

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]


@pytest_asyncio.fixture
async def billing(backend: Backend) -> StripeBilling:
    """Return the billing of a new organisation with the plan free."""
    organisation = await backend.organisation(plan=await backend.registry.find_plan("free"))
    return StripeBilling(backend, StripeProvider(backend.now()), Tenant(organisation.id, True))


async def test_refund_of_a_payment_that_failed_before_is_known(billing: StripeBilling) -> None:
    purchase = await billing.purchases.buy(billing.tenant, CALL, 1000, "key")
    secret = purchase.client_secret or ""
    with pytest.raises(stripe.CardError):
        billing.provider.client.payment_intents.confirm(secret.partition("_secret")[0], {"payment_method": BAD_CARD})
    await billing.provider.pay(secret)
    await billing.synchronise()
    refunded = await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    assert refunded.refunded == 400


async def test_repeated_purchase_of_another_amount_is_refused(billing: StripeBilling) -> None:
    billing.provider.server.faults.append(Fault("POST", "/v1/invoices$", "503", 9))
    with pytest.raises(Unavailable):
        await billing.purchases.buy(billing.tenant, CALL, 100_000, "key")
    billing.provider.server.faults.clear()
    with pytest.raises(IdempotencyKeyReused):
        await billing.purchases.buy(billing.tenant, CALL, 500, "key")
    purchase = await billing.purchases.buy(billing.tenant, CALL, 100_000, "key")
    assert [one["total"] for one in billing.provider.server.state.select("invoice")] == [purchase.total] == [100_000]


async def test_repeated_automatic_purchase_keeps_its_amount(billing: StripeBilling) -> None:
    await billing.store_card()
    billing.provider.server.faults.append(Fault("POST", "/v1/invoices$", "503", 9))
    for credits in (600, 900):
        async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
            await CreditSettingsService().update(tx, "credits", {"top_up_credits": credits})
            await billing.ledger.process_expiry(tx)
        await billing.automatic_purchases.buy_due()
        billing.provider.server.faults.clear()
    assert [one["total"] for one in billing.provider.server.state.select("invoice")] == [600]


async def test_subscription_to_an_unknown_product_grants_no_plan(billing: StripeBilling) -> None:
    await billing.store_card()
    client, customer = billing.provider.client, (await billing.read()).customer or ""
    product = client.products.create({"name": "Consulting"})
    price: Any = {"product": product.id, "currency": "usd", "unit_amount": 100, "recurring": {"interval": "month"}}
    items: Any = [{"price_data": price, "quantity": 2}]
    other = client.subscriptions.create({"customer": customer, "items": items})
    await billing.synchronise()
    assert await billing.get_plan() == ("free", False)
    client.subscriptions.cancel(other.id)
    await billing.subscribe("standard")
    client.subscriptions.create({"customer": customer, "items": items})
    await billing.synchronise()
    assert await billing.get_plan() == ("standard", True)


async def test_price_without_an_amount_can_be_read(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    billing.find_subscription()["items"]["data"][0]["price"]["unit_amount"] = None
    await billing.synchronise()
    assert (await billing.read()).subscription is not None
    await billing.subscribe("high")
    assert await billing.get_plan() == ("high", True)


@pytest.mark.parametrize("kind", ["500_after", "timeout_after"])
async def test_failed_creation_of_a_customer_can_be_repeated(billing: StripeBilling, kind: str) -> None:
    # Stripe stores failed responses for 24 hours
    billing.provider.server.faults.append(Fault("POST", "/v1/customers$", kind, 3 if kind == "timeout_after" else 1))
    with pytest.raises(Unavailable):
        await billing.service.open_account(billing.tenant, CALL)
    assert (await billing.service.open_account(billing.tenant, CALL)).customer is not None


async def test_account_is_unlocked_after_any_error(billing: StripeBilling, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise Unprocessable

    await billing.store_card()
    with monkeypatch.context() as patch:
        patch.setattr(StripePayments, "fetch_account", fail)
        with pytest.raises(Unprocessable):
            await billing.subscribe("standard")
    await billing.subscribe("standard")


async def test_slow_change_does_not_end_the_lease_of_another(billing: StripeBilling) -> None:
    service, tenant = billing.service, billing.tenant
    began, may_end = asyncio.Event(), asyncio.Event()

    async def change() -> None:
        async with service.begin_change(tenant, CALL):
            began.set()
            await may_end.wait()

    async with service.begin_change(tenant, CALL):
        await billing.backend.pass_time(accounts.CHANGE_LEASE)
        other = asyncio.create_task(change())
        await began.wait()
    with pytest.raises(Unavailable):
        async with service.begin_change(tenant, CALL):
            pass
    may_end.set()
    await other


async def test_change_ends_before_its_lease(billing: StripeBilling, monkeypatch: pytest.MonkeyPatch) -> None:
    await billing.store_card()
    monkeypatch.setattr(accounts, "CHANGE_TIMEOUT", timedelta(seconds=0.5))
    with pytest.raises(Unavailable):
        async with billing.service.begin_change(billing.tenant, CALL):
            await asyncio.sleep(60)
    assert (await billing.read()).busy_until is None


async def test_subscription_that_is_paid_meanwhile_is_not_replaced(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await billing.subscribe("standard")
    confirmation = await billing.service.confirm_card(billing.tenant, CALL, "card")
    cancel = StripePayments.cancel_now

    async def cancel_later(self: StripePayments, subscription: PlanSubscription) -> None:
        await billing.provider.pay(confirmation.client_secret)
        await cancel(self, subscription)

    monkeypatch.setattr(StripePayments, "cancel_now", cancel_later)
    with pytest.raises(Conflict):
        await billing.subscribe("high")
    assert await billing.get_plan() == ("standard", True)


async def test_automatic_purchase_without_a_card_leaves_no_open_invoice(billing: StripeBilling) -> None:
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await CreditSettingsService().update(tx, "credits", {"top_up_credits": 600})
        await billing.ledger.process_expiry(tx)
    for _ in range(3):
        await billing.automatic_purchases.buy_due()
        await billing.backend.pass_time(timedelta(hours=1))
    assert [one["status"] for one in billing.provider.server.state.select("invoice")] == ["void"]


async def test_refund_of_zero_is_refused(billing: StripeBilling) -> None:
    purchase = await billing.buy_paid()
    with pytest.raises(Unprocessable):
        await billing.purchases.refund(billing.tenant, CALL, purchase.id, 0)
    assert not billing.provider.server.state.select("refund")


async def test_grace_period_ignores_unpaid_invoices_of_an_ended_subscription(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.store_card(BAD_CARD)
    await billing.advance(timedelta(days=32))
    await billing.advance(timedelta(days=20))
    assert (await billing.read()).subscription is None
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.store_card(BAD_CARD)
    await billing.advance(timedelta(days=33))
    account = await billing.read()
    assert account.subscription is not None
    assert account.subscription.status is SubscriptionStatus.PAST_DUE
    assert await billing.get_plan() == ("standard", True)


async def test_second_downgrade_applies_at_the_end_of_the_period(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("max")
    await billing.subscribe("high")
    await billing.advance(timedelta(days=32))
    assert await billing.get_plan() == ("high", True)
    await billing.subscribe("standard")
    assert await billing.get_plan() == ("high", True)
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert subscription.scheduled_change is not None
    assert subscription.scheduled_change.effective_at == subscription.current_period_end


async def test_downgrade_keeps_the_discount(billing: StripeBilling) -> None:
    await billing.store_card()
    billing.provider.client.coupons.create({"id": "half", "percent_off": 50, "duration": "forever"})
    billing.provider.client.promotion_codes.create({"promotion": {"type": "coupon", "coupon": "half"}, "code": "HALF"})
    await billing.subscribe("high", promotion_code="HALF")
    await billing.subscribe("standard")
    [schedule] = billing.provider.server.state.select("subscription_schedule")
    [discount] = billing.find_subscription()["discounts"]
    assert [[one["discount"] for one in phase["discounts"]] for phase in schedule["phases"]] == [[discount]] * 2
    await billing.advance(timedelta(days=32))
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert subscription.discount is not None


async def test_invoices_that_are_stored_together_are_listed_newest_first(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    await billing.advance(timedelta(days=70))
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        invoices = (await tx.store(Invoice).page(PageRequest(100))).items
    times = [one.created_at for one in invoices]
    assert times == sorted(times, reverse=True)
    assert len(times) == 3


async def test_declined_request_is_declined_again(billing: StripeBilling) -> None:
    await billing.store_card(BAD_CARD)
    for _ in range(2):
        with pytest.raises(PaymentDeclined):
            await billing.subscribe("standard", "key")


async def test_month_after_the_end_of_a_subscription_is_not_charged(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("standard")
    began = billing.backend.now()
    await billing.service.cancel(billing.tenant, CALL)
    await billing.backend.pass_time(timedelta(days=45))
    billing.provider.advance(billing.backend.now())
    await billing.synchronise()
    assert await billing.get_plan() == ("free", False)
    found = await billing.registry.list_unclosed(billing.backend.now().date() + timedelta(days=60))
    assert [month for tenant, month in found if tenant == billing.tenant] == [began.date().replace(day=1)]


async def test_deleted_customer_has_no_plan_and_can_subscribe_again(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: StripePayments, customer: str, all_invoices: bool) -> None:
        error: Any = stripe.InvalidRequestError
        raise error("No such customer", "customer", code="resource_missing")

    await billing.store_card()
    await billing.subscribe("standard")
    customer = (await billing.read()).customer or ""
    billing.provider.client.customers.delete(customer)
    with monkeypatch.context() as patch:
        patch.setattr(StripePayments, "_fetch_account", refuse)
        with pytest.raises(Unavailable):
            await billing.subscribe("high")
    assert await billing.get_plan() == ("free", False)
    await billing.store_card()
    await billing.subscribe("standard")
    assert await billing.get_plan() == ("standard", True)


async def test_customer_of_deleted_organisation_is_not_charged(billing: StripeBilling) -> None:
    await billing.service.delete_customer(billing.tenant)  # nothing happens without a customer
    await billing.store_card()
    await billing.subscribe("standard")
    for _ in range(2):  # a repeated deletion has no further effect
        await billing.service.delete_customer(billing.tenant)
    await billing.advance(timedelta(days=70))
    state = billing.provider.server.state
    assert [one["status"] for one in state.select("subscription")] == ["canceled"]
    assert len(state.select("charge", paid=True)) == 1
    assert await billing.get_plan() == ("free", False)


async def test_error_of_one_organisation_does_not_stop_automatic_purchases(
    backend: Backend, billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisation = await backend.organisation(plan=await backend.registry.find_plan("free"))
    broken = Tenant(organisation.id, True)
    await billing.store_card()
    for tenant in (broken, billing.tenant):
        async with backend.uow.begin(tenant, CALL) as tx:
            await CreditSettingsService().update(tx, "credits", {"top_up_credits": 600})
            await billing.ledger.process_expiry(tx)
    create = StripePayments.create_customer

    async def fail(self: StripePayments, org: str, name: str, key: str) -> str:
        if org == broken.org:
            raise RuntimeError
        return await create(self, org, name, key)

    monkeypatch.setattr(StripePayments, "create_customer", fail)
    await billing.automatic_purchases.buy_due()
    assert [one["status"] for one in billing.provider.server.state.select("invoice")] == ["paid"]
