"""JSON of billing accounts, previews, invoices and purchases of credit."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from adapters.api_json.orgs import METER
from adapters.api_json.resource import Body, JsonResource, create_decoder, create_nested_list_field
from adapters.api_json.usage import METER as USAGE_METER
from domain.billing.model import (
    CREDIT_CURRENCY,
    MONTH,
    BillingDetails,
    BillingDetailsChange,
    ChangePreview,
    Confirmation,
    ConfirmationKind,
    CreditPurchase,
    Invoice,
    InvoiceStatus,
    Money,
    PricedPlan,
    PurchaseKind,
    PurchaseStatus,
    SubscriptionStatus,
    TaxIdType,
)
from domain.billing.usecases.accounts import AccountView, SubscriptionRequest
from domain.billing.usecases.purchases import PurchasePreview
from domain.credits.model import MAX_PURCHASE, MICROS_PER_CREDIT, MIN_PURCHASE
from domain.kernel import schema
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import Field, RenderContext, computed, optional
from domain.kernel.schema import Schema
from domain.kernel.tenancy import Tenant


def _build_schema(fields: Mapping[str, Field | Schema], name: str | None = None, **options: Any) -> Schema:
    """Return the schema of a part of a resource, from which optional properties may be absent."""
    return JsonResource[Any](name, fields, **options).schema


_PLAN: Final = schema.text("standard", max_length=100)
_INTERVAL: Final = schema.enum(MONTH)
_ANY_INTERVAL: Final = schema.text(MONTH, description="`month`, except for subscriptions that the operator manages.")
_MONEY: Final = _build_schema({"amount": schema.money(9900), "currency": schema.currency()})
_OPTIONAL_TIME: Final = optional(schema.timestamp())
_ADDRESS_FIELDS: Final = {
    "line1": schema.text("1 Harbour Street", max_length=200),
    "line2": schema.text("2nd floor", max_length=200),
    "city": schema.text("Bergen", max_length=100),
    "state": schema.text("Vestland", max_length=100),
    "postal_code": schema.text("5003", max_length=20),
    "country": {
        "type": "string",
        "pattern": "^[A-Z]{2}$",
        "examples": ["NO"],
        "x-words": "two capital letters (ISO 3166-1)",
    },
}
_ADDRESS: Final = _build_schema(
    {name: one if name == "country" else optional(one) for name, one in _ADDRESS_FIELDS.items()},
    title="billing_address",
)
_TAX_ID_FIELDS: Final = {"type": schema.enum(*TaxIdType), "value": schema.text("NO995525828MVA", max_length=40)}
_TAX_ID: Final = _build_schema(_TAX_ID_FIELDS)
_PERIOD: Final = _build_schema({"start": schema.timestamp(), "end": schema.timestamp()})
_CARD: Final = _build_schema(
    {
        "brand": schema.text("visa"),
        "last4": schema.text("4242", max_length=4),
        "exp_month": schema.integer(12, minimum=1, maximum=12),
        "exp_year": schema.integer(2029, minimum=2000),
    },
)
_DISCOUNT: Final = _build_schema(
    {
        "name": schema.text("Launch offer"),
        "percent_off": optional(schema.number(20.0)),
        "amount_off": optional(schema.money(1000)),
        "ends_at": _OPTIONAL_TIME,
    },
)
_SUBSCRIPTION: Final = _build_schema(
    {
        "status": schema.enum(*SubscriptionStatus)
        | {
            "description": "`incomplete`: the first payment must be confirmed (POST /v1/billing/card). `past_due`: a payment has "
            "failed; the plan is kept until `grace_ends_at`."
        },
        "plan": _PLAN,
        "current_period_end": schema.timestamp(),
        "cancel_at_period_end": schema.boolean(False),
        "interval": _ANY_INTERVAL,
        "currency": schema.currency(),
        "price": schema.money(9900, "Price per interval in minor units, without discount."),
        "next_price": schema.money(9900, "Price per interval from the next period on."),
        "cancel_at": _OPTIONAL_TIME,
        "discount": optional(_DISCOUNT),
        "scheduled_change": optional(
            _build_schema({"plan": _PLAN, "interval": _INTERVAL, "effective_at": schema.timestamp()})
        ),
    },
)
_SOLD_PLAN: Final = JsonResource[PricedPlan](
    None,
    {
        "code": _PLAN,
        "name": schema.text("Standard"),
        "currency": schema.currency(),
        "monthly": schema.money(9900, "Price per month in minor units."),
        "meters": schema.map_schema(METER, {"sources": {"included": 10, "per": 1, "amount": 900}}),
        "announced": optional(
            computed(
                _build_schema({"monthly": schema.money(10900), "effective_at": schema.timestamp()}),
                lambda plan, _: (
                    plan.next_price
                    and {"monthly": plan.next_price.monthly, "effective_at": plan.next_price.effective_at}
                ),
            )
        ),
    },
    title="priced_plan",
)
_OVERDUE_INVOICE: Final = _build_schema(
    {
        "id": schema.id_schema("inv"),
        "number": optional(schema.text("F-0001")),
        "amount_due": schema.money(9900),
        "currency": schema.currency(),
        "hosted_invoice_url": optional(schema.url("https://invoice.example/i/1")),
    },
)
_DETAILS: Final = _build_schema(
    {
        "name": schema.text("Fjord & Oak", max_length=200),
        "name_follows_org": schema.boolean(True),
        "email": optional(schema.text("billing@fjord.example", max_length=320)),
    },
    "billing_details",
)


def _select(value: Any, selected: Schema) -> Any:
    """Return the properties of a JSON value that the schema has."""
    return None if value is None else {name: value[name] for name in selected["properties"] if name in value}


def _render_subscription(view: AccountView, _: RenderContext) -> Any:
    return _select(to_json_value(view.account.subscription), _SUBSCRIPTION)


def _render_details(view: AccountView, _: RenderContext) -> Any:
    details: BillingDetails = view.account.details
    name = details.name or view.organisation.name
    email = {"email": details.email} if details.email else {}
    return {"object": "billing_details", "name": name, "name_follows_org": name == view.organisation.name, **email}


ACCOUNT: Final = JsonResource[AccountView](
    "billing_account",
    {
        "enabled": schema.boolean(description="Whether the service sells plans in this mode."),
        "plan": computed(_PLAN, lambda view, _: view.organisation.plan.code),
        "subscription": Field(_SUBSCRIPTION, _render_subscription, optional=True, rendered=True),
        "card": optional(computed(_CARD, lambda view, _: view.account.card)),
        "plans": create_nested_list_field(_SOLD_PLAN, lambda view: view.plans, "The plans with their prices."),
        "live": computed(schema.boolean(description="Whether real money is moved."), lambda view, _: view.is_live),
        "grace_ends_at": optional(computed(schema.timestamp(), lambda view, _: view.account.grace_ends_at)),
        "address": optional(computed(_ADDRESS, lambda view, _: view.account.details.address)),
        "tax_id": optional(computed(_TAX_ID, lambda view, _: view.account.details.tax_id)),
        "details": Field(_DETAILS, _render_details, rendered=True),
        "credit_balance": schema.integer(5_000_000, description="Available credit in micro-US-dollars."),
        "currency": optional(computed(schema.currency(), lambda view, _: view.account.currency)),
        "overdue_invoice": Field(
            _OVERDUE_INVOICE,
            lambda view, _: _select(to_json_value(view.overdue), _OVERDUE_INVOICE),
            optional=True,
            rendered=True,
        ),
    },
    description="The plan of the organisation with its subscription, card and billing details.",
)
CONFIRMATION: Final = JsonResource[Confirmation](
    "billing_confirmation",
    {
        "kind": schema.enum(*ConfirmationKind),
        "client_secret": schema.text(
            "seti_1_secret_2", description="Secret for Stripe.js, valid for this confirmation."
        ),
        "subscription": optional(schema.text("sub_1", description="The provider's ID of the subscription.")),
        "amount": optional(_MONEY),
    },
    description="What the browser confirms with the payment provider: a payment, or a card for later payments.",
)
_LINE_FIELDS: Final[Mapping[str, Schema]] = {
    "description": schema.text("Standard", max_length=2000, min_length=0),
    "amount": schema.money(9900),
    "period": _PERIOD,
}
PREVIEW: Final = JsonResource[ChangePreview](
    "subscription_preview",
    {
        "plan": _PLAN,
        "interval": computed(_INTERVAL, lambda *_: MONTH),
        "due_now": computed(_MONEY, lambda one, _: {"amount": one.due_now, "currency": one.currency}),
        "lines": computed(
            schema.array(_build_schema({**_LINE_FIELDS, "proration": schema.boolean(True)})),
            lambda one, _: [
                {
                    "description": line.description,
                    "amount": line.amount,
                    "period": line.period,
                    "proration": line.is_proration,
                }
                for line in one.lines
            ],
        ),
        "next_invoice": computed(
            _build_schema({"amount": schema.money(9900), "currency": schema.currency(), "at": schema.timestamp()}),
            lambda one, _: {"amount": one.next_amount, "currency": one.currency, "at": one.next_at},
        ),
        "effective_at": schema.timestamp(),
        "exceeds": computed(
            schema.array(
                _build_schema(
                    {
                        "meter": USAGE_METER,
                        "used": schema.integer(12, minimum=0),
                        "included": schema.integer(10, minimum=0),
                    },
                ),
                description="Meters of which the organisation uses more than the plan includes.",
            ),
            lambda one, _: one.excesses,
        ),
    },
    description="What a change of plan costs.",
)
INVOICE: Final = JsonResource[Invoice](
    "invoice",
    {
        "id": schema.id_schema("inv"),
        "number": optional(schema.text("F-0001")),
        "status": schema.enum(*InvoiceStatus),
        "total": schema.money(9900),
        "amount_due": schema.money(0),
        "currency": schema.currency(),
        "tax": schema.money(0),
        "lines": computed(
            schema.array(
                _build_schema(
                    {
                        **_LINE_FIELDS,
                        "meter": optional(USAGE_METER),
                        "quantity": schema.integer(1),
                    },
                )
            ),
            lambda one, _: [
                {
                    "description": line.description,
                    "amount": line.amount,
                    "period": line.period,
                    "meter": line.meter,
                    "quantity": line.quantity,
                }
                for line in one.lines
            ],
        ),
        "hosted_invoice_url": optional(schema.url("https://invoice.example/i/1")),
        "invoice_pdf": optional(schema.url("https://invoice.example/i/1/pdf")),
        "due_at": _OPTIONAL_TIME,
        "paid_at": _OPTIONAL_TIME,
    },
    description="An invoice of the payment provider.",
)
_CREDIT: Final = schema.integer(
    10_000_000, minimum=1, description="The credit in micro-US-dollars. One credit is one US cent."
)


def _price(name: str) -> Field:
    """Return a property with an amount of a purchase, in the currency of credit."""
    return computed(_MONEY, lambda one, _: {"amount": getattr(one, name), "currency": CREDIT_CURRENCY})


def _render_confirmation(purchase: CreditPurchase, view: RenderContext) -> Any:
    if purchase.client_secret is None or purchase.status is PurchaseStatus.SUCCEEDED:
        return None
    return CONFIRMATION.render(
        Confirmation(ConfirmationKind.PAYMENT, purchase.client_secret, amount=Money(purchase.total, CREDIT_CURRENCY)),
        view,
    )


PURCHASE: Final = JsonResource[CreditPurchase](
    "credit_purchase",
    {
        "id": schema.id_schema("crp"),
        "kind": schema.enum(*PurchaseKind)
        | {"description": "`automatic`: bought by the service because the balance was low."},
        "status": schema.enum(*PurchaseStatus),
        "amount": _price("amount"),
        "tax": _price("tax"),
        "total": _price("total"),
        "credit_micros": _CREDIT,
        "confirmation": Field(CONFIRMATION.schema, _render_confirmation, optional=True, rendered=True),
        "invoice": optional(
            _build_schema(
                {
                    "id": schema.id_schema("inv"),
                    "number": optional(schema.text("F-0001")),
                    "hosted_invoice_url": optional(schema.url("https://invoice.example/i/1")),
                    "invoice_pdf": optional(schema.url("https://invoice.example/i/1/pdf")),
                },
            )
        ),
        "refunded": _price("refunded"),
        "created_at": schema.timestamp(),
        "paid_at": _OPTIONAL_TIME,
        "expires_at": optional(schema.timestamp("When unused credit of the purchase expires.")),
    },
    path="/v1/billing/credits/purchases/{id}",
    description="A purchase of prepaid credit for AI features.",
)
PURCHASE_PREVIEW: Final = JsonResource[PurchasePreview](
    "credit_purchase_preview",
    {
        "amount": _price("amount"),
        "tax": _price("tax"),
        "total": _price("total"),
        "credit_micros": _CREDIT,
        "expires_at": schema.timestamp(),
    },
    description="The price of credit.",
)
SUBSCRIPTION_BODY: Final = Body[SubscriptionRequest](
    schema.with_title(
        "billing_subscription_create",
        schema.strict_object(
            {
                "plan": _PLAN,
                "interval": _INTERVAL,
                "currency": schema.currency(),
                "promotion_code": schema.text("LAUNCH", max_length=100),
            },
            required=("plan",),
        ),
    ),
    lambda body: SubscriptionRequest(body["plan"], body.get("currency"), body.get("promotion_code")),
)
PREVIEW_BODY: Final = Body[SubscriptionRequest](
    schema.with_title(
        "billing_preview_create",
        schema.strict_object({"plan": _PLAN, "interval": _INTERVAL, "currency": schema.currency()}, required=("plan",)),
    ),
    lambda body: SubscriptionRequest(body["plan"], body.get("currency")),
)
DETAILS_BODY: Final = Body[BillingDetailsChange](
    schema.with_title(
        "billing_details_update",
        schema.strict_object(
            {
                "name": schema.nullable(schema.text("Fjord & Oak", max_length=200))
                | {"description": "Name on invoices; null for the name of the organisation."},
                "email": schema.nullable(
                    {
                        "type": "string",
                        "maxLength": 320,
                        "pattern": "^[^@\\s]+@[^@\\s]+$",
                        "x-words": "an email address",
                        "examples": ["billing@fjord.example"],
                    }
                ),
                "address": schema.nullable(schema.strict_object(_ADDRESS_FIELDS, required=("country",))),
                "tax_id": schema.nullable(schema.strict_object(_TAX_ID_FIELDS, required=("type", "value"))),
            }
        ),
    ),
    create_decoder(BillingDetailsChange),
)
CREDITS_BODY: Final = Body[int](
    schema.with_title(
        "credit_purchase_create",
        schema.strict_object(
            {
                "credits": schema.integer(
                    1000,
                    minimum=MIN_PURCHASE,
                    maximum=MAX_PURCHASE,
                    description=f"Number of credits, each of one US cent ({MICROS_PER_CREDIT:,} micro-US-dollars).",
                )
            },
            required=("credits",),
        ),
    ),
    lambda body: int(body["credits"]),
)


def render_purchase(purchase: CreditPurchase, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render a purchase as a resource, for events."""
    return PURCHASE.render(purchase, RenderContext(tenant, now))
