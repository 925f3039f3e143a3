"""Amounts and plans after changes by operators, repeated requests and failures, against the imitated Stripe server."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
import stripe

from adapters.stripe_payments import StripePayments
from domain.billing.model import (
    BillingAccount,
    CreditPurchase,
    Invoice,
    InvoiceStatus,
    Money,
    find_proration_time,
)
from domain.billing.ports import BillingStore
from domain.billing.usecases import accounts
from domain.billing.usecases.accounts import SubscriptionRequest
from domain.billing.usecases.purchases import PurchaseService
from domain.credits.usecases.ledger import CreditSettingsService
from domain.jobs.model import build_lane_name
from domain.kernel.errors import Conflict, DomainError, PaymentDeclined, Unavailable, Unprocessable
from domain.kernel.tenancy import Tenant
from domain.matching.judge_answers import JUDGING_JOB, JUDGING_LANE
from domain.orgs.model import MeterAllowance
from domain.usage.meters import RECORDS, SOURCES, find_month_start, find_next_month
from tests.http.application import run_application
from tests.http.test_agreements import create_token_client
from tests.stripe_server.server import Fault
from tests.support import builders
from tests.support.backend import Backend
from tests.support.billing import BAD_CARD, StripeBilling, StripeProvider, run_jobs
from tests.support.builders import CALL

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]
METERED = {RECORDS: MeterAllowance(100, 10, 5), SOURCES: MeterAllowance(10, 1, 2_800)}


async def build(backend: Backend) -> StripeBilling:
    for code, monthly, meters in (("metered", 9_900, METERED), ("metered_plus", 49_900, METERED), ("free", 0, {})):
        if code != "free":
            await backend.offer(builders.plan(code, monthly=monthly, meters=meters))
    organisation = await backend.organisation(plan=await backend.registry.find_plan("free"))
    return StripeBilling(backend, StripeProvider(backend.now()), Tenant(organisation.id, True))


@pytest_asyncio.fixture
async def billing(backend: Backend) -> StripeBilling:
    """Return the billing of a new organisation with the plan free."""
    return await build(backend)


# Deletion of an organisation


async def test_deleted_organisation_is_not_charged(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.erase()
    await billing.backend.pass_time(timedelta(days=70))
    billing.provider.advance(billing.backend.now())
    statuses = [one["status"] for one in billing.select("subscription")]
    assert (statuses, len(billing.select("charge", paid=True))) == (["canceled"], 1)


# Concurrent requests with one Idempotency-Key


async def test_the_response_of_the_request_that_succeeds_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    buy, began, other_failed = PurchaseService.buy, asyncio.Event(), asyncio.Event()

    async def buy_late(*args: Any) -> CreditPurchase:
        if began.is_set() and not other_failed.is_set():
            raise Conflict("Another request is in progress.")
        began.set()
        await other_failed.wait()
        return await buy(*args)

    provider = StripeProvider(datetime(2026, 11, 20, tzinfo=UTC))
    monkeypatch.setattr(PurchaseService, "buy", buy_late)
    async with run_application(payments=provider.payments) as application:
        owner, _ = await create_token_client(application, "Fjord", "owner")

        async def send() -> Any:
            return await owner.post("/v1/billing/credits/purchases", {"credits": 1000}, idempotency_key="one")

        first = asyncio.create_task(send())
        await began.wait()
        statuses = [(await send()).status]
        other_failed.set()
        statuses += [(await first).status, (await send()).status]
        assert statuses == [409, 201, 201]
        assert len(provider.server.state.select("invoice")) == 1


async def test_an_error_503_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    create, began, loser_ended = StripePayments.create_card_setup, asyncio.Event(), asyncio.Event()

    async def create_late(self: Any, *args: Any) -> str:
        began.set()
        await loser_ended.wait()
        return await create(self, *args)

    provider = StripeProvider(datetime(2026, 11, 20, tzinfo=UTC))
    monkeypatch.setattr(StripePayments, "create_card_setup", create_late)
    async with run_application(payments=provider.payments) as application:
        owner, _ = await create_token_client(application, "Fjord", "owner")
        winner = asyncio.create_task(owner.post("/v1/billing/card", idempotency_key="one"))
        await began.wait()
        loser = await owner.post("/v1/billing/card", idempotency_key="one")
        loser_ended.set()
        again = [await winner, await owner.post("/v1/billing/card", idempotency_key="one")]
        assert (loser.status, again[0].status, again[1].status) == (503, 200, 200)
        assert again[0].json() == again[1].json()


async def test_a_repeated_subscription_whose_answer_was_lost_succeeds(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered", "key")
    await billing.subscribe("metered", "key")  # the process died before it stored the answer


# Announced prices


async def test_a_price_of_the_next_period_does_not_change_the_proration(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.advance(timedelta(days=10))
    for monthly in (20_000, 5_000):
        await billing.set_price("metered", monthly, billing.backend.now() + timedelta(days=5))
        await billing.reconcile()
        await billing.backend.pass_time(timedelta(hours=21))
        assert (await billing.read()).subscription.next_price == monthly  # type: ignore[union-attr]
    subscription = (await billing.read()).subscription
    assert subscription is not None
    after = await billing.service.preview(billing.tenant, CALL, SubscriptionRequest("metered_plus"))
    share = (subscription.current_period_end - find_proration_time(subscription, billing.backend.now())) / (
        subscription.current_period_end - subscription.current_period_start
    )
    assert abs(after.due_now - 40_000 * share) <= 1


@pytest.mark.parametrize(("next_price", "expected"), [(5_000, "metered"), (20_000, "small")])
async def test_an_announced_price_does_not_decide_what_is_an_upgrade(
    billing: StripeBilling, next_price: int, expected: str
) -> None:
    """Before and after 9,900: a plan for 7,000 is a downgrade, one for 15,000 an upgrade."""
    other = 7_000 if expected == "metered" else 15_000
    await billing.backend.offer(builders.plan("small", monthly=other, meters=METERED))
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.set_price("metered", next_price, billing.backend.now() + timedelta(days=5))
    await billing.reconcile()
    await billing.subscribe("small")
    assert (await billing.get_plan())[0] == expected


async def test_price_is_not_changed_while_a_change_of_plan_is_in_progress(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.set_price("metered", 12_000, billing.backend.now() + timedelta(days=5))
    await billing.synchroniser.queue_reconciliations()
    async with billing.service.begin_change(billing.tenant, CALL):
        with pytest.raises(Unavailable):
            await run_jobs(billing)
    assert (await billing.read()).subscription.next_price == 9_900  # type: ignore[union-attr]
    await billing.backend.pass_time(timedelta(minutes=2))
    await run_jobs(billing)
    assert (await billing.read()).subscription.next_price == 12_000  # type: ignore[union-attr]


async def test_a_scheduled_plan_costs_the_price_of_its_period(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered_plus")
    await billing.set_price("metered", 5_000, billing.backend.now() + timedelta(days=5))
    await billing.subscribe("metered")
    for _ in range(33):
        await billing.advance(timedelta(days=1))
        await billing.reconcile()
    newest = (await billing.list_invoices())[0]
    assert newest.total == 5_000


async def test_a_price_that_is_set_back_and_forth_applies(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    since = billing.backend.now() + timedelta(days=5)
    for monthly in (12_000, 9_900, 12_000):
        await billing.set_price("metered", monthly, since)
        await billing.reconcile()
        assert (await billing.read()).subscription.next_price == monthly  # type: ignore[union-attr]
        await billing.backend.pass_time(timedelta(hours=20, minutes=1))
        billing.provider.advance(billing.backend.now())


@pytest.mark.parametrize("change", ["unschedule", "resume", "downgrade", "upgrade"])
async def test_changes_before_the_renewal_keep_the_announced_price(billing: StripeBilling, change: str) -> None:
    await billing.backend.offer(builders.plan("small", monthly=700, meters=METERED))
    await billing.store_card()
    await billing.subscribe("metered")
    subscription = (await billing.read()).subscription
    assert subscription is not None
    for plan, monthly in (("metered", 12_000), ("metered_plus", 60_000)):
        await billing.set_price(plan, monthly, subscription.current_period_end - timedelta(minutes=5))
    await billing.reconcile()
    await billing.advance(subscription.current_period_end - billing.backend.now() - timedelta(hours=1))
    match change:
        case "unschedule":
            await billing.service.cancel_scheduled_change(billing.tenant, CALL)
        case "resume":
            await billing.service.cancel(billing.tenant, CALL)
            await billing.service.resume(billing.tenant, CALL)
        case "downgrade":
            await billing.subscribe("small")
            await billing.subscribe("metered")
        case "upgrade":
            await billing.subscribe("metered_plus")
    await billing.advance(timedelta(hours=4))
    assert (await billing.list_invoices())[0].total == (60_000 if change == "upgrade" else 12_000)


async def announce_price(billing: StripeBilling) -> None:
    """Subscribe, and schedule a higher price of the plan for the next period."""
    await billing.store_card()
    await billing.subscribe("metered")
    subscription = (await billing.read()).subscription
    assert subscription is not None
    await billing.set_price("metered", 12_000, subscription.current_period_end - timedelta(days=5))
    await billing.reconcile()


async def test_interrupted_upgrade_is_not_undone_by_the_announced_price(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = StripePayments.change_plan

    async def change_then_fail(self: StripePayments, *args: Any) -> None:
        billing.server.faults.append(Fault("POST", "/release$", "503", 3))
        await change(self, *args)
        raise Unavailable("The process was killed.")

    await announce_price(billing)
    monkeypatch.setattr(StripePayments, "change_plan", change_then_fail)
    with pytest.raises(Unavailable):
        await billing.subscribe("metered_plus")
    billing.server.faults.clear()
    await billing.advance(timedelta(days=32))
    assert (await billing.get_plan())[0] == "metered_plus"


async def test_declined_upgrade_keeps_the_announced_price(billing: StripeBilling) -> None:
    await announce_price(billing)
    await billing.store_card(BAD_CARD)
    with pytest.raises(PaymentDeclined):
        await billing.subscribe("metered_plus")
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert (subscription.price, subscription.next_price) == (9_900, 12_000)


# Subscriptions that are made by hand


async def create_by_hand(billing: StripeBilling, interval: str, amount: int, quantity: int) -> str:
    await billing.store_card()
    with contextlib.suppress(Exception):
        billing.provider.client.products.create({"id": "joinery_plan_metered", "name": "Metered"})
    price: Any = {"product": "joinery_plan_metered", "currency": "usd", "unit_amount": amount}
    price["recurring"] = {"interval": interval}
    customer = (await billing.read()).customer or ""
    created = billing.provider.client.subscriptions.create(
        {"customer": customer, "items": [{"price_data": price, "quantity": quantity}]}
    )
    await billing.synchronise()
    return str(created.id)


async def test_the_account_shows_a_yearly_price_as_it_is(billing: StripeBilling) -> None:
    await create_by_hand(billing, "year", 80_000, 2)
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert (subscription.interval, subscription.price) == ("year", 160_000)


@pytest.mark.parametrize(("interval", "amount", "quantity"), [("year", 80_000, 2), ("month", 7_000, 1)])
async def test_a_negotiated_price_is_kept(billing: StripeBilling, interval: str, amount: int, quantity: int) -> None:
    await create_by_hand(billing, interval, amount, quantity)
    await billing.reconcile()
    await billing.advance(timedelta(hours=2))
    [item] = billing.select("subscription")[0]["items"]["data"]
    assert (item["price"]["recurring"]["interval"], item["price"]["unit_amount"]) == (interval, amount)
    assert len(billing.select("charge", paid=True)) == 1


async def test_a_downgrade_keeps_the_quantity_of_the_current_period(billing: StripeBilling) -> None:
    await billing.backend.offer(builders.plan("small", monthly=700, meters=METERED))
    await create_by_hand(billing, "month", 7_000, 2)
    await billing.subscribe("small")
    [item] = billing.select("subscription")[0]["items"]["data"]
    assert item["quantity"] == 2


# Chargebacks


async def test_a_disputed_payment_removes_the_credit(billing: StripeBilling) -> None:
    await billing.buy_paid()
    [charge] = billing.select("charge", paid=True)
    charge["disputed"] = True
    await billing.service.synchronise(billing.tenant, CALL, all_invoices=True)
    assert await billing.get_available() == 0


# More than 100 newer charges


def add_newer_charges(billing: StripeBilling) -> None:
    """Add 101 declined attempts of another payment."""
    charge = billing.select("charge")[0]
    for number in range(101):
        id = f"ch_newer{number:03}"
        billing.server.state.objects["charge"][id] = {
            **charge, "id": id, "payment_intent": "pi_other", "paid": False, "status": "failed", "amount_refunded": 0,
        }  # fmt: skip


async def test_a_known_refund_stays_known(billing: StripeBilling) -> None:
    purchase = await billing.buy_paid()
    await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    add_newer_charges(billing)
    await billing.synchronise()
    [invoice] = await billing.list_invoices()
    stored = await billing.purchases.buy(billing.tenant, CALL, 1000, f"{billing.tenant.org}:1")
    assert (invoice.refunded, stored.refunded) == (400, 400)


async def test_a_new_refund_of_an_older_invoice_is_known(billing: StripeBilling) -> None:
    purchase = await billing.buy_paid()
    add_newer_charges(billing)
    refunded = await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    assert refunded.refunded == 400


async def test_a_refund_that_fails_later_can_be_repeated(billing: StripeBilling) -> None:
    """The issuer of the card refuses the refund after some days; its credit is removed once."""
    purchase = await billing.buy_paid()
    await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    [charge] = billing.select("charge", paid=True)
    charge["amount_refunded"] = 0
    await billing.advance(timedelta(days=3))
    await billing.reconcile()
    assert (await billing.list_invoices())[0].refunded == 0
    refunded = await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    assert (refunded.refunded, charge["amount_refunded"]) == (400, 400)
    assert await billing.get_available() == 6_000_000


# Unpaid usage invoices


async def make_unpaid_usage(billing: StripeBilling) -> Invoice:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.use(RECORDS, 100_000)
    while billing.backend.now().day != 3:
        await billing.advance(timedelta(days=1))
    await billing.store_card(BAD_CARD)
    await billing.close_months()
    await billing.synchronise()
    [invoice] = [one for one in await billing.list_invoices() if one.cause is not None]
    return invoice


async def test_an_unpaid_usage_invoice_is_shown_as_overdue(billing: StripeBilling) -> None:
    invoice = await make_unpaid_usage(billing)
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        overdue = (await billing.service.get_view(tx, 0)).overdue
    assert overdue == invoice


async def test_an_unpaid_usage_invoice_is_listed_for_operators(billing: StripeBilling) -> None:
    await make_unpaid_usage(billing)
    assert billing.tenant in [tenant for tenant, _ in await billing.registry.list_arrears()]


async def test_an_unpaid_usage_invoice_ends_the_plan(billing: StripeBilling) -> None:
    invoice = await make_unpaid_usage(billing)
    await billing.store_card()  # the subscription itself is paid again
    # the customer pays the subscription, never the usage: the retries of the usage invoice fail with the first card
    stripe_invoice = billing.server.state.get("invoice", invoice.provider_id)
    stripe_invoice["next_payment_attempt"] = None
    for _ in range(3):
        await billing.advance(timedelta(days=20))
    assert (await billing.get_plan())[0] == "free"


# Months of plans that no longer exist


async def test_a_month_of_a_former_plan_is_closed(billing: StripeBilling) -> None:
    await billing.store_card()
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await tx[BillingStore].begin_plan(
            find_month_start(billing.backend.now().date()), "former", billing.backend.now().date()
        )
    assert (await billing.read()).currency is None
    await billing.backend.pass_time(timedelta(days=40))
    month = find_next_month(find_month_start(billing.backend.now().date()))
    before = [one for one in await billing.registry.list_unclosed(month) if one[0] == billing.tenant]
    await billing.charges.close_months()
    after = [one for one in await billing.registry.list_unclosed(month) if one[0] == billing.tenant]
    assert before and not after


# Creation of customers


async def test_concurrent_first_requests_use_the_stored_customer(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create_together(*args: Any) -> str:
        await barrier.wait()
        return await create(*args)

    create, barrier = StripePayments.create_customer, asyncio.Barrier(2)
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await tx.store(BillingAccount).add(BillingAccount(created_at=tx.now, updated_at=tx.now))
    monkeypatch.setattr(StripePayments, "create_customer", create_together)
    found = await asyncio.gather(
        *(billing.service.open_account(billing.tenant, CALL) for _ in range(2)), return_exceptions=True
    )
    stored = (await billing.read()).customer
    assert {one.customer for one in found if isinstance(one, BillingAccount)} == {stored}
    assert not [one for one in found if isinstance(one, BaseException)]


async def test_concurrent_first_requests_have_no_conflict(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, barrier = accounts._lock_account, asyncio.Barrier(2)
    waiting = 2

    async def lock_together(tx: Any) -> BillingAccount:
        nonlocal waiting
        if waiting:
            waiting -= 1
            get, tx_store = tx.store(BillingAccount).get, tx.store

            async def get_together(*args: Any, **more: Any) -> Any:
                found = await get(*args, **more)
                if found is None:
                    await barrier.wait()
                return found

            fake = SimpleNamespace(get=get_together, add=tx_store(BillingAccount).add)
            return await lock(SimpleNamespace(store=lambda _: fake, savepoint=tx.savepoint, now=tx.now))
        return await lock(tx)

    monkeypatch.setattr(accounts, "_lock_account", lock_together)
    found = await asyncio.gather(
        *(billing.service.open_account(billing.tenant, CALL) for _ in range(2)), return_exceptions=True
    )
    assert not [one for one in found if isinstance(one, BaseException)]


async def test_a_late_answer_about_a_deleted_customer_does_not_remove_its_successor(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await billing.store_card()
    deleted, fetch = (await billing.read()).customer or "", StripePayments.fetch_account
    both, second_may_end, count = asyncio.Barrier(2), asyncio.Event(), 0

    async def fetch_deleted(self: StripePayments, customer: str, **more: Any) -> Any:
        nonlocal count
        state = await fetch(self, customer, **more)
        if customer != deleted:
            return state
        count += 1
        is_second = count == 2
        await both.wait()
        if is_second:
            await second_may_end.wait()
        return replace(state, subscription=None, card=None, invoices=(), is_deleted=True)

    monkeypatch.setattr(StripePayments, "fetch_account", fetch_deleted)
    reads = [asyncio.create_task(billing.synchronise()) for _ in range(2)]
    await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
    successor = (await billing.service.open_account(billing.tenant, CALL)).customer
    second_may_end.set()
    await asyncio.gather(*reads)
    assert successor != deleted
    assert (await billing.read()).customer == successor


# Notifications about deleted organisations


async def test_a_notification_about_a_deleted_organisation_is_ignored(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    received: list[tuple[bytes, str]] = []
    billing.server.deliver(lambda body, headers: received.append((body, headers["Stripe-Signature"])))
    await billing.synchroniser.receive(*received[-1])
    await billing.erase()
    for one in received:
        await billing.synchroniser.receive(*one)
    assert await run_jobs(billing) == 0
    assert [await billing.count_rows(table) for table in ("billing_accounts", "invoices", "jobs")] == [0, 0, 0]


async def test_a_synchronisation_during_the_deletion_stores_nothing(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    fetch = StripePayments.fetch_account

    async def fetch_late(*args: Any, **more: Any) -> Any:
        state = await fetch(*args, **more)
        await billing.erase()
        return state

    monkeypatch.setattr(StripePayments, "fetch_account", fetch_late)
    await billing.synchronise()
    tables = ("billing_accounts", "invoices", "billed_months", "jobs", "audit_entries")
    assert [await billing.count_rows(table) for table in tables] == [0] * 5


async def test_a_change_during_the_deletion_creates_no_subscription(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await billing.store_card()
    subscribe = StripePayments.subscribe

    async def subscribe_late(*args: Any, **more: Any) -> None:
        await billing.erase()
        await subscribe(*args, **more)

    monkeypatch.setattr(StripePayments, "subscribe", subscribe_late)
    with contextlib.suppress(DomainError):
        await billing.subscribe("metered")
    assert [one["status"] for one in billing.select("subscription")] in ([], ["canceled"])


# Charges for usage, refunds and automatic purchases


async def test_usage_without_a_card_is_invoiced_once_and_the_job_ends(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.use(RECORDS, 1_000)
    [method] = billing.select("payment_method")
    billing.provider.client.payment_methods.detach(method["id"])
    await billing.backend.pass_time(timedelta(days=15))
    errors = []
    for _ in range(3):
        try:
            await billing.close_months()
        except DomainError as error:
            errors.append(repr(error))
        await billing.backend.pass_time(timedelta(minutes=30))
    assert not errors
    assert len([one for one in billing.select("invoice") if one["metadata"]]) == 1


async def test_a_later_price_of_usage_does_not_apply_to_earlier_usage(billing: StripeBilling) -> None:
    """A price that begins on the 29th must not apply to usage and a period before it."""
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.use(RECORDS, 200)
    await billing.set_price("metered", 9_900, datetime(2026, 11, 29, tzinfo=UTC), records=50, sources=2_800)
    await billing.advance(timedelta(days=15))
    await billing.close_months()
    [invoice] = [one for one in billing.select("invoice") if one["metadata"]]
    assert invoice["total"] == 10 * 5


async def test_sources_are_not_charged_after_the_plan_has_ended(billing: StripeBilling) -> None:
    """The period ends on 20 December; 11 sources remain."""
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.use(SOURCES, 11)
    await billing.service.cancel(billing.tenant, CALL)
    for _ in range(45):
        await billing.advance(timedelta(days=1))
        if billing.backend.now().day == 1:
            await billing.use(SOURCES, 11)
    assert (await billing.get_plan())[0] == "free"
    await billing.close_months()
    causes = {one["metadata"]["cause"]: one["total"] for one in billing.select("invoice") if one["metadata"]}
    assert abs(causes["usage-2026-12"] - 2_800 * 20 / 31) < 1


async def test_a_refund_whose_answer_is_lost_is_not_paid_twice(billing: StripeBilling) -> None:
    purchase = await billing.buy_paid()
    billing.server.faults.append(Fault("POST", "/v1/refunds", "timeout_after", 3))
    with pytest.raises(Unavailable):
        await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    await billing.purchases.refund(billing.tenant, CALL, purchase.id, 400)
    assert sum(one["amount"] for one in billing.select("refund")) == 400


async def test_the_31st_is_kept_as_the_day_of_renewal(billing: StripeBilling) -> None:
    await billing.advance(datetime(2027, 1, 31, 12, tzinfo=UTC) - billing.backend.now())
    await billing.store_card()
    await billing.subscribe("metered_plus")
    await billing.subscribe("metered")
    ends = []
    for _ in range(3):
        subscription = (await billing.read()).subscription
        assert subscription is not None
        ends.append(subscription.current_period_end.date().isoformat())
        await billing.advance(subscription.current_period_end - billing.backend.now() + timedelta(hours=2))
    assert ends == ["2027-02-28", "2027-03-31", "2027-04-30"]
    assert (await billing.get_plan())[0] == "metered"


async def test_credit_is_not_bought_twice_after_an_outage_at_midnight(billing: StripeBilling) -> None:
    """A payment succeeds while all answers are lost; the next day begins before the account is synchronised."""
    await billing.store_card()
    await billing.backend.pass_time(datetime(2026, 11, 20, 23, 55, tzinfo=UTC) - billing.backend.now())
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await CreditSettingsService().update(tx, "credits", {"top_up_credits": 600})
        await billing.ledger.process_expiry(tx)
    billing.server.faults.append(Fault("POST", "/pay$", "timeout_after", 3))
    billing.server.faults.append(Fault("GET", "/v1/charges$", "503", 0))
    pay = StripePayments.pay_invoice

    async def pay_then_fail(self: Any, invoice: str) -> None:
        try:
            await pay(self, invoice)
        finally:
            billing.server.faults.append(Fault("GET", "/v1/", "503", 30))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StripePayments, "pay_invoice", pay_then_fail)
        await billing.automatic_purchases.buy_due()
    billing.server.faults.clear()
    await billing.backend.pass_time(timedelta(minutes=10))
    billing.provider.advance(billing.backend.now())
    await billing.automatic_purchases.buy_due()
    assert len(billing.select("charge", paid=True)) == 1


async def delete_customer(billing: StripeBilling, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: StripePayments, customer: str, all_invoices: bool) -> None:
        error: Any = stripe.InvalidRequestError
        raise error("No such customer", "customer", code="resource_missing")

    customer = (await billing.read()).customer or ""
    billing.server.state.objects["customer"][customer] = {"id": customer, "object": "customer", "deleted": True}
    with monkeypatch.context() as patch:
        patch.setattr(StripePayments, "_fetch_account", refuse)
        await billing.synchronise()
    assert (await billing.read()).customer is None


async def test_an_overdue_invoice_of_a_deleted_customer_is_not_overdue(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.store_card(BAD_CARD)
    await billing.advance(timedelta(days=32))
    await delete_customer(billing, monkeypatch)
    async with billing.backend.uow.begin_reading(billing.tenant) as tx:
        assert (await billing.service.get_view(tx, 0)).overdue is None


async def test_usage_of_a_subscription_without_a_card_is_collected_or_refused(billing: StripeBilling) -> None:
    """A coupon of 100% needs no card; use beyond the plan is not refused, and cannot be charged."""
    client = billing.provider.client
    client.coupons.create({"id": "all", "percent_off": 100, "duration": "forever"})
    client.promotion_codes.create({"promotion": {"type": "coupon", "coupon": "all"}, "code": "ALL"})
    await billing.subscribe("metered", promotion_code="ALL")
    assert await billing.get_plan() == ("metered", True)
    await billing.use(RECORDS, 100_000)
    await billing.backend.pass_time(timedelta(days=15))
    billing.provider.advance(billing.backend.now())
    await billing.close_months()
    await billing.synchronise()
    [invoice] = [one for one in await billing.list_invoices() if one.cause is not None]
    assert (invoice.status, invoice.total) == (InvoiceStatus.OPEN, 49_950)


async def test_usage_under_a_larger_plan_of_the_operator_is_not_charged(billing: StripeBilling) -> None:
    """If the plan changed in the month, the plan that includes most applies to the whole month."""
    await billing.backend.offer(builders.plan("trial", meters={RECORDS: MeterAllowance(1_000_000, 10, 5)}))
    async with billing.backend.pool.connect_as_owner() as pooled:
        statement = b"UPDATE organisations SET plan = 'trial' WHERE id = %s"
        await pooled.driver_connection.execute(statement, (billing.tenant.org,))
    await billing.use(RECORDS, 100_000)
    await billing.backend.pass_time(timedelta(days=1))
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.advance(timedelta(days=14))
    await billing.close_months()
    assert [one["total"] for one in billing.select("invoice") if one["metadata"]] == []


async def test_plan_of_the_operator_includes_its_quotas_in_all_currencies(billing: StripeBilling) -> None:
    """The plan trial has no price in euros, in which the organisation is charged."""
    since = billing.backend.now() - timedelta(days=1)
    await billing.set_price("metered", 8_900, since, "eur", records=50, sources=800)
    await billing.backend.offer(builders.plan("trial", meters={RECORDS: MeterAllowance(1_000_000, 10, 5)}))
    async with billing.backend.pool.connect_as_owner() as pooled:
        statement = b"UPDATE organisations SET plan = 'trial' WHERE id = %s"
        await pooled.driver_connection.execute(statement, (billing.tenant.org,))
    await billing.store_card()
    await billing.subscribe("metered", currency="eur")
    await billing.use(RECORDS, 1_000_100)
    await billing.advance(timedelta(days=14))
    await billing.close_months()
    totals = [(one["total"], one["currency"]) for one in billing.select("invoice") if one["metadata"]]
    assert totals == [(10 * 50, "eur")]


async def test_a_failed_downgrade_does_not_undo_a_cancellation(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered_plus")
    await billing.service.cancel(billing.tenant, CALL)
    billing.server.faults.append(Fault("POST", "/v1/subscription_schedules", "503", 9))
    with pytest.raises(Unavailable):
        await billing.subscribe("metered")
    billing.server.faults.clear()
    await billing.advance(timedelta(days=32))
    assert (await billing.get_plan())[0] == "free"


async def test_a_changed_email_address_keeps_all_tax_ids(billing: StripeBilling) -> None:
    await billing.store_card()
    customer = (await billing.read()).customer or ""
    for type_, value in (("eu_vat", "DE123456788"), ("gb_vat", "GB123456782")):
        tax_id: Any = {"type": type_, "value": value}
        billing.provider.client.customers.tax_ids.create(customer, tax_id)
    await billing.service.change_details(billing.tenant, CALL, {"email": "new@fjord.example"})
    assert len(billing.select("tax_id")) == 2


async def test_the_judge_resumes_when_credit_is_paid(billing: StripeBilling) -> None:
    await billing.buy_paid()
    jobs = await billing.backend.dispatch.claim(
        build_lane_name(billing.tenant.org, JUDGING_LANE), 5, timedelta(minutes=1)
    )
    assert [job.kind for job in jobs] == [JUDGING_JOB]


@pytest.mark.parametrize("is_upgraded", [False, True])
async def test_days_before_the_subscription_are_not_charged(billing: StripeBilling, is_upgraded: bool) -> None:
    await billing.advance(datetime(2026, 12, 1, 12, tzinfo=UTC) - billing.backend.now())
    await billing.use(SOURCES, 11)
    await billing.advance(timedelta(days=10))
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.advance(timedelta(days=3))
    if is_upgraded:
        await billing.subscribe("metered_plus")
    await billing.advance(timedelta(days=20))
    await billing.close_months()
    [total] = [one["total"] for one in billing.select("invoice") if one["metadata"]]
    assert total == (2 * 2_800 * 21 + 31) // 62, "a source for 21 of 31 days, rounded half up"


async def test_month_in_which_the_end_of_the_subscription_is_noticed_is_not_charged(billing: StripeBilling) -> None:
    """The period ends an hour before the month does; the provider ends the subscription an hour after that."""
    await billing.advance(datetime(2026, 12, 31, 23, tzinfo=UTC) - billing.backend.now())
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.service.cancel(billing.tenant, CALL)
    await billing.advance(datetime(2027, 1, 31, 22, 59, tzinfo=UTC) - billing.backend.now())
    await billing.backend.pass_time(timedelta(minutes=62))
    await billing.synchronise()
    await billing.use(SOURCES, 11)
    await billing.advance(timedelta(minutes=5))
    await billing.advance(timedelta(days=32))
    await billing.close_months()
    assert (await billing.get_plan())[0] == "free"
    assert [one["total"] for one in billing.select("invoice") if one["metadata"]] == []


async def test_plan_that_is_first_sold_in_the_month_is_charged(billing: StripeBilling) -> None:
    await billing.set_price("metered", 8_900, billing.backend.now() - timedelta(days=1), "eur", records=50, sources=800)
    await billing.store_card()
    await billing.subscribe("metered", currency="eur")
    await billing.use(RECORDS, 200)
    await billing.advance(timedelta(days=15))
    await billing.close_months()
    assert [(one["total"], one["currency"]) for one in billing.select("invoice") if one["metadata"]] == [(500, "eur")]


async def test_preview_of_a_downgrade_states_the_next_price(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered_plus")
    await billing.set_price("metered", 5_000, billing.backend.now() + timedelta(days=5))
    preview = await billing.service.preview(billing.tenant, CALL, SubscriptionRequest("metered"))
    await billing.subscribe("metered")
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert (preview.due_now, preview.next_amount) == (0, 5_000) == (0, subscription.next_price)


async def test_previews_state_the_announced_price_of_the_next_period(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.set_price("metered_plus", 60_000, billing.backend.now() + timedelta(days=5))
    request = SubscriptionRequest("metered_plus")
    first = await billing.service.preview(billing.tenant, CALL, request)
    assert (first.due_now, first.next_amount) == (49_900, 60_000)
    await billing.subscribe("metered")
    upgrade = await billing.service.preview(billing.tenant, CALL, request)
    assert (upgrade.due_now, upgrade.next_amount) == (40_000, 60_000)
    await billing.subscribe("metered_plus")
    subscription = (await billing.read()).subscription
    assert subscription is not None
    assert (subscription.price, subscription.next_price) == (49_900, 60_000)


async def test_the_amount_of_a_payment_is_that_of_the_subscription(billing: StripeBilling) -> None:
    await billing.subscribe("metered")
    await billing.purchases.buy(billing.tenant, CALL, 1_000, "abandoned")
    confirmation = await billing.service.confirm_card(billing.tenant, CALL, "card")
    assert confirmation.amount == Money(9_900, "usd")


async def test_refused_automatic_purchase_is_tried_once_a_day(
    billing: StripeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    async def refuse(*args: Any) -> str:
        attempts.append(args)
        raise Unprocessable("The address is missing.")

    await billing.store_card()
    async with billing.backend.uow.begin(billing.tenant, CALL) as tx:
        await CreditSettingsService().update(tx, "credits", {"top_up_credits": 600})
        await billing.ledger.process_expiry(tx)
    monkeypatch.setattr(StripePayments, "create_invoice", refuse)
    for _ in range(3):
        await billing.automatic_purchases.buy_due()
        await billing.backend.pass_time(timedelta(minutes=10))
    assert len(attempts) == 1


async def test_unpaid_purchases_do_not_end_the_grace_period(billing: StripeBilling) -> None:
    await billing.store_card()
    await billing.subscribe("metered")
    await billing.store_card(BAD_CARD)
    await billing.advance(timedelta(days=32))
    grace_ends_at = (await billing.read()).grace_ends_at
    assert grace_ends_at is not None
    failed = billing.select("invoice", status="open")[0]
    for number in range(101):
        id = f"in_newer{number:03}"
        newer = {**failed, "id": id, "created": failed["created"] + 60 + number, "metadata": {"cause": f"crp_{number}"}}
        billing.server.state.objects["invoice"][id] = {**newer, "parent": None}
    await billing.synchronise()
    assert (await billing.read()).grace_ends_at == grace_ends_at


async def test_all_lines_of_an_invoice_are_stored(billing: StripeBilling) -> None:
    await billing.store_card()
    customer, client = (await billing.read()).customer or "", billing.provider.client
    draft = client.invoices.create({"customer": customer, "currency": "usd"})
    for number in range(12):
        client.invoice_items.create(
            {"customer": customer, "invoice": draft.id, "amount": 100 + number, "currency": "usd"}
        )
    client.invoices.finalize_invoice(draft.id)
    await billing.synchronise()
    [invoice] = await billing.list_invoices()
    assert (len(invoice.lines), sum(line.amount for line in invoice.lines)) == (12, invoice.total)


async def test_metadata_of_other_invoices_do_not_prevent_the_synchronisation(billing: StripeBilling) -> None:
    await billing.store_card()
    customer, client = (await billing.read()).customer or "", billing.provider.client
    draft = client.invoices.create({"customer": customer, "currency": "usd"})
    item: Any = {"customer": customer, "invoice": draft.id, "amount": 100, "currency": "usd"}
    item["metadata"] = {"quantity": "2.5 hours", "meter": "consulting"}
    client.invoice_items.create(item)
    client.invoices.finalize_invoice(draft.id)
    await billing.synchronise()
    [line] = (await billing.list_invoices())[0].lines
    assert (line.quantity, line.meter) == (1, None)
