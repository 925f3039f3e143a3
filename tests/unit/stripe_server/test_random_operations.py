"""Random operations keep every answer valid and the sums consistent."""

import random

import pytest
import stripe

from tests.stripe_server import Fault, StripeServer
from tests.unit.stripe_server.accounts import DAY, START, Account

CARDS = ["pm_card_visa", "pm_card_visa", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired"]
PRORATIONS = ["none", "create_prorations", "always_invoice"]


class RandomCustomer:
    """Customer whose subscription changes at random."""

    def __init__(self, account: Account, rng: random.Random) -> None:
        self.account, self.rng, self.v1 = account, rng, account.v1
        self.id = account.create_customer(address={"country": "DE"}).id
        self.operations = [
            self.subscribe, self.change, self.set_card, self.cancel, self.advance, self.advance, self.schedule,
            self.pay, self.refund, self.authenticate, self.add_item, self.set_cancellation, self.break_connection,
        ]  # fmt: skip

    def find_subscription(self) -> stripe.Subscription:
        found = self.v1.subscriptions.list({"customer": self.id}).data
        return found[0] if found else self.subscribe()

    def choose_price(self) -> dict:
        price = self.account.build_price(self.rng.choice([0, 999, 5000, 20000]), self.rng.choice(["month", "year"]))
        return {"price_data": price}

    def subscribe(self) -> stripe.Subscription:
        behavior = self.rng.choice(["default_incomplete", "allow_incomplete", "error_if_incomplete"])
        discounts = [{"coupon": self.rng.choice(["once", "tenth"])}] if self.rng.random() < 0.5 else []
        return self.v1.subscriptions.create(
            {"customer": self.id, "items": [self.choose_price()], "payment_behavior": behavior,
             "discounts": discounts, "automatic_tax": {"enabled": self.rng.random() < 0.5}}
        )  # fmt: skip

    def change(self) -> None:
        subscription = self.find_subscription()
        item = {"id": subscription["items"].data[0].id} | self.choose_price()
        behavior = self.rng.choice(["allow_incomplete", "error_if_incomplete", "default_incomplete"])
        change = {"items": [item], "proration_behavior": self.rng.choice(PRORATIONS)}
        preview = self.v1.invoices.create_preview({"subscription": subscription.id, "subscription_details": change})
        updated = self.v1.subscriptions.update(
            subscription.id, change | {"payment_behavior": behavior, "expand": ["latest_invoice"]}
        )
        if updated.latest_invoice.id != subscription.latest_invoice:
            assert preview.total == updated.latest_invoice.total

    def set_card(self) -> None:
        method = self.v1.payment_methods.attach(self.rng.choice(CARDS), {"customer": self.id})
        self.v1.customers.update(self.id, {"invoice_settings": {"default_payment_method": method.id}})

    def cancel(self) -> None:
        if self.rng.random() < 0.3:
            prorate = self.rng.random() < 0.5
            self.v1.subscriptions.cancel(self.find_subscription().id, {"invoice_now": prorate, "prorate": prorate})

    def set_cancellation(self) -> None:
        change = {"cancel_at_period_end": self.rng.random() < 0.5}
        self.v1.subscriptions.update(self.find_subscription().id, change)

    def advance(self) -> None:
        self.account.server.advance(self.account.server.now + self.rng.randrange(40 * DAY))

    def schedule(self) -> None:
        subscription = self.find_subscription()
        if subscription.schedule:
            if self.rng.random() < 0.5:
                self.v1.subscription_schedules.release(subscription.schedule)
            return
        schedule = self.v1.subscription_schedules.create({"from_subscription": subscription.id})
        phase = schedule.phases[0]
        items = [{"price": each.price, "quantity": each.quantity} for each in phase["items"]]
        first = {"items": items, "start_date": phase.start_date, "end_date": phase.end_date}
        second = {"items": [self.choose_price()], "proration_behavior": self.rng.choice(PRORATIONS)}
        self.v1.subscription_schedules.update(schedule.id, {"phases": [first, second]})

    def pay(self) -> None:
        for invoice in self.v1.invoices.list({"customer": self.id, "status": "open"}).data:
            self.v1.invoices.pay(invoice.id, {"payment_method": "pm_card_visa"})

    def refund(self) -> None:
        for charge in self.v1.charges.list({"customer": self.id}).data[:1]:
            self.v1.refunds.create({"charge": charge.id, "amount": self.rng.randrange(1, 2000)})

    def authenticate(self) -> None:
        for intent in self.v1.payment_intents.list({"customer": self.id}).data:
            if intent.status == "requires_action":
                self.account.server.complete_authentication(intent.id, is_successful=self.rng.random() < 0.7)

    def add_item(self) -> None:
        self.v1.invoice_items.create({"customer": self.id, "amount": self.rng.randrange(-500, 900), "currency": "eur"})

    def break_connection(self) -> None:
        self.account.server.faults.append(Fault("*", ".", self.rng.choice(["cut_after", "500", "429", "timeout"])))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_operations(server: StripeServer, account: Account, seed: int) -> None:
    rng = random.Random(seed)
    server.tax_rates["DE"] = 19
    account.v1.coupons.create({"id": "once", "amount_off": 700, "currency": "eur", "duration": "once"})
    account.v1.coupons.create({"id": "tenth", "percent_off": 10, "duration": "forever"})
    customers = [RandomCustomer(account, rng) for _ in range(3)]
    done = 0
    for _ in range(100):
        try:
            rng.choice(rng.choice(customers).operations)()
            done += 1
        except stripe.StripeError:
            pass
        server.assert_valid()
    assert done > 50
    assert server.now > START
    state = server.state
    for customer in state.select("customer"):
        fields = {"customer": customer["id"]}
        charged = sum(each["amount"] for each in state.select("charge", paid=True, **fields))
        paid = sum(each["amount_paid"] for each in state.select("invoice", **fields))
        assert charged == paid
        finalised = [
            each for each in state.select("invoice", **fields) if each["status_transitions"]["finalized_at"]
        ]  # fmt: skip
        assert customer["balance"] == sum(each["total"] - each["amount_due"] for each in finalised)
        refunded = sum(each["amount_refunded"] for each in state.select("charge", **fields))
        ids = {each["id"] for each in state.select("charge", **fields)}
        assert refunded == sum(each["amount"] for each in state.select("refund") if each["charge"] in ids)
        for subscription in state.select("subscription", **fields):
            if subscription["status"] not in ("canceled", "incomplete_expired", "incomplete"):
                assert subscription["items"]["data"][0]["current_period_end"] > server.now
