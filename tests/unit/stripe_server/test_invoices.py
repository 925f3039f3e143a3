"""Invoices, invoice items, discounts, tax, and the equality of previews and charges."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest
import stripe
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stripe_server import StripeServer
from tests.stripe_server.periods import add_intervals, find_period, prorate, round_amount
from tests.unit.stripe_server.accounts import DAY, HOUR, START, Account


def test_an_invoice_of_items_is_created_finalised_and_paid(account: Account, client: stripe.StripeClient) -> None:
    v1 = client.v1
    customer = account.create_customer().id
    first = v1.invoice_items.create(
        {
            "customer": customer,
            "quantity": 3,
            "currency": "eur",
            "price_data": {"currency": "eur", "product": "prod_plan", "unit_amount": 250},
            "description": "Offers",
            "period": {"start": START - DAY, "end": START},
            "metadata": {"month": "1"},
        }
    )
    second = v1.invoice_items.create({"customer": customer, "amount": 99, "currency": "eur", "description": "Fee"})
    v1.invoice_items.delete(second.id)
    invoice = v1.invoices.create(
        {"customer": customer, "auto_advance": False, "pending_invoice_items_behavior": "include",
         "metadata": {"a": "b"}}
    )  # fmt: skip
    assert (invoice.status, invoice.total, invoice.hosted_invoice_url) == ("draft", 750, None)
    v1.invoice_items.create({"customer": customer, "amount": 50, "currency": "eur", "invoice": invoice.id})
    invoice = v1.invoices.finalize_invoice(invoice.id, {"expand": ["confirmation_secret"]})
    assert (invoice.status, invoice.total) == ("open", 800)
    assert invoice.confirmation_secret.client_secret
    line = invoice.lines.data[0]
    assert (line.description, line.quantity, line.period.start) == ("Offers", 3, START - DAY)
    assert line.parent.invoice_item_details.invoice_item == first.id
    assert line.pricing.price_details.product == "prod_plan"
    paid = v1.invoices.pay(invoice.id, {"expand": ["payments"]})
    assert (paid.status, paid.payments.data[0].status) == ("paid", "paid")
    with pytest.raises(stripe.InvalidRequestError):
        v1.invoices.pay(invoice.id)
    (payment,) = v1.invoice_payments.list(
        {"payment": {"type": "payment_intent", "payment_intent": account.find_intent(invoice.id)}}
    ).data
    assert payment.invoice == invoice.id
    listed = v1.invoices.list({"customer": customer, "expand": ["data.payments"]}).data
    assert listed[0].payments.data[0].amount_paid == 800


@pytest.mark.parametrize(("action", "expected"), [("void_invoice", "void"), ("mark_uncollectible", "uncollectible")])
def test_an_open_invoice_is_closed(account: Account, action: str, expected: str) -> None:
    customer = account.create_customer("pm_card_chargeCustomerFail").id
    account.v1.invoice_items.create({"customer": customer, "amount": 99, "currency": "eur"})
    parameters = {"customer": customer, "pending_invoice_items_behavior": "include", "auto_advance": False}
    invoice = account.v1.invoices.create(parameters)
    account.v1.invoices.finalize_invoice(invoice.id)
    with pytest.raises(stripe.CardError):
        account.v1.invoices.pay(invoice.id)
    assert getattr(account.v1.invoices, action)(invoice.id).status == expected
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.invoices.mark_uncollectible(invoice.id)


def test_a_promotion_code_reduces_invoices(account: Account, server: StripeServer) -> None:
    v1 = account.v1
    v1.coupons.create({"id": "half", "percent_off": 50, "duration": "repeating", "duration_in_months": 2})
    code = v1.promotion_codes.create(
        {"promotion": {"type": "coupon", "coupon": "half"}, "code": "HALF", "max_redemptions": 1}
    )
    assert v1.promotion_codes.list({"code": "half"}).data[0].id == code.id
    discounts = [{"promotion_code": code.id}]
    subscription = account.subscribe(1000, discounts=discounts, expand=["latest_invoice", "discounts"])
    assert subscription.discounts[0].source.coupon == "half"
    assert subscription.discounts[0].promotion_code == code.id
    assert subscription.latest_invoice.total == 500
    assert subscription.latest_invoice.total_discount_amounts[0].amount == 500
    with pytest.raises(stripe.InvalidRequestError):
        account.subscribe(1000, discounts=discounts)
    server.advance(START + 100 * DAY)
    totals = [each.total for each in v1.invoices.list({"customer": subscription.customer}).data]
    assert totals == [1000, 1000, 500, 500]
    assert v1.subscriptions.retrieve(subscription.id).discounts == []


def test_unusable_promotion_codes_are_refused(account: Account, server: StripeServer) -> None:
    v1 = account.v1
    v1.coupons.create({"id": "half", "percent_off": 50, "duration": "once"})
    fields = {"promotion": {"type": "coupon", "coupon": "half"}}
    inactive = v1.promotion_codes.create(fields | {"active": False})
    expired = v1.promotion_codes.create(fields | {"expires_at": server.now})
    later = v1.promotion_codes.create(fields)
    v1.promotion_codes.update(later.id, {"active": False})
    customer = account.create_customer().id
    for code in (inactive, expired, later):
        with pytest.raises(stripe.InvalidRequestError):
            account.subscribe(customer=customer, discounts=[{"promotion_code": code.id}])
    assert v1.coupons.retrieve("half").times_redeemed == 0


def test_a_preview_names_details_without_an_implementation(account: Account) -> None:
    subscription = account.subscribe()
    with pytest.raises(stripe.InvalidRequestError, match="does not support trial_end"):
        account.v1.invoices.create_preview(
            {"subscription": subscription.id, "subscription_details": {"trial_end": "now"}}
        )
    account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    with pytest.raises(stripe.InvalidRequestError) as caught:
        account.v1.invoices.create_preview({"subscription": subscription.id})
    assert caught.value.code == "invoice_upcoming_none"


def test_a_coupon_of_an_amount_reduces_one_invoice(account: Account, server: StripeServer) -> None:
    account.v1.coupons.create({"id": "off", "amount_off": 300, "currency": "eur", "duration": "once"})
    subscription = account.subscribe(1000, discounts=[{"coupon": "off"}])
    server.advance(START + 29 * DAY)
    totals = [each.total for each in account.v1.invoices.list({"customer": subscription.customer}).data]
    assert totals == [1000, 700]


def test_a_discount_reduces_prorations(account: Account, server: StripeServer) -> None:
    account.v1.coupons.create({"id": "fifth", "percent_off": 20, "duration": "forever"})
    subscription = account.subscribe(2800, discounts=[{"coupon": "fifth"}])
    server.advance(START + 14 * DAY)
    changed = account.change(subscription, 5600, proration_behavior="always_invoice", expand=["latest_invoice"])
    assert [line.amount for line in changed.latest_invoice.lines.data] == [-1120, 2240]


@pytest.mark.parametrize(
    ("country", "vat", "expected", "reason"),
    [
        ("DE", None, 190, "standard_rated"),
        ("DE", "DE123456789", 190, "standard_rated"),
        ("AT", None, 200, "standard_rated"),
        ("AT", "ATU12345678", 0, "reverse_charge"),
        ("US", None, 0, "not_collecting"),
    ],
)
def test_automatic_tax(account: Account, server: StripeServer, country, vat, expected, reason) -> None:
    server.tax_rates.update({"DE": 19, "AT": 20})
    customer = account.create_customer(address={"country": country}).id
    if vat:
        account.v1.customers.tax_ids.create(customer, {"type": "eu_vat", "value": vat})
    subscription = account.subscribe(
        1000, customer=customer, automatic_tax={"enabled": True}, expand=["latest_invoice"]
    )
    invoice = subscription.latest_invoice
    assert (invoice.total, invoice.total_excluding_tax) == (1000 + expected, 1000)
    assert (invoice.total_taxes[0].amount, invoice.total_taxes[0].taxability_reason) == (expected, reason)


def test_automatic_tax_requires_a_country(account: Account) -> None:
    with pytest.raises(stripe.InvalidRequestError) as caught:
        account.subscribe(automatic_tax={"enabled": True})
    assert caught.value.code == "customer_tax_location_invalid"


def test_a_preview_of_a_new_subscription_changes_nothing(account: Account) -> None:
    customer = account.create_customer(None).id
    before = len(account.list_event_types())
    preview = account.v1.invoices.create_preview(
        {"customer": customer, "subscription_details": {"items": [{"price_data": account.build_price(1200)}]}}
    )
    assert (preview.amount_due, preview.status) == (1200, "draft")
    assert account.v1.subscriptions.list({"customer": customer, "status": "all"}).data == []
    assert len(account.list_event_types()) == before


AMOUNTS = st.integers(0, 500_000)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    start=st.datetimes(datetime(2023, 1, 1), datetime(2029, 1, 1)),
    elapsed=st.floats(0, 0.999),
    old=AMOUNTS,
    new=AMOUNTS,
    intervals=st.tuples(*[st.sampled_from(["month", "year"])] * 2),
    currency=st.sampled_from(["eur", "usd", "jpy"]),
    percent=st.sampled_from([None, 33.3, 10]),
    rate=st.sampled_from([0, 19, 7.7]),
)
def test_a_preview_equals_the_charge(start, elapsed, old, new, intervals, currency, percent, rate) -> None:
    server = StripeServer(start=int(start.replace(tzinfo=UTC).timestamp()))
    server.tax_rates["DE"] = rate
    account = Account(server)
    fields = {}
    if percent:
        account.v1.coupons.create({"id": "c", "percent_off": percent, "duration": "forever"})
        fields["discounts"] = [{"coupon": "c"}]
    subscription = account.subscribe(
        old, intervals[0], currency, customer=account.create_customer(address={"country": "DE"}).id,
        automatic_tax={"enabled": True}, **fields,
    )  # fmt: skip
    item = subscription["items"].data[0]
    length = item.current_period_end - item.current_period_start
    at = item.current_period_start + int(elapsed * length)
    server.advance(at)
    change = account.build_change(
        subscription, new, intervals[1], proration_behavior="always_invoice", proration_date=at
    )
    preview = account.v1.invoices.create_preview({"subscription": subscription.id, "subscription_details": change})
    changed = account.v1.subscriptions.update(subscription.id, {**change, "expand": ["latest_invoice"]})
    charged = changed.latest_invoice
    if changed.latest_invoice.id != subscription.latest_invoice:
        for name in ("subtotal", "total", "amount_due", "starting_balance", "total_excluding_tax"):
            assert preview[name] == charged[name], name
        assert [(line.amount, line.description, line.period.start, line.period.end) for line in preview.lines.data] == [
            (line.amount, line.description, line.period.start, line.period.end) for line in charged.lines.data
        ]
        left = item.current_period_end - at
        amounts = [line.amount for line in charged.lines.data if line.parent.subscription_item_details.proration]
        nets = [price - round_amount(Fraction(str(percent or 0)) * price / 100) for price in (old, new)]
        shares = [round_amount(Fraction(net * left, length)) for net in nets]
        debits = shares[1:] if intervals[0] == intervals[1] else []
        if new > old == 0:  # a paid price after a free one starts a new period
            debits = []
        assert amounts == ([-shares[0], *debits] if old else debits)
        balance = account.v1.customers.retrieve(subscription.customer).balance
        assert charged.amount_paid == max(0, charged.total)
        assert balance == min(0, charged.total)
    server.assert_valid()


@given(
    start=st.datetimes(datetime(2023, 1, 1), datetime(2029, 1, 1)),
    amounts=st.tuples(AMOUNTS, AMOUNTS),
    share=st.floats(0, 1),
)
def test_parts_of_a_proration_are_complete(start, amounts, share) -> None:
    begin = int(start.replace(tzinfo=UTC).timestamp())
    begin, end = find_period(begin, "month", 1, begin)
    at = begin + int(share * (end - begin))
    amount, other = amounts
    assert prorate(amount, begin, end, begin) == amount
    assert prorate(amount, begin, end, end) == 0
    low, high = sorted((amount, other))
    assert prorate(low, begin, end, at) <= prorate(high, begin, end, at)
    assert abs(prorate(amount, begin, end, at) + amount * (at - begin) / (end - begin) - amount) <= 0.51


def date(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def test_months_end_on_the_last_day() -> None:
    assert [date(add_intervals(START, "month", count)) for count in range(1, 5)] == [
        "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31",
    ]  # fmt: skip
    leap = int(datetime(2024, 2, 29, tzinfo=UTC).timestamp())
    assert [date(add_intervals(leap, "year", count)) for count in (1, 2, 3, 4)] == [
        "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29",
    ]  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(st.datetimes(datetime(2023, 1, 1), datetime(2029, 1, 1)), st.sampled_from(["month", "year"]))
def test_renewals_keep_the_day(start, interval) -> None:
    begin = int(start.replace(tzinfo=UTC).timestamp())
    server = StripeServer(start=begin)
    account = Account(server)
    subscription = account.subscribe(1000, interval)
    ends = [add_intervals(begin, interval, count) for count in range(1, 5)]
    for end in ends:
        assert subscription["items"].data[0].current_period_end == end
        server.advance(end + HOUR)
        subscription = account.v1.subscriptions.retrieve(subscription.id)
    invoices = account.v1.invoices.list({"customer": subscription.customer}).data
    assert [each.created for each in invoices] == [*ends[::-1], begin]
    assert {each.status for each in invoices} == {"paid"}
    server.assert_valid()
