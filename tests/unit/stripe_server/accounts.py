"""Account with a product, for tests of the server."""

from typing import Any

import stripe

from tests.stripe_server import InProcessClient, StripeServer

START = 1_769_860_800  # 2026-01-31 12:00
DAY = 86_400
HOUR = 3_600


class Account:
    """Calls of the SDK that most tests need."""

    def __init__(self, server: StripeServer, retries: int = 0) -> None:
        self.server = server
        self.client = stripe.StripeClient(server.key, http_client=InProcessClient(server), max_network_retries=retries)
        self.v1 = self.client.v1
        self.v1.products.create({"id": "prod_plan", "name": "Plan"})

    def build_price(self, amount: int, interval: str = "month", currency: str = "eur") -> Any:
        return {
            "currency": currency,
            "product": "prod_plan",
            "unit_amount": amount,
            "recurring": {"interval": interval},
        }

    def create_customer(self, card: str | None = "pm_card_visa", **fields: Any) -> Any:
        customer = self.v1.customers.create({"name": "Ada", "email": "ada@example.com", **fields})
        if card is not None:
            method = self.v1.payment_methods.attach(card, {"customer": customer.id})
            self.v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": method.id}})
        return customer

    def subscribe(self, amount: int = 1000, interval: str = "month", currency: str = "eur", **fields: Any) -> Any:
        customer = fields.pop("customer", None) or self.create_customer().id
        items = [{"price_data": self.build_price(amount, interval, currency)}]
        return self.v1.subscriptions.create({"customer": customer, "items": items, **fields})

    def change(self, subscription: Any, amount: int, interval: str = "month", **fields: Any) -> Any:
        return self.v1.subscriptions.update(
            subscription.id, self.build_change(subscription, amount, interval, **fields)
        )

    def build_change(self, subscription: Any, amount: int, interval: str = "month", **fields: Any) -> Any:
        price = self.build_price(amount, interval, subscription.currency)
        return {"items": [{"id": subscription["items"].data[0].id, "price_data": price}], **fields}

    def find_intent(self, invoice: str) -> str:
        payments = self.v1.invoice_payments.list({"invoice": invoice})
        return payments.data[0].payment.payment_intent

    def list_event_types(self) -> list[str]:
        return [each["type"] for each in self.server.state.events]
