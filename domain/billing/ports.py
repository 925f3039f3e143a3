"""Ports of billing: the payment provider, and billing accounts of all tenants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from domain.billing.model import (
    BillingAccount,
    BillingDetails,
    ChangePreview,
    Invoice,
    InvoiceLine,
    PlanPrice,
    PlanSubscription,
    PricedPlan,
    ProviderAccount,
)
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class NewInvoice:
    """Invoice to create.

    Attributes:
        cause: ID of the purchase or the month that the invoice is for. The provider has at most one invoice with it.
        is_charged: Whether the provider charges the card by itself, instead of a payment that the customer confirms.
    """

    cause: str
    currency: str
    lines: Sequence[InvoiceLine]
    is_charged: bool


@dataclass(frozen=True, slots=True)
class ProviderEvent:
    """Notification of the payment provider about a change of a customer; `customer` is None for other changes."""

    id: str
    customer: str | None


class InvalidSignature(Exception):
    """The signature of a notification is invalid or too old."""


class Payments(Protocol):
    """Payment provider.

    A change with an idempotency key (`key`) takes effect once, even if it is repeated. All methods raise Unavailable if
    the provider cannot be reached or refuses the service's credentials.
    """

    @property
    def publishable_key(self) -> str:
        """Key with which the browser talks to the provider."""
        ...

    @property
    def is_live(self) -> bool:
        """True if real money is moved."""
        ...

    async def create_customer(self, org: str, name: str, key: str) -> str:
        """Create a customer for the organisation; return the customer's ID."""
        ...

    async def delete_customer(self, customer: str) -> None:
        """Delete the customer with the card, and cancel the subscription immediately; invoices remain."""
        ...

    async def save_details(self, customer: str, details: BillingDetails, *, changes_tax_id: bool) -> None:
        """Replace name, email address and address, and with `changes_tax_id` the tax IDs.

        Raises Unprocessable if the provider refuses a value.
        """
        ...

    async def fetch_account(self, customer: str, *, all_invoices: bool = False) -> ProviderAccount:
        """Return the state of the customer, who may be deleted, with the newest 100 invoices or with all of them.

        The newest card that the customer has confirmed becomes the card that is charged.
        """
        ...

    async def create_card_setup(self, customer: str, key: str) -> str:
        """Begin to store a card; return the secret with which the browser confirms the card."""
        ...

    async def find_payment_secret(self, invoice: str) -> str | None:
        """Return the secret with which the browser confirms the payment of an open invoice; None if it is not open."""
        ...

    async def preview_subscription(self, customer: str, plan: PricedPlan) -> ChangePreview:
        """Return the amounts of a new subscription."""
        ...

    async def preview_change(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime | None
    ) -> ChangePreview:
        """Return the amounts of a change of plan.

        Args:
            subscription: The current subscription.
            plan: The new plan.
            prorated_from: The time from which the new plan is charged; None for a change at the end of the period.
        """
        ...

    async def subscribe(
        self, customer: str, plan: PricedPlan, promotion_code: str | None, key: str, *, charges_card: bool
    ) -> None:
        """Create a subscription, whose first payment must be confirmed.

        With `charges_card`, the stored card is charged at once. If the card is declined, the subscription is cancelled.

        Raises:
            PaymentDeclined: The card is declined.
            Unprocessable: The promotion code is not valid.
            CurrencyUnsupported: The customer is charged in another currency.
        """
        ...

    async def change_plan(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime, key: str
    ) -> None:
        """Change the plan now, charge the difference for the rest of the period, and undo a cancellation.

        Raises PaymentDeclined, without an effect, if the card is declined.
        """
        ...

    async def schedule_change(self, subscription: PlanSubscription, plan: PricedPlan, key: str) -> None:
        """Change the plan or its price at the end of the period, instead of a scheduled change or a cancellation."""
        ...

    async def cancel_scheduled_change(self, subscription: PlanSubscription) -> None:
        """Cancel the scheduled change, if there is one."""
        ...

    async def set_cancellation(self, subscription: PlanSubscription, *, at_period_end: bool) -> None:
        """Cancel the subscription at the end of the period, or undo that."""
        ...

    async def cancel_now(self, subscription: PlanSubscription) -> None:
        """Cancel an incomplete subscription; nothing happens if it has ended. Raises Conflict if it was paid."""
        ...

    async def create_invoice(self, customer: str, new: NewInvoice) -> str:
        """Create and finalise an invoice; return the provider's ID. An invoice with the same cause is returned instead.

        Raises CurrencyUnsupported if the customer is charged in another currency.
        """
        ...

    async def preview_invoice(self, customer: str, amount: int, currency: str) -> tuple[int, int]:
        """Return the tax and the total of an invoice over the amount, in minor units."""
        ...

    async def pay_invoice(self, invoice: str) -> None:
        """Charge the stored card for an open invoice. Raises PaymentDeclined; a paid invoice is not charged again."""
        ...

    async def void_invoice(self, invoice: str) -> None:
        """Void an open invoice, so that it can no longer be paid."""
        ...

    async def refund_invoice(self, invoice: str, amount: int, key: str) -> None:
        """Pay back an amount of a paid invoice, in minor units. Raises Unprocessable if less was paid."""
        ...

    def parse_event(self, body: bytes, signature: str) -> ProviderEvent:
        """Return the notification in the body of a request. Raises InvalidSignature, also if the signature is too old."""
        ...


class BillingStore(Protocol):
    """Billing of the tenant beside the plain resources, in the tenant's transaction."""

    async def find_overdue_invoice(self, subscription: PlanSubscription | None = None) -> Invoice | None:
        """Return the oldest open invoice whose payment has failed, except those of purchases; None if there is none.

        With a subscription, only its invoices and later ones of usage count.
        """
        ...

    async def void_open_invoices(self) -> None:
        """Mark all open invoices as void."""
        ...

    async def find_invoices(self, provider_ids: Sequence[str]) -> Sequence[Invoice]:
        """Return the stored invoices that have these IDs at the provider."""
        ...

    async def find_purchase(self, request_key: str) -> str | None:
        """Return the ID of the purchase that the request with this key created, or None."""
        ...

    async def begin_plan(self, month: date, plan: str, began_on: date) -> None:
        """Record that the organisation has the plan in the month from a day on, unless an earlier day is recorded."""
        ...

    async def end_plans(self, month: date, ended_on: date) -> None:
        """Record that the plans of the month ended on a day."""
        ...

    async def list_plans(self, month: date) -> Sequence[tuple[str, date, date | None]]:
        """Return the plans of the month: code, first day, and last day or None."""
        ...

    async def set_entitlement(self, plan: str, *, bills_overage: bool) -> None:
        """Set the organisation's plan, and whether usage beyond the plan's quotas is charged."""
        ...

    async def list_prices(self) -> Sequence[PlanPrice]:
        """Return the stored prices of all plans, by plan and currency, oldest first."""
        ...


class BillingRegistry(Protocol):
    """Billing accounts of all tenants, for the service itself and operators."""

    async def find_tenant(self, customer: str) -> Tenant | None:
        """Return the tenant whose customer has the provider's ID, or None."""
        ...

    async def list_accounts(self, reconciled_before: datetime) -> Sequence[Tenant]:
        """Return up to 1,000 tenants with a customer that were not reconciled since the time."""
        ...

    async def list_ended_grace(self, now: datetime) -> Sequence[Tenant]:
        """Return the tenants whose grace period has ended, and which still have the plan of their subscription."""
        ...

    async def list_unclosed(self, month: date) -> Sequence[tuple[Tenant, date]]:
        """Return tenants with recorded plans of months before `month` that have no usage charge, with the months."""
        ...

    async def list_automatic_purchases(self, day: date) -> Sequence[tuple[Tenant, int, str]]:
        """Return tenants with low credit, the number of credits to buy and the key, unless this was tried on the day.

        The key is that of an earlier automatic purchase if its outcome is unknown.
        """
        ...

    async def list_arrears(self) -> Sequence[tuple[Tenant, BillingAccount]]:
        """Return the accounts whose subscription has a failed payment, by the end of the grace period."""
        ...


class PriceRegistry(Protocol):
    """Storage of the prices of plans, for operators."""

    async def list_prices(self) -> Sequence[PlanPrice]:
        """Return the stored prices of all plans, by plan and currency, oldest first."""
        ...

    async def add_price(self, price: PlanPrice) -> None:
        """Store a price of a plan; replaces a price of the same plan, currency and time."""
        ...
