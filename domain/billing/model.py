"""Billing accounts, subscriptions, invoices, purchases of credit, and charges for usage (docs/billing.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, TypedDict

from domain.audit.model import AuditedFields
from domain.credits.model import MICROS_PER_CREDIT
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Unavailable
from domain.orgs.model import MeterAllowance

ACCOUNT_ID = "billing"
"""ID of a tenant's only billing account."""
FREE_PLAN = "free"
"""Code of the plan of an organisation whose subscription has ended."""
MONTH = "month"
"""Interval of the subscriptions that the service creates."""
GRACE_PERIOD = timedelta(days=14)
"""Time after the creation of an unpaid invoice of a subscription for which the organisation keeps its plan."""
CREDIT_CURRENCY = "usd"
"""Currency in which credit is sold."""


class SubscriptionStatus(StoredEnum):
    """Status of a subscription. `incomplete`: the first payment must be confirmed. `past_due`: a payment has failed."""

    INCOMPLETE = "incomplete"
    ACTIVE = "active"
    PAST_DUE = "past_due"


class InvoiceStatus(StoredEnum):
    """Status of an invoice."""

    DRAFT = "draft"
    OPEN = "open"
    PAID = "paid"
    VOID = "void"
    UNCOLLECTIBLE = "uncollectible"


class PurchaseKind(StoredEnum):
    """Kind of a purchase of credit. `automatic`: the service bought credit because the balance was low."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"


class PurchaseStatus(StoredEnum):
    """Status of a purchase of credit."""

    REQUIRES_PAYMENT = "requires_payment"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ConfirmationKind(StoredEnum):
    """Kind of a confirmation in the browser: of a payment, or of a card for later payments."""

    PAYMENT = "payment"
    SETUP = "setup"


class TaxIdType(StoredEnum):
    """Type of a tax ID, as Stripe names it."""

    EU_VAT = "eu_vat"
    GB_VAT = "gb_vat"
    CH_VAT = "ch_vat"
    NO_VAT = "no_vat"
    US_EIN = "us_ein"
    AU_ABN = "au_abn"
    CA_BN = "ca_bn"


@dataclass(frozen=True, slots=True)
class Money:
    """Amount in minor units of a currency."""

    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class PlanPrice:
    """Price of a plan in one currency from a time on.

    Attributes:
        plan: The code of the plan.
        monthly: The price per month in minor units.
        amounts: Price of each further `per` units by meter, in minor units.
        effective_at: The time from which the price applies; None for the price that the plan itself states.
    """

    plan: str
    currency: str
    monthly: int
    amounts: Mapping[str, int]
    effective_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """Plan as it is sold in one currency.

    Attributes:
        monthly: The price per month in minor units.
        next_price: The announced price, or None.
    """

    code: str
    name: str
    currency: str
    monthly: int
    meters: Mapping[str, MeterAllowance]
    next_price: PlanPrice | None = None


@dataclass(frozen=True, slots=True)
class Discount:
    """Discount of a subscription: a percentage or an amount in minor units of the subscription's currency."""

    name: str
    percent_off: float | None = None
    amount_off: int | None = None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduledChange:
    """Change of plan at the end of the current period."""

    plan: str
    interval: str
    effective_at: datetime


@dataclass(frozen=True, slots=True)
class PlanSubscription:
    """Subscription to a plan that has not ended.

    Attributes:
        id: The provider's ID.
        price: The price per interval in minor units, without discount.
        next_price: The price per interval from the next period on, of the plan that then applies.
        interval: MONTH, except for subscriptions that the operator created at the provider.
        latest_invoice: The provider's ID of the newest invoice.
        started_at: The time at which the subscription was created.
    """

    id: str
    status: SubscriptionStatus
    plan: str
    currency: str
    price: int
    next_price: int
    current_period_start: datetime
    current_period_end: datetime
    cancel_at_period_end: bool = False
    interval: str = MONTH
    latest_invoice: str | None = None
    cancel_at: datetime | None = None
    discount: Discount | None = None
    scheduled_change: ScheduledChange | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """Card that is charged."""

    brand: str
    last4: str
    exp_month: int
    exp_year: int


@dataclass(frozen=True, slots=True)
class Address:
    """Postal address on invoices; `country` is an ISO 3166-1 alpha-2 code."""

    country: str
    line1: str | None = None
    line2: str | None = None
    city: str | None = None
    state: str | None = None
    postal_code: str | None = None


@dataclass(frozen=True, slots=True)
class TaxId:
    """Tax ID on invoices."""

    type: TaxIdType
    value: str


@dataclass(frozen=True, slots=True)
class BillingDetails:
    """Name, email address, address and tax ID on invoices; None if not set."""

    name: str | None = None
    email: str | None = None
    address: Address | None = None
    tax_id: TaxId | None = None


class BillingDetailsChange(TypedDict, total=False):
    """Change of details; omitted fields stay unchanged, None removes a value."""

    name: str | None
    email: str | None
    address: Address | None
    tax_id: TaxId | None


@dataclass(frozen=True, slots=True)
class Period:
    """Period of time that a line of an invoice is for."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """Line of an invoice or a preview.

    Attributes:
        amount: The amount before tax in minor units.
        quantity: The charged quantity; for a monthly meter, the quantity beyond what the plan includes; for a gauge, the sum of
            the `per` units beyond that over the days.
        meter: The meter whose usage is charged, or None.
        is_proration: Whether the line is for a part of a period, because the plan changed.
    """

    description: str
    amount: int
    period: Period
    quantity: int = 1
    meter: str | None = None
    is_proration: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """Invoice, as the provider states it.

    Attributes:
        provider_id: The provider's ID.
        cause: What the invoice was created for: the ID of a purchase, or `usage-` and the month, such as `usage-2026-10`;
            None for an invoice of the subscription.
        subscription: The provider's ID of the subscription that the invoice is for, or None.
        amount_due: The amount that is not paid yet.
        refunded: The amount that was paid back.
        has_failed: Whether a payment was tried and failed.
    """

    id: str
    provider_id: str
    number: str | None
    status: InvoiceStatus
    currency: str
    total: int
    tax: int
    amount_due: int
    refunded: int = 0
    lines: tuple[InvoiceLine, ...]
    cause: str | None = None
    subscription: str | None = None
    has_failed: bool = False
    hosted_invoice_url: str | None = None
    invoice_pdf: str | None = None
    created_at: datetime
    due_at: datetime | None = None
    paid_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingAccount:
    """Billing account of a tenant, which repeats what the provider states.

    Attributes:
        customer: The provider's ID of the customer; None until the first use.
        currency: The currency in which the customer is charged; None until the first invoice.
        granted_plan: The plan that the subscription grants; None without one.
        grace_ends_at: The time until which the plan is kept although a payment has failed.
        reads: Number of times that the provider's state was requested.
        applied_read: Number of the request whose result is stored. Results of earlier requests are ignored.
        busy_until: The time until which no other change of the account may begin; None if none is in progress.
        reconciled_at: The time of the last comparison with all invoices of the provider.
    """

    id: str = ACCOUNT_ID
    customer: str | None = None
    currency: str | None = None
    details: BillingDetails = BillingDetails()
    card: Card | None = None
    subscription: PlanSubscription | None = None
    granted_plan: str | None = None
    grace_ends_at: datetime | None = None
    reads: int = 0
    applied_read: int = 0
    busy_until: datetime | None = None
    reconciled_at: datetime | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def get_customer(self) -> str:
        """Return the provider's ID of the customer. Raises Unavailable if the customer was deleted at the provider."""
        if self.customer is None:
            raise Unavailable("The customer was deleted at the payment provider. Try again.", retry_after=1)
        return self.customer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount:
    """State of a customer at the payment provider, who has nothing if `is_deleted` is true."""

    customer: str
    currency: str | None
    details: BillingDetails
    card: Card | None
    subscription: PlanSubscription | None
    invoices: Sequence[Invoice]
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class InvoiceReference:
    """Invoice that another resource refers to."""

    id: str
    number: str | None = None
    hosted_invoice_url: str | None = None
    invoice_pdf: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditPurchase:
    """Purchase of credit.

    Attributes:
        credits: The number of credits, each of one US cent.
        request_key: Key of the request that created the purchase, so that a repeated request creates no other one.
        client_secret: Secret with which the browser confirms the payment.
        invoice: The invoice; None until the provider has created it.
    """

    id: str
    kind: PurchaseKind
    status: PurchaseStatus
    credits: int
    request_key: str
    amount: int
    tax: int = 0
    total: int
    refunded: int = 0
    client_secret: str | None = None
    invoice: InvoiceReference | None = None
    created_at: datetime
    paid_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def credit_micros(self) -> int:
        """The purchased credit in micro-US-dollars."""
        return self.credits * MICROS_PER_CREDIT


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCharge:
    """Charge for the usage of one month beyond what the plan includes; a month has at most one.

    Attributes:
        id: The month, as `2026-10`.
        total: The amount before tax in minor units.
    """

    id: str
    currency: str
    total: int
    lines: tuple[InvoiceLine, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Secret with which the browser confirms a payment or a card with the provider.

    Attributes:
        subscription: The provider's ID of the subscription that the payment is for, or None.
        amount: The amount that is paid, or None for a card.
    """

    kind: ConfirmationKind
    client_secret: str
    subscription: str | None = None
    amount: Money | None = None


@dataclass(frozen=True, slots=True)
class QuotaExcess:
    """Meter of which an organisation uses more than a plan includes, with both quantities."""

    meter: str
    used: int
    included: int


@dataclass(frozen=True, slots=True)
class ChangePreview:
    """Amounts of a change of plan, as the provider computes them.

    Attributes:
        lines: The lines of the invoice that the change creates.
        due_now: The total of this invoice including tax, in minor units.
        next_amount: The total of the next regular invoice, in minor units.
        next_at: The time of the next regular invoice.
        effective_at: The time from which the new plan applies.
        excesses: The meters of which the organisation uses more than the plan includes.
    """

    plan: str
    currency: str
    lines: Sequence[InvoiceLine]
    due_now: int
    next_amount: int
    next_at: datetime
    effective_at: datetime
    excesses: Sequence[QuotaExcess] = ()


AUDITED_ACCOUNT_FIELDS: Final = AuditedFields(
    "billing_account", ("details", "card", "subscription", "granted_plan", "currency")
)
AUDITED_PURCHASE_FIELDS: Final = AuditedFields(
    "credit_purchase", ("kind", "status", "credits", "total", "refunded", "invoice")
)


def is_entitled(subscription: PlanSubscription | None, grace_ends_at: datetime | None, now: datetime) -> bool:
    """Return whether the subscription grants its plan: it has begun, and no payment failed more than GRACE_PERIOD ago."""
    is_begun = subscription is not None and subscription.status is not SubscriptionStatus.INCOMPLETE
    return is_begun and (grace_ends_at is None or now < grace_ends_at)


def find_grace_end(subscription: PlanSubscription | None, overdue: Invoice | None) -> datetime | None:
    """Return the end of the grace period of a subscription; None if no payment has failed.

    Args:
        subscription: The subscription.
        overdue: The oldest open invoice of the subscription, or of usage, whose payment has failed; None if there is none.
    """
    if subscription is None:
        return None
    if overdue is not None:
        return overdue.created_at + GRACE_PERIOD
    is_past_due = subscription.status is SubscriptionStatus.PAST_DUE
    return subscription.current_period_start + GRACE_PERIOD if is_past_due else None


def is_purchase(cause: str | None) -> bool:
    """Return whether the cause of an invoice is a purchase of credit."""
    return cause is not None and cause.startswith("crp_")


def find_proration_time(subscription: PlanSubscription, now: datetime) -> datetime:
    """Return the time from which a change of plan is charged: the start of the day (UTC), or of the period if later.

    All previews of a day therefore state the amount that the change then costs.
    """
    day = datetime.combine(now.date(), datetime.min.time(), now.tzinfo)
    return max(day, subscription.current_period_start)


def build_automatic_purchase_key(day: date) -> str:
    """Return the key of the request that buys credit automatically, of which there is at most one a day."""
    return f"automatic:{day.isoformat()}"
