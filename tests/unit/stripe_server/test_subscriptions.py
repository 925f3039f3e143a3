"""Subscriptions, renewals, failed payments, schedules and test clocks."""

import pytest
import stripe

from tests.stripe_server import StripeServer
from tests.unit.stripe_server.accounts import DAY, HOUR, START, Account


def status(account: Account, subscription: stripe.Subscription) -> str:
    return account.v1.subscriptions.retrieve(subscription.id).status


def fail_payments(account: Account, customer: str, card: str = "pm_card_chargeCustomerFail") -> None:
    method = account.v1.payment_methods.attach(card, {"customer": customer})
    account.v1.customers.update(customer, {"invoice_settings": {"default_payment_method": method.id}})


def period_end(subscription: stripe.Subscription) -> int:
    return subscription["items"].data[0].current_period_end


@pytest.mark.parametrize(
    ("behavior", "card", "expected"),
    [
        ("allow_incomplete", "pm_card_visa", "active"),
        ("allow_incomplete", "pm_card_chargeCustomerFail", "incomplete"),
        ("allow_incomplete", "pm_card_authenticationRequired", "incomplete"),
        ("default_incomplete", "pm_card_visa", "incomplete"),
        ("error_if_incomplete", "pm_card_visa", "active"),
        ("error_if_incomplete", "pm_card_chargeCustomerFail", None),
        ("error_if_incomplete", "pm_card_authenticationRequired", None),
    ],
)
def test_the_payment_behaviour_of_a_new_subscription(account: Account, behavior, card, expected) -> None:
    customer = account.create_customer(card).id
    if expected is None:
        with pytest.raises(stripe.CardError) as caught:
            account.subscribe(customer=customer, payment_behavior=behavior, off_session=True)
        assert caught.value.http_status == 402
        assert account.v1.subscriptions.list({"customer": customer, "status": "all"}).data == []
    else:
        assert account.subscribe(customer=customer, payment_behavior=behavior).status == expected


def test_a_subscription_without_a_card_is_refused(account: Account) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="no attached payment source"):
        account.subscribe(customer=account.create_customer(None).id)


def test_an_incomplete_subscription_expires(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(customer=account.create_customer(None).id, payment_behavior="default_incomplete")
    server.advance(START + 23 * HOUR - 1)
    assert status(account, subscription) == "incomplete"
    server.advance(START + 23 * HOUR)
    assert status(account, subscription) == "incomplete_expired"
    assert account.v1.invoices.retrieve(subscription.latest_invoice).status == "void"
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.subscriptions.update(subscription.id, {"metadata": {"a": "b"}})


def test_a_renewal_is_a_draft_for_an_hour(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe()
    end = period_end(subscription)
    server.advance(end)
    (draft, _) = account.v1.invoices.list({"customer": subscription.customer}).data
    assert (draft.status, draft.billing_reason, draft.number) == ("draft", "subscription_cycle", None)
    assert (draft.period_start, draft.period_end) == (START, end)
    server.advance(end + HOUR)
    paid = account.v1.invoices.retrieve(draft.id)
    assert (paid.status, paid.total) == ("paid", 1000)
    assert paid.number.endswith("-0002")
    assert [
        each.id for each in account.v1.invoices.list({"subscription": subscription.id, "created": {"gte": end}}).data
    ] == [paid.id]
    assert paid.hosted_invoice_url
    assert paid.invoice_pdf
    line = paid.lines.data[0]
    assert (line.period.start, line.period.end) == (end, START + 59 * DAY)
    assert line.parent.subscription_item_details.proration is False
    assert paid.parent.subscription_details.subscription == subscription.id


def test_failed_payments_are_retried_and_end_the_subscription(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe()
    fail_payments(account, subscription.customer)
    first = period_end(subscription) + HOUR
    server.advance(first)
    assert status(account, subscription) == "past_due"
    for day in (3, 5):
        server.advance(first + day * DAY)
        assert status(account, subscription) == "past_due"
    server.advance(first + 7 * DAY)
    assert status(account, subscription) == "canceled"
    invoice = account.v1.invoices.list({"customer": subscription.customer}).data[0]
    assert (invoice.status, invoice.attempt_count, invoice.next_payment_attempt) == ("open", 4, None)
    assert account.list_event_types().count("invoice.payment_failed") == 4
    assert account.list_event_types().count("customer.subscription.deleted") == 1


def test_a_later_payment_ends_the_delay(account: Account, server: StripeServer) -> None:
    server.state.final_status = "unpaid"
    subscription = account.subscribe()
    fail_payments(account, subscription.customer)
    server.advance(period_end(subscription) + HOUR + 7 * DAY)
    assert status(account, subscription) == "unpaid"
    id = account.v1.subscriptions.retrieve(subscription.id).latest_invoice
    with pytest.raises(stripe.CardError) as caught:
        account.v1.invoices.pay(id)
    assert (caught.value.code, caught.value.error.decline_code) == ("card_declined", "generic_decline")
    account.v1.invoices.pay(id, {"payment_method": "pm_card_visa"})
    assert status(account, subscription) == "active"


def test_a_renewal_requires_authentication(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe()
    fail_payments(account, subscription.customer, "pm_card_authenticationRequired")
    server.advance(period_end(subscription) + HOUR)
    assert status(account, subscription) == "past_due"
    assert "invoice.payment_action_required" in account.list_event_types()
    id = account.find_intent(account.v1.subscriptions.retrieve(subscription.id).latest_invoice)
    intent = account.v1.payment_intents.retrieve(id)
    assert (intent.status, intent.last_payment_error.code) == ("requires_action", "authentication_required")
    server.complete_authentication(id)
    assert status(account, subscription) == "active"


def test_a_subscription_ends_with_its_period(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe()
    updated = account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    assert updated.cancel_at == period_end(subscription)
    account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": False})
    account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    server.advance(period_end(subscription))
    found = account.v1.subscriptions.retrieve(subscription.id)
    assert (found.status, found.ended_at) == ("canceled", period_end(subscription))
    assert len(account.v1.invoices.list({"customer": subscription.customer}).data) == 1
    assert account.v1.subscriptions.list({"customer": subscription.customer}).data == []
    assert len(account.v1.subscriptions.list({"customer": subscription.customer, "status": "all"}).data) == 1


def test_pending_prorations_are_charged_at_the_end(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(1000)
    server.advance(START + 14 * DAY)
    account.change(subscription, 3000, proration_behavior="create_prorations")
    account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    server.advance(period_end(subscription) + HOUR)
    invoice = account.v1.invoices.list({"customer": subscription.customer}).data[0]
    assert (invoice.total, invoice.status, status(account, subscription)) == (1000, "paid", "canceled")


def test_a_free_subscription_is_active_at_once(account: Account) -> None:
    customer = account.create_customer(None).id
    subscription = account.subscribe(0, customer=customer, payment_behavior="default_incomplete")
    assert subscription.status == "active"


def test_a_subscription_is_cancelled_at_once(account: Account, client: stripe.StripeClient) -> None:
    subscription = account.subscribe()
    assert client.v1.subscriptions.cancel(subscription.id).status == "canceled"
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.subscriptions.cancel(subscription.id)


def test_a_failed_change_leaves_no_trace(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe()
    fail_payments(account, subscription.customer)
    server.advance(START + 10 * DAY)
    before, events = account.v1.subscriptions.retrieve(subscription.id).to_dict(), len(account.list_event_types())
    with pytest.raises(stripe.CardError) as caught:
        account.change(subscription, 5000, proration_behavior="always_invoice", payment_behavior="error_if_incomplete")
    assert caught.value.code == "card_declined"
    assert account.v1.subscriptions.retrieve(subscription.id).to_dict() == before
    assert len(account.v1.invoices.list({"customer": subscription.customer}).data) == 1
    assert account.v1.invoice_items.list({"customer": subscription.customer}).data == []
    assert len(account.list_event_types()) == events


def test_pending_prorations_are_on_the_next_invoice(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(3000)
    server.advance(START + 14 * DAY)
    account.change(subscription, 6000)
    pending = account.v1.invoice_items.list({"customer": subscription.customer, "pending": True}).data
    assert [each.amount for each in pending] == [3000, -1500]
    assert pending[0].proration
    preview = account.v1.invoices.create_preview({"subscription": subscription.id})
    assert preview.total == 7500
    server.advance(period_end(subscription) + HOUR)
    assert account.v1.invoices.list({"customer": subscription.customer}).data[0].total == 7500


def test_a_change_without_proration_is_free_until_the_renewal(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(1000)
    account.change(subscription, 9000, proration_behavior="none")
    assert len(account.v1.invoices.list({"customer": subscription.customer}).data) == 1
    server.advance(period_end(subscription) + HOUR)
    assert account.v1.invoices.list({"customer": subscription.customer}).data[0].total == 9000


def test_a_change_of_the_interval_starts_a_new_period(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(2800)
    server.advance(START + 14 * DAY)
    changed = account.change(subscription, 30000, "year", expand=["latest_invoice"])
    assert changed.billing_cycle_anchor == server.now
    assert period_end(changed) == server.now + 365 * DAY
    assert changed.latest_invoice.total == 30000 - 1400


def test_a_credit_is_used_by_the_next_invoices(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(5600)
    server.advance(START + 14 * DAY)
    changed = account.change(subscription, 400, proration_behavior="always_invoice", expand=["latest_invoice"])
    invoice = changed.latest_invoice
    assert (invoice.total, invoice.amount_due, invoice.status) == (-2600, 0, "paid")
    assert account.v1.customers.retrieve(subscription.customer).balance == -2600
    server.advance(period_end(changed) + HOUR)
    renewal = account.v1.invoices.list({"customer": subscription.customer}).data[0]
    assert (renewal.total, renewal.amount_due, renewal.starting_balance, renewal.ending_balance) == (
        400, 0, -2600, -2200,
    )  # fmt: skip
    assert account.v1.customers.retrieve(subscription.customer).balance == -2200


def test_a_later_anchor_prorates_the_first_invoice(account: Account) -> None:
    subscription = account.subscribe(3100, billing_cycle_anchor=START + 14 * DAY, expand=["latest_invoice"])
    assert period_end(subscription) == START + 14 * DAY
    assert subscription.latest_invoice.total == 1400


def test_one_currency_per_customer(account: Account) -> None:
    subscription = account.subscribe()
    with pytest.raises(stripe.InvalidRequestError, match="combine currencies"):
        account.subscribe(currency="usd", customer=subscription.customer)
    account.v1.subscriptions.cancel(subscription.id)
    assert account.subscribe(currency="usd", customer=subscription.customer).currency == "usd"


def test_a_schedule_changes_the_price_at_the_end_of_the_period(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(5000, metadata={"plan": "large"})
    end = period_end(subscription)
    schedules = account.v1.subscription_schedules
    schedule = schedules.create({"from_subscription": subscription.id})
    phase = schedule.phases[0]
    schedule = schedules.update(
        schedule.id,
        {
            "end_behavior": "release",
            "metadata": {"job": "1"},
            "phases": [
                {"items": [{"price": phase["items"][0].price}], "start_date": phase.start_date, "end_date": end},
                {
                    "items": [{"price_data": account.build_price(1000)}],
                    "proration_behavior": "none",
                    "duration": {"interval": "month", "interval_count": 1},
                    "metadata": {"plan": "small"},
                },
            ],
        },
    )
    assert schedule.current_phase.end_date == end
    assert account.v1.subscriptions.retrieve(subscription.id).schedule == schedule.id
    with pytest.raises(stripe.InvalidRequestError, match="managed by the subscription schedule"):
        account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    server.advance(end + HOUR)
    found = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert found["items"].data[0].price.unit_amount == 1000
    assert (found.latest_invoice.total, found.metadata["plan"]) == (1000, "small")
    server.advance(period_end(found) + HOUR)
    assert schedules.retrieve(schedule.id).status == "released"
    found = account.v1.subscriptions.retrieve(subscription.id)
    assert (found.schedule, found.status) == (None, "active")
    assert {"subscription_schedule.created", "subscription_schedule.updated", "subscription_schedule.released"} <= set(
        account.list_event_types()
    )


def test_a_phase_can_change_the_interval_and_the_number_of_items(account: Account, server: StripeServer) -> None:
    account.v1.coupons.create({"id": "tenth", "percent_off": 10, "duration": "forever"})
    subscription = account.subscribe(1000)
    schedules = account.v1.subscription_schedules
    schedule = schedules.create({"from_subscription": subscription.id})
    phase = schedule.phases[0]
    items = [{"price_data": account.build_price(amount, "year")} for amount in (5000, 2000)]
    first = {"items": [{"price": phase["items"][0].price}], "start_date": phase.start_date, "end_date": phase.end_date}
    second = {"items": items, "discounts": [{"coupon": "tenth"}], "proration_behavior": "none"}
    schedules.update(schedule.id, {"phases": [first, second]})
    server.advance(phase.end_date + HOUR)
    found = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert found.latest_invoice.total == 6300
    assert [each.current_period_end for each in found["items"].data] == [phase.end_date + 365 * DAY] * 2
    assert found.billing_cycle_anchor == phase.end_date


def test_a_schedule_is_released_or_cancelled(account: Account) -> None:
    subscription = account.subscribe()
    schedules = account.v1.subscription_schedules
    first = schedules.create({"from_subscription": subscription.id})
    with pytest.raises(stripe.InvalidRequestError):
        schedules.create({"from_subscription": subscription.id})
    released = schedules.release(first.id)
    assert (released.status, released.released_subscription) == ("released", subscription.id)
    second = schedules.create({"from_subscription": subscription.id})
    account.change(subscription, 7000, proration_behavior="none")
    price = account.v1.prices.retrieve(schedules.retrieve(second.id).phases[0]["items"][0].price)
    assert price.unit_amount == 7000
    assert schedules.cancel(second.id).status == "canceled"
    assert status(account, subscription) == "canceled"


def test_a_current_phase_is_replaced_at_once(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(1000)
    server.advance(START + 14 * DAY)
    schedules = account.v1.subscription_schedules
    schedule = schedules.create({"from_subscription": subscription.id})
    start, end = schedule.phases[0].start_date, schedule.phases[0].end_date
    phase = {"items": [{"price_data": account.build_price(3000)}], "start_date": start, "end_date": end}
    schedules.update(schedule.id, {"phases": [phase], "proration_behavior": "always_invoice"})
    invoice = account.v1.invoices.list({"customer": subscription.customer}).data[0]
    assert (invoice.billing_reason, invoice.total) == ("subscription_update", 1000)
    with pytest.raises(stripe.InvalidRequestError, match="start date"):
        schedules.update(schedule.id, {"phases": [phase | {"start_date": start + 1}]})


def test_a_test_clock_advances_two_intervals(account: Account, server: StripeServer) -> None:
    clocks = account.v1.test_helpers.test_clocks
    clock = clocks.create({"frozen_time": START + DAY, "name": "clock"})
    assert server.now == START + DAY
    subscription = account.subscribe(customer=account.create_customer(test_clock=clock.id).id)
    with pytest.raises(stripe.InvalidRequestError, match="two intervals"):
        clocks.advance(clock.id, {"frozen_time": START + 100 * DAY})
    advanced = clocks.advance(clock.id, {"frozen_time": START + 35 * DAY})
    assert advanced.status == "advancing"
    assert clocks.retrieve(clock.id).status == "ready"
    assert len(account.v1.invoices.list({"customer": subscription.customer}).data) == 2
    assert len(account.v1.customers.list({"test_clock": clock.id}).data) == 1
