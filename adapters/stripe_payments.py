"""Payments by Stripe, with its official SDK."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import stripe

from domain.billing.model import (
    MONTH,
    Address,
    BillingDetails,
    Card,
    ChangePreview,
    Discount,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    Period,
    PlanSubscription,
    PricedPlan,
    ProviderAccount,
    ScheduledChange,
    SubscriptionStatus,
    TaxId,
    TaxIdType,
)
from domain.billing.ports import InvalidSignature, NewInvoice, Payments, ProviderEvent
from domain.kernel.errors import (
    Conflict,
    CurrencyUnsupported,
    IdempotencyKeyReused,
    PaymentDeclined,
    Unavailable,
    Unprocessable,
)

MAX_RETRIES = 2
"""Number of repetitions of a failed request by the SDK, with the same idempotency key."""
TIMEOUT_SECONDS = 10
"""Time limit of each request."""
PAGE = 100
"""Number of objects in each page of a list."""
SIGNATURE_TOLERANCE_SECONDS = 300
"""Maximum age of a notification."""
PRODUCT_PREFIX = "joinery_plan_"
"""Prefix of the IDs of Stripe's products; the code of the plan follows."""
_STATUSES: Final = {
    "incomplete": SubscriptionStatus.INCOMPLETE,
    "trialing": SubscriptionStatus.ACTIVE,
    "active": SubscriptionStatus.ACTIVE,
    "past_due": SubscriptionStatus.PAST_DUE,
    "unpaid": SubscriptionStatus.PAST_DUE,
    "paused": SubscriptionStatus.PAST_DUE,
}
"""Statuses of subscriptions that have not ended."""
_NEEDS_CUSTOMER = frozenset({"authentication_required", "invoice_payment_intent_requires_action"})
"""Codes of errors for payments that the customer must confirm in the browser."""
Json = Mapping[str, Any]


class StripePayments(Payments):
    """Payments by Stripe.

    Plans are products with the ID `joinery_plan_<code>`, and prices are stated in each request. The organisation's ID is
    the metadata `org` of customers, the cause of an invoice its metadata `cause`.
    """

    def __init__(
        self,
        secret_key: str,
        publishable_key: str,
        webhook_secret: str,
        *,
        computes_tax: bool = False,
        url: str,
        http_client: stripe.HTTPClient | None = None,
    ) -> None:
        """Create the client.

        Args:
            secret_key: The key of the service.
            publishable_key: The key that the browser uses.
            webhook_secret: The secret with which Stripe signs notifications.
            computes_tax: Whether Stripe computes taxes, from the address of the customer.
            url: The base URL of the API.
            http_client: The HTTP client; by default a new one.
        """
        client = stripe.StripeClient(
            secret_key,
            http_client=http_client or stripe.AIOHTTPClient(timeout=TIMEOUT_SECONDS),
            base_addresses={"api": url},
            max_network_retries=MAX_RETRIES,
        )
        # tests check the parameters against Stripe's specification, which is stricter than the SDK's types
        self._api: Any = client.v1
        self._publishable_key, self._webhook_secret = publishable_key, webhook_secret
        self._is_live = secret_key.startswith(("sk_live_", "rk_live_"))
        self._tax: Json = {"automatic_tax": {"enabled": True}} if computes_tax else {}
        self._known_products: set[str] = set()

    @property
    def publishable_key(self) -> str:
        return self._publishable_key

    @property
    def is_live(self) -> bool:
        return self._is_live

    async def create_customer(self, org: str, name: str, key: str) -> str:
        async with _translate_errors():
            created = await self._api.customers.create_async(
                {"name": name, "metadata": {"org": org}}, {"idempotency_key": key}
            )
            return str(created.id)

    async def delete_customer(self, customer: str) -> None:
        async with _translate_errors():
            if not (await self._api.customers.retrieve_async(customer)).to_dict().get("deleted"):
                await self._api.customers.delete_async(customer)

    async def save_details(self, customer: str, details: BillingDetails, *, changes_tax_id: bool) -> None:
        address = details.address
        async with _translate_errors():
            await self._api.customers.update_async(
                customer,
                {
                    "name": details.name or "",
                    "email": details.email or "",
                    "address": _build_address(address) if address is not None else "",
                },
            )
            if not changes_tax_id:
                return
            stored = await self._api.customers.tax_ids.list_async(customer, {"limit": PAGE})
            current = [(TaxIdType(one.type), one.value) for one in stored.data]
            wanted = [(details.tax_id.type, details.tax_id.value)] if details.tax_id else []
            for tax_id in stored.data:
                if (TaxIdType(tax_id.type), tax_id.value) not in wanted:
                    await self._api.customers.tax_ids.delete_async(customer, tax_id.id)
            for type_, value in wanted:
                if (type_, value) not in current:
                    await self._api.customers.tax_ids.create_async(customer, {"type": str(type_), "value": value})

    async def fetch_account(self, customer: str, *, all_invoices: bool = False) -> ProviderAccount:
        async with _translate_errors():
            try:
                return await self._fetch_account(customer, all_invoices)
            except (stripe.InvalidRequestError, AttributeError):
                # Stripe refuses some requests about a deleted customer, and answers others with few properties
                if (await self._api.customers.retrieve_async(customer)).to_dict().get("deleted"):
                    return ProviderAccount(
                        customer=customer,
                        currency=None,
                        details=BillingDetails(),
                        card=None,
                        subscription=None,
                        invoices=(),
                        is_deleted=True,
                    )
                raise

    async def _fetch_account(self, customer: str, all_invoices: bool) -> ProviderAccount:
        profile, methods, subscriptions, invoices, charges = await asyncio.gather(
            self._api.customers.retrieve_async(customer, {"expand": ["tax_ids"]}),
            self._api.payment_methods.list_async({"customer": customer, "type": "card", "limit": 1}),
            self._api.subscriptions.list_async(
                {
                    "customer": customer,
                    "status": "all",
                    "limit": PAGE,
                    "expand": ["data.schedule", "data.discounts.source.coupon"],
                }
            ),
            self._list(
                self._api.invoices.list_async,
                {"customer": customer, "expand": ["data.payments"]},
                reads_all=all_invoices,
            ),
            self._list(self._api.charges.list_async, {"customer": customer}, reads_all=all_invoices),
        )
        for invoice in invoices:
            if invoice["lines"]["has_more"]:
                list_lines = partial(self._api.invoices.line_items.list_async, invoice["id"])
                invoice["lines"]["data"] = await self._list(list_lines, {}, reads_all=True)
        method = methods.data[0] if methods.data else None
        if method is not None and profile.invoice_settings.default_payment_method != method.id:
            await self._api.customers.update_async(
                customer, {"invoice_settings": {"default_payment_method": method.id}}
            )
        current = min(filter(_is_current, subscriptions.data), key=_is_incomplete, default=None)
        schedule = await self._read_schedule(current)
        refunded: dict[str, int] = {}  # a payment has a charge for each attempt
        for charge in charges:
            intent = charge["payment_intent"]
            returned = charge["amount"] if charge["disputed"] else charge["amount_refunded"]
            refunded[intent] = refunded.get(intent, 0) + returned
        return ProviderAccount(
            customer=customer,
            currency=profile.currency,
            details=_read_details(profile.to_dict()),
            card=Card(method.card.brand, method.card.last4, method.card.exp_month, method.card.exp_year)
            if method is not None and method.card is not None
            else None,
            subscription=_read_subscription(current.to_dict(), schedule) if current is not None else None,
            invoices=[_read_invoice(invoice, refunded) for invoice in invoices if invoice["status"] != "draft"],
        )

    async def create_card_setup(self, customer: str, key: str) -> str:
        async with _translate_errors():
            intent = await self._api.setup_intents.create_async(
                {"customer": customer, "usage": "off_session", "payment_method_types": ["card"]},
                {"idempotency_key": key},
            )
            return intent.client_secret or ""

    async def find_payment_secret(self, invoice: str) -> str | None:
        async with _translate_errors():
            found = await self._api.invoices.retrieve_async(invoice, {"expand": ["confirmation_secret"]})
            secret = found.confirmation_secret
            return secret.client_secret if secret is not None and found.status == "open" else None

    async def preview_subscription(self, customer: str, plan: PricedPlan) -> ChangePreview:
        async with _translate_errors():
            item = await self._build_item(plan)
            preview = await self._api.invoices.create_preview_async(
                {"customer": customer, "subscription_details": {"items": [item]}, **self._tax}
            )
            invoice = preview.to_dict()
            period = invoice["lines"]["data"][0]["period"]
            return ChangePreview(
                plan.code,
                invoice["currency"],
                _read_lines(invoice),
                invoice["amount_due"],
                invoice["total"],
                _read_time(period["end"]),
                _read_time(period["start"]),
            )

    async def preview_change(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime | None
    ) -> ChangePreview:
        async with _translate_errors():
            item = await self._build_changed_item(subscription, plan)
            renewal = await self._preview_items(subscription, item, {"proration_behavior": "none"})
            due: Json = {"amount_due": 0, "lines": {"data": []}}
            if prorated_from is not None:
                proration = {
                    "proration_behavior": "always_invoice",
                    "proration_date": int(prorated_from.timestamp()),
                }
                due = await self._preview_items(subscription, item, proration)
        return ChangePreview(
            plan.code,
            subscription.currency,
            _read_lines(due),
            due["amount_due"],
            renewal["total"],
            subscription.current_period_end,
            prorated_from or subscription.current_period_end,
        )

    async def _preview_items(self, subscription: PlanSubscription, item: Json, proration: Json) -> dict[str, Any]:
        details: dict[str, Any] = {"items": [item], **proration}
        if subscription.cancel_at_period_end:
            details["cancel_at_period_end"] = False
        preview = await self._api.invoices.create_preview_async(
            {"subscription": subscription.id, "subscription_details": details}
        )
        return dict(preview.to_dict())

    async def subscribe(
        self, customer: str, plan: PricedPlan, promotion_code: str | None, key: str, *, charges_card: bool
    ) -> None:
        async with _translate_errors():
            discounts: Json = {}
            if promotion_code is not None:
                discounts = {"discounts": [{"promotion_code": await self._find_promotion_code(promotion_code)}]}
            created = await self._api.subscriptions.create_async(
                {
                    "customer": customer,
                    "items": [await self._build_item(plan)],
                    "payment_behavior": "default_incomplete",
                    **discounts,
                    **self._tax,
                },
                {"idempotency_key": key},
            )
            current = await self._api.subscriptions.retrieve_async(created.id)
            if current.status not in _STATUSES:  # an earlier attempt with this key has cancelled the subscription
                raise PaymentDeclined
            if not charges_card or current.status != "incomplete" or current.latest_invoice is None:
                return
        try:
            await self.pay_invoice(_get_id(current.latest_invoice))
        except _Declined as declined:
            if declined.code_of_provider in _NEEDS_CUSTOMER:
                return
            async with _translate_errors():
                await self._api.subscriptions.cancel_async(created.id)
            raise

    async def change_plan(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime, key: str
    ) -> None:
        changes: dict[str, Any] = {"cancel_at_period_end": False} if subscription.cancel_at_period_end else {}
        async with _translate_errors():
            await self._api.subscriptions.update_async(
                subscription.id,
                {
                    "items": [await self._build_changed_item(subscription, plan)],
                    "proration_behavior": "always_invoice",
                    "proration_date": int(prorated_from.timestamp()),
                    "payment_behavior": "error_if_incomplete",
                    **changes,
                },
                {"idempotency_key": key},
            )
        await self.cancel_scheduled_change(subscription)

    async def schedule_change(self, subscription: PlanSubscription, plan: PricedPlan, key: str) -> None:
        if subscription.cancel_at_period_end:
            await self.set_cancellation(subscription, at_period_end=False)
        try:
            await self._schedule_change(subscription, plan, key)
        except Exception:
            if subscription.cancel_at_period_end:
                await self.set_cancellation(subscription, at_period_end=True)
            raise

    async def _schedule_change(self, subscription: PlanSubscription, plan: PricedPlan, key: str) -> None:
        async with _translate_errors():
            current = await self._api.subscriptions.retrieve_async(subscription.id, {"expand": ["schedule"]})
            schedule: Any = current.schedule
            if schedule is None:
                schedule = await self._api.subscription_schedules.create_async({"from_subscription": subscription.id})
            phases, present = schedule.to_dict()["phases"], schedule.to_dict()["current_phase"]
            phase = next((one for one in phases if present and one["start_date"] == present["start_date"]), phases[0])
            # a phase without discounts ends those of the subscription
            discounts: Any = {"discounts": [{"discount": _get_id(one)} for one in current.discounts or ()]}
            discounts = discounts if discounts["discounts"] else {}
            kept = {"start_date": phase["start_date"], "end_date": phase["end_date"], **discounts}
            kept["items"] = [{"price": _get_id(item["price"]), "quantity": item["quantity"]} for item in phase["items"]]
            await self._api.subscription_schedules.update_async(
                schedule.id,
                {
                    "end_behavior": "release",
                    "proration_behavior": "none",
                    "phases": [
                        kept,
                        {
                            "items": [await self._build_item(plan)],
                            "duration": {"interval": "month", "interval_count": 1},
                            **discounts,
                        },
                    ],
                },
                {"idempotency_key": key},
            )

    async def cancel_scheduled_change(self, subscription: PlanSubscription) -> None:
        async with _translate_errors():
            current = await self._api.subscriptions.retrieve_async(subscription.id)
            if current.schedule is not None:
                await self._api.subscription_schedules.release_async(_get_id(current.schedule))

    async def set_cancellation(self, subscription: PlanSubscription, *, at_period_end: bool) -> None:
        async with _translate_errors():
            await self._api.subscriptions.update_async(subscription.id, {"cancel_at_period_end": at_period_end})

    async def cancel_now(self, subscription: PlanSubscription) -> None:
        async with _translate_errors():
            current = await self._api.subscriptions.retrieve_async(subscription.id)
            if current.status == "incomplete":
                await self._api.subscriptions.cancel_async(subscription.id)
            elif current.status in _STATUSES:
                raise Conflict("The payment of the subscription was confirmed in the meantime. Read the account again.")

    async def create_invoice(self, customer: str, new: NewInvoice) -> str:
        async with _translate_errors():
            found = await self._list(self._api.invoices.list_async, {"customer": customer}, reads_all=True)
            invoice = next((one for one in found if one["metadata"].get("cause") == new.cause), None)
            if invoice is None:
                created = await self._api.invoices.create_async(
                    {
                        "customer": customer,
                        "currency": new.currency,
                        "auto_advance": False,
                        "collection_method": "charge_automatically",
                        "pending_invoice_items_behavior": "exclude",
                        "metadata": {"cause": new.cause},
                        **self._tax,
                    },
                    {"idempotency_key": f"invoice:{customer}:{new.cause}"},
                )
                invoice = created.to_dict()
            if invoice["status"] == "draft":
                await self._add_items(customer, invoice["id"], new)
                await self._api.invoices.finalize_invoice_async(invoice["id"], {"auto_advance": new.is_charged})
        if new.is_charged:
            with suppress(
                PaymentDeclined, Unprocessable
            ):  # without a card or after a decline, Stripe tries again later
                await self.pay_invoice(invoice["id"])
        return str(invoice["id"])

    async def _add_items(self, customer: str, invoice: str, new: NewInvoice) -> None:
        """Add the lines to a draft that may contain some of them already, after a process died."""
        present = await self._list(self._api.invoice_items.list_async, {"invoice": invoice}, reads_all=True)
        known = {item["metadata"].get("line") for item in present}
        for number, line in enumerate(new.lines):
            if str(number) in known:
                continue
            await self._api.invoice_items.create_async(
                {
                    "customer": customer,
                    "invoice": invoice,
                    "amount": line.amount,
                    "currency": new.currency,
                    "description": line.description,
                    "period": {"start": int(line.period.start.timestamp()), "end": int(line.period.end.timestamp())},
                    "metadata": {
                        "line": str(number),
                        "quantity": str(line.quantity),
                        **({"meter": line.meter} if line.meter else {}),
                    },
                },
                {"idempotency_key": f"line:{invoice}:{number}"},
            )

    async def preview_invoice(self, customer: str, amount: int, currency: str) -> tuple[int, int]:
        if not self._tax:
            return 0, amount
        async with _translate_errors():
            draft = await self._api.invoices.create_async(
                {"customer": customer, "currency": currency, "pending_invoice_items_behavior": "exclude", **self._tax}
            )
            try:
                item: Any = {"customer": customer, "invoice": draft.id, "amount": amount, "currency": currency}
                await self._api.invoice_items.create_async(item)
                priced = await self._api.invoices.retrieve_async(draft.id)
            finally:
                await self._api.invoices.delete_async(draft.id)
            return priced.total - amount, priced.total

    async def pay_invoice(self, invoice: str) -> None:
        async with _translate_errors():
            found = await self._api.invoices.retrieve_async(invoice)
            if found.status != "paid":
                await self._api.invoices.pay_async(invoice)

    async def void_invoice(self, invoice: str) -> None:
        async with _translate_errors():
            found = await self._api.invoices.retrieve_async(invoice)
            if found.status == "open":
                await self._api.invoices.void_invoice_async(invoice)

    async def refund_invoice(self, invoice: str, amount: int, key: str) -> None:
        async with _translate_errors():
            found = await self._api.invoices.retrieve_async(invoice, {"expand": ["payments"]})
            intents = _list_payment_intents(found.to_dict())
            if not intents:
                raise Unprocessable("The invoice is not paid.")
            await self._api.refunds.create_async(
                {"payment_intent": intents[0], "amount": amount, "reason": "requested_by_customer"},
                {"idempotency_key": key},
            )

    def parse_event(self, body: bytes, signature: str) -> ProviderEvent:
        try:
            stripe.WebhookSignature.verify_header(
                body, signature, self._webhook_secret, tolerance=SIGNATURE_TOLERANCE_SECONDS
            )
            event = json.loads(body)
            changed = event["data"]["object"]
            customer = changed["id"] if changed["object"] == "customer" else changed.get("customer")
            return ProviderEvent(str(event["id"]), _get_id(customer) if customer else None)
        except (stripe.SignatureVerificationError, ValueError, KeyError, TypeError, AttributeError):
            raise InvalidSignature from None

    async def _list(
        self, list_page: Callable[[Any], Awaitable[Any]], query: Json, *, reads_all: bool
    ) -> Sequence[dict[str, Any]]:
        """Return the objects of a list, newest first: all of them, or the first page."""
        found: list[dict[str, Any]] = []
        more: Json = {}
        while True:
            page = await list_page({**query, "limit": PAGE, **more})
            found += [one.to_dict() for one in page.data]
            if not page.has_more or not reads_all:
                return found
            more = {"starting_after": found[-1]["id"]}

    async def _build_item(self, plan: PricedPlan) -> dict[str, Any]:
        """Return a subscription item with the plan's price; the plan's product is created on first use."""
        product = PRODUCT_PREFIX + plan.code
        if product not in self._known_products:
            try:
                await self._api.products.create_async({"id": product, "name": plan.name})
            except stripe.InvalidRequestError as error:
                if error.code != "resource_already_exists":
                    raise
            self._known_products.add(product)
        return {
            "quantity": 1,
            "price_data": {
                "product": product,
                "currency": plan.currency,
                "unit_amount": plan.monthly,
                "recurring": {"interval": MONTH},
            },
        }

    async def _build_changed_item(self, subscription: PlanSubscription, plan: PricedPlan) -> dict[str, Any]:
        """Return the item of the subscription with another price."""
        current = await self._api.subscriptions.retrieve_async(subscription.id)
        return {"id": current.to_dict()["items"]["data"][0]["id"], **await self._build_item(plan)}

    async def _find_promotion_code(self, code: str) -> str:
        found = await self._api.promotion_codes.list_async({"code": code, "active": True, "limit": 1})
        if not found.data:
            raise Unprocessable.for_field("promotion_code", "invalid_value", "This promotion code is not valid.")
        return str(found.data[0].id)

    async def _read_schedule(self, subscription: Any) -> tuple[ScheduledChange, int] | None:
        """Return the plan of the next phase of the subscription's schedule with its price, or None."""
        if subscription is None or subscription.schedule is None or isinstance(subscription.schedule, str):
            return None
        schedule = subscription.schedule.to_dict()
        current = schedule["current_phase"]
        phase = next((one for one in schedule["phases"] if current and one["start_date"] >= current["end_date"]), None)
        if phase is None:
            return None
        price = await self._api.prices.retrieve_async(_get_id(phase["items"][0]["price"]))
        plan = _get_id(price.product).removeprefix(PRODUCT_PREFIX)
        return ScheduledChange(plan, MONTH, _read_time(phase["start_date"])), price.unit_amount or 0


class _Declined(PaymentDeclined):
    """Declined payment with the code that Stripe states."""

    def __init__(self, message: str | None = None, code_of_provider: str = "") -> None:
        super().__init__(message)
        self.code_of_provider = code_of_provider


@asynccontextmanager
async def _translate_errors() -> AsyncIterator[None]:
    """Raise the domain's errors instead of the SDK's."""
    try:
        yield
    except stripe.CardError as error:
        message = error.user_message or "The card was declined."
        raise _Declined(f"{message} Use another card, or ask the issuer of the card.", error.code or "") from error
    except stripe.IdempotencyError as error:
        raise IdempotencyKeyReused from error
    except stripe.InvalidRequestError as error:
        if error.http_status == 409:
            raise Unavailable(
                "The payment provider is processing another request. Try again.", retry_after=5
            ) from error
        if error.code in _NEEDS_CUSTOMER:
            raise _Declined(error.user_message or "The payment must be confirmed.", error.code or "") from error
        if "currenc" in (error.user_message or "").lower():  # no code, and not always a parameter
            raise CurrencyUnsupported(error.user_message) from error
        raise Unprocessable(f"The payment provider refuses the request: {error.user_message}") from error
    except stripe.StripeError as error:
        raise Unavailable("The payment provider is unavailable. Try again.", retry_after=30) from error


def _get_id(value: Any) -> str:
    """Return the ID of an object that may be expanded."""
    return str(value if isinstance(value, str) else value["id"])


def _read_time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _build_address(address: Address) -> dict[str, str]:
    names = ("line1", "line2", "city", "state", "postal_code", "country")
    return {name: getattr(address, name) or "" for name in names}


def _read_details(customer: Json) -> BillingDetails:
    address = customer.get("address")
    tax_ids = (customer.get("tax_ids") or {}).get("data", [])
    return BillingDetails(
        customer.get("name") or None,
        customer.get("email") or None,
        Address(address["country"], *(address.get(name) or None for name in Address.__slots__[1:]))
        if address and address.get("country")
        else None,
        TaxId(TaxIdType(tax_ids[0]["type"]), tax_ids[0]["value"]) if tax_ids else None,
    )


def _is_current(subscription: Any) -> bool:
    """Return whether the subscription has not ended, and is for a plan, not for something else that the operator sells."""
    item = subscription.to_dict()["items"]["data"][0]
    return subscription.status in _STATUSES and _get_id(item["price"]["product"]).startswith(PRODUCT_PREFIX)


def _is_incomplete(subscription: Any) -> bool:
    return bool(subscription.status == "incomplete")


def _read_subscription(subscription: Json, following: tuple[ScheduledChange, int] | None) -> PlanSubscription:
    item = subscription["items"]["data"][0]
    price = item["price"]
    discounts = [one for one in subscription["discounts"] if isinstance(one, Mapping)]
    cancel_at = subscription["cancel_at"]
    plan = _get_id(price["product"]).removeprefix(PRODUCT_PREFIX)
    amount = (price["unit_amount"] or 0) * item["quantity"]  # null for prices with tiers or fractions of minor units
    return PlanSubscription(
        id=subscription["id"],
        status=_STATUSES[subscription["status"]],
        plan=plan,
        currency=subscription["currency"],
        price=amount,
        next_price=following[1] if following else amount,
        interval=price["recurring"]["interval"],
        current_period_start=_read_time(item["current_period_start"]),
        current_period_end=_read_time(item["current_period_end"]),
        cancel_at_period_end=subscription["cancel_at_period_end"],
        latest_invoice=_get_id(subscription["latest_invoice"]) if subscription["latest_invoice"] else None,
        cancel_at=_read_time(cancel_at) if cancel_at else None,
        discount=_read_discount(discounts[0]) if discounts else None,
        scheduled_change=following[0] if following and following[0].plan != plan else None,
        started_at=_read_time(subscription["created"]),
    )


def _read_discount(discount: Json) -> Discount:
    coupon = discount["source"]["coupon"]
    return Discount(
        coupon.get("name") or coupon["id"],
        float(coupon["percent_off"]) if coupon.get("percent_off") is not None else None,
        coupon.get("amount_off"),
        _read_time(discount["end"]) if discount["end"] else None,
    )


def _read_invoice(invoice: Json, refunded: Mapping[str, int]) -> Invoice:
    paid_at = invoice["status_transitions"]["paid_at"]
    return Invoice(
        id="",
        provider_id=invoice["id"],
        number=invoice["number"],
        status=InvoiceStatus(invoice["status"]),
        currency=invoice["currency"],
        total=invoice["total"],
        tax=sum(tax["amount"] for tax in invoice["total_taxes"] or ()),
        amount_due=invoice["amount_remaining"],
        refunded=sum(refunded.get(intent, 0) for intent in _list_payment_intents(invoice)),
        lines=tuple(_read_lines(invoice)),
        cause=invoice["metadata"].get("cause"),
        subscription=_find_subscription(invoice),
        has_failed=invoice["status"] == "open" and invoice["attempt_count"] > 0,
        hosted_invoice_url=invoice["hosted_invoice_url"],
        invoice_pdf=invoice["invoice_pdf"],
        created_at=_read_time(invoice["created"]),
        due_at=_read_time(invoice["due_date"]) if invoice["due_date"] else None,
        paid_at=_read_time(paid_at) if paid_at else None,
    )


def _find_subscription(invoice: Json) -> str | None:
    """Return the ID of the subscription that the invoice is for, or None."""
    details = (invoice["parent"] or {}).get("subscription_details") or {}
    return _get_id(details["subscription"]) if details.get("subscription") else None


def _list_payment_intents(invoice: Json) -> list[str]:
    payments = (invoice.get("payments") or {}).get("data", [])
    return [
        _get_id(payment["payment"]["payment_intent"])
        for payment in payments
        if payment["status"] == "paid" and payment["payment"].get("payment_intent")
    ]


def _read_lines(invoice: Json) -> list[InvoiceLine]:
    lines = []
    for line in invoice["lines"]["data"]:
        parent = line["parent"] or {}
        details = parent.get("subscription_item_details") or parent.get("invoice_item_details") or {}
        metadata = line["metadata"] if "line" in line["metadata"] else {}  # of lines that the service has created
        lines.append(
            InvoiceLine(
                line["description"] or "",
                line["amount"] - sum(one["amount"] for one in line["discount_amounts"] or ()),
                Period(_read_time(line["period"]["start"]), _read_time(line["period"]["end"])),
                int(metadata.get("quantity") or line["quantity"] or 1),
                metadata.get("meter"),
                bool(details.get("proration")),
            )
        )
    return lines
