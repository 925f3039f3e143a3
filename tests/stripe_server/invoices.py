"""Prices, discounts, invoice items and invoices."""

from fractions import Fraction
from typing import Any

from tests.stripe_server.errors import ApiError, InvalidParameters
from tests.stripe_server.payments import Payments
from tests.stripe_server.periods import DAY, HOUR, add_intervals, round_amount
from tests.stripe_server.store import Document

SELF = {"type": "self"}
ENDED = ("canceled", "incomplete_expired")
EMBEDDED_LINES = 10


class Invoices(Payments):
    """State machine of invoices, with the settings of the account."""

    account_country = "DE"
    final_status = "canceled"
    """Status of a subscription after the last retry failed: `canceled`, `unpaid` or `past_due`."""
    retry_days = (3, 5, 7)
    """Days of the retries, after the first attempt."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.tax_rates: dict[str, float] = {}
        """Percentage by country of the customer, for automatic tax."""
        self.included |= {
            ("customer", "tax_ids"): lambda each: self._include("tax_id", each, f"/v1/customers/{each['id']}/tax_ids"),
            ("customer", "subscriptions"): lambda each: self._include("subscription", each, "/v1/subscriptions"),
            ("invoice", "confirmation_secret"): self._describe_secret,
            ("invoice", "payments"): lambda each: self.wrap(
                [self.render(row) for row in self.select("invoice_payment", invoice=each["id"])], "/v1/invoice_payments"
            ),
        }

    def render(self, document: Document) -> Document:
        """Return a copy without the fields of the server; an invoice has its first ten lines only."""
        rendered = super().render(document)
        if rendered.get("object") == "invoice" and len(rendered["lines"]["data"]) > EMBEDDED_LINES:
            rendered["lines"] |= {"data": rendered["lines"]["data"][:EMBEDDED_LINES], "has_more": True}
        return rendered

    def update_subscription_status(self, invoice: Document, *, is_paid: bool) -> None:
        """Adapt the subscription to the payment of an invoice; implemented by subscriptions."""
        raise NotImplementedError

    def _include(self, kind: str, customer: Document, url: str) -> Document:
        return self.wrap([self.render(row) for row in self.select(kind, customer=customer["id"])], url)

    def _describe_secret(self, invoice: Document) -> Document | None:
        intent = self.find_intent(invoice["id"])
        return intent and {"client_secret": intent["client_secret"], "type": "payment_intent"}

    def find_intent(self, invoice: str) -> Document | None:
        """Return the payment intent of an invoice."""
        return next(iter(self.select("payment_intent", _invoice=invoice)), None)

    def resolve_price(self, data: Document, customer_currency: str | None = None) -> Document:
        """Return the price of `price`, or a new one for `price_data`."""
        if "price" in data:
            return self.get("price", data["price"], "price")
        if "price_data" not in data:
            raise InvalidParameters("You must specify either `price` or `price_data`.", "price_data")
        data = data["price_data"]
        self.get("product", data["product"], "price_data[product]")
        decimal = data.get("unit_amount_decimal", str(data.get("unit_amount", "")))
        if not decimal:
            raise InvalidParameters("One of unit_amount or unit_amount_decimal is required.", "price_data[unit_amount]")
        if data.get("tax_behavior") == "inclusive":
            raise InvalidParameters("The server supports exclusive tax only.", "price_data[tax_behavior]")
        recurring = data.get("recurring")
        price = self.add("price", {
            "active": False, "billing_scheme": "per_unit", "currency": data["currency"].lower(), "metadata": {},
            "product": data["product"], "recurring": recurring and {"interval": recurring["interval"],
            "interval_count": recurring.get("interval_count", 1), "usage_type": "licensed"},
            "tax_behavior": data.get("tax_behavior", "unspecified"), "type": "recurring" if recurring else "one_time",
            "unit_amount": int(decimal) if decimal.lstrip("-").isdigit() else None, "unit_amount_decimal": decimal,
        })  # fmt: skip
        self.emit("price.created", price)
        return price

    def check_currency(self, customer: Document, currency: str) -> None:
        """Bind the customer to a currency. Raises ApiError while objects in another currency are in use."""
        rows = [
            *(each for each in self.select("subscription", customer=customer["id"]) if each["status"] not in ENDED),
            *(each for each in self.select("invoice", customer=customer["id"]) if each["status"] in ("draft", "open")),
            *self.select("invoiceitem", customer=customer["id"], invoice=None),
        ]
        if other := next((each["currency"] for each in rows if each["currency"] != currency), None):
            raise ApiError(400, "You cannot combine currencies on a single customer. This customer has an active "
                           "subscription, subscription schedule, discount, quote, or invoice item with currency "
                           f"{other}", param="currency")  # fmt: skip
        with self.track(customer, "customer.updated"):
            customer["currency"] = currency

    # Discounts

    def create_discounts(self, requested: Any, customer: str, subscription: str) -> list[str]:
        """Return the IDs of new discounts for coupons and promotion codes."""
        ids = []
        for each in requested or ():
            if "discount" in each:
                ids.append(self.get("discount", each["discount"], "discounts")["id"])
                continue
            promotion = None
            if "promotion_code" in each:
                promotion = self.get("promotion_code", each["promotion_code"], "discounts[0][promotion_code]")
                expired = promotion["expires_at"] is not None and promotion["expires_at"] <= self.now
                if not promotion["active"] or expired or self._is_exhausted(promotion):
                    raise InvalidParameters("This promotion code cannot be redeemed because it is inactive, expired "
                                            "or used up.", "discounts[0][promotion_code]", "promotion_code_expired")  # fmt: skip
            coupon = self.get(
                "coupon", promotion["promotion"]["coupon"] if promotion else each["coupon"], "discounts[0][coupon]"
            )
            if self._is_exhausted(coupon) or (coupon["redeem_by"] or self.now) < self.now:
                raise InvalidParameters(f"Coupon {coupon['id']} is used up and cannot be applied.",
                                        "discounts[0][coupon]", "coupon_expired")  # fmt: skip
            for row in filter(None, (promotion, coupon)):
                row["times_redeemed"] += 1
            coupon["valid"] = not self._is_exhausted(coupon)
            months = coupon["duration_in_months"]
            discount = self.add("discount", {
                "customer": customer, "end": None if months is None else add_intervals(self.now, "month", months),
                "invoice": None, "promotion_code": promotion and promotion["id"], "source": {"coupon": coupon["id"],
                "type": "coupon"}, "start": self.now, "subscription": subscription, "_is_used": False,
            })  # fmt: skip
            self.emit("customer.discount.created", discount)
            ids.append(discount["id"])
        return ids

    def _is_exhausted(self, row: Document) -> bool:
        return row["max_redemptions"] is not None and row["times_redeemed"] >= row["max_redemptions"]

    def compute_discounts(self, ids: list[str], amount: int, currency: str) -> list[Document]:
        """Return the amount of each discount for an amount of one line."""
        amounts, left = [], amount
        for id in ids:
            discount = self.get("discount", id)
            if discount["_is_used"] or (discount["end"] is not None and discount["end"] <= self.now) or left <= 0:
                continue
            coupon = self.get("coupon", discount["source"]["coupon"])
            if coupon["percent_off"] is not None:
                off = round_amount(Fraction(str(coupon["percent_off"])) * left / 100)
            else:
                off = min(left, coupon["amount_off"] if coupon["currency"] == currency else 0)
            left -= off
            amounts.append({"amount": off, "discount": id})
        return amounts

    def use_discounts(self, ids: list[str]) -> None:
        """Mark the discounts of coupons with the duration `once` as used."""
        for id in ids:
            discount = self.get("discount", id)
            discount["_is_used"] = self.get("coupon", discount["source"]["coupon"])["duration"] == "once"

    # Invoice items

    def create_invoiceitem(
        self, customer: str, price: Document, quantity: int, amount: int, description: str | None,
        period: tuple[int, int], metadata: Document, parent: tuple[str, str] | None = None, invoice: str | None = None,
    ) -> Document:  # fmt: skip
        """Create a pending invoice item; `parent` is the subscription and its item, for a proration."""
        details = {"type": "subscription_details", "subscription_details": dict(
            zip(("subscription", "subscription_item"), parent or (), strict=False))}  # fmt: skip
        item = self.add("invoiceitem", {
            "amount": amount, "currency": price["currency"], "customer": customer, "date": self.now,
            "description": description, "discountable": parent is None, "discounts": [], "invoice": invoice,
            "metadata": metadata, "net_amount": amount, "parent": details if parent else None,
            "period": {"start": period[0], "end": period[1]}, "pricing": build_pricing(price),
            "proration": parent is not None, "quantity": quantity, "quantity_decimal": str(quantity), "tax_rates": [],
            "test_clock": self.find_clock(customer),
        })  # fmt: skip
        self.emit("invoiceitem.created", item)
        return item

    def find_clock(self, customer: str) -> str | None:
        """Return the test clock of a customer."""
        return self.get("customer", customer)["test_clock"]

    def build_item_line(self, item: Document) -> Document:
        """Return the line of an invoice item."""
        details: Document = {"invoice_item": item["id"], "proration": item["proration"], "subscription": None}
        if item["proration"]:
            details |= {"proration_details": {}}
        kind = "invoice_item_details"
        if item["parent"] is not None:
            details |= item["parent"]["subscription_details"]
            kind = "subscription_item_details"
        line = self.build_line(item["amount"], item["currency"], item["description"], item["period"], item["pricing"],
                               item["quantity"], {"type": kind, kind: details}, item["metadata"])  # fmt: skip
        return line | {"_item": item["id"]}

    def build_line(
        self, amount: int, currency: str, description: str | None, period: Document, pricing: Document,
        quantity: int | None, parent: Document, metadata: Document, discounts: list[Document] | None = None,
    ) -> Document:  # fmt: skip
        """Return a line of an invoice, before tax."""
        subscription = parent[parent["type"]].get("subscription")
        kind = "subscription_item_details" if parent["type"] == "subscription_item_details" else "invoice_item_details"
        parent = {"type": kind, kind: parent[parent["type"]]}
        return self.build("line_item", {
            "id": self.create_id("line_item"), "amount": amount, "currency": currency,
            "description": description, "discount_amounts": discounts or [], "discountable": not discounts,
            "discounts": [each["discount"] for each in discounts or ()], "invoice": None,
            "metadata": metadata, "parent": parent, "period": period, "pretax_credit_amounts": [], "pricing": pricing,
            "quantity": quantity, "quantity_decimal": None if quantity is None else str(quantity),
            "subscription": subscription, "subtotal": amount, "taxes": [],
        })  # fmt: skip

    # Invoices

    def create_invoice(
        self, customer: Document, reason: str, lines: list[Document], currency: str, *,
        subscription: Document | None = None, period: tuple[int, int] | None = None, auto_advance: bool = True,
        automatic_tax: bool = False, metadata: Document | None = None, description: str | None = None,
        collection_method: str = "charge_automatically", days_until_due: int | None = None,
    ) -> Document:  # fmt: skip
        """Create a draft; pending invoice items of the customer are among `lines`."""
        start, end = period or (self.now, self.now)
        parent = None
        if subscription is not None:
            automatic_tax = subscription["automatic_tax"]["enabled"]
            details = {"metadata": subscription["metadata"], "subscription": subscription["id"]}
            parent = {"subscription_details": details, "type": "subscription_details"}
        id = self.create_id("invoice")
        invoice = self.add("invoice", {
            "account_country": self.account_country, "account_name": "Test",
            "amount_due": 0, "amount_overpaid": 0, "amount_paid": 0, "amount_paid_off_stripe": 0,
            "amount_remaining": 0, "amount_shipping": 0, "attempt_count": 0, "attempted": False,
            "auto_advance": auto_advance, "automatic_tax": {
                "enabled": automatic_tax, "liability": SELF if automatic_tax else None,
                "provider": "stripe" if automatic_tax else None, "status": "complete" if automatic_tax else None},
            "automatically_finalizes_at": self.now + HOUR if auto_advance else None, "billing_reason": reason,
            "collection_method": collection_method, "currency": currency,
            "customer": customer["id"], "customer_address": customer["address"],
            "customer_email": customer["email"], "customer_name": customer["name"],
            "customer_phone": customer["phone"],
            "customer_tax_exempt": customer["tax_exempt"], "customer_tax_ids": [
                {"type": each["type"], "value": each["value"]}
                for each in self.select("tax_id", customer=customer["id"])],
            "default_payment_method": None, "default_tax_rates": [],
            "description": description, "discounts": [],
            "due_date": None if days_until_due is None else self.now + days_until_due * DAY,
            "hosted_invoice_url": None,
            "invoice_pdf": None, "issuer": SELF,
            "lines": self.wrap([line | {"invoice": id} for line in lines], f"/v1/invoices/{id}/lines"),
            "metadata": metadata or {}, "next_payment_attempt": None, "number": None,
            "parent": parent, "payment_settings": {
                },
            "period_end": end, "period_start": start, "post_payment_credit_notes_amount": 0,
            "pre_payment_credit_notes_amount": 0,
            "starting_balance": 0, "status": "draft",
            "status_transitions": dict.fromkeys(("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")),
            "subtotal": 0, "subtotal_excluding_tax": 0, "test_clock": customer["test_clock"], "total": 0,
            "total_discount_amounts": [], "total_excluding_tax": 0, "total_pretax_credit_amounts": [],
            "total_taxes": [],
            "_subscription": subscription and subscription["id"], "_attempted_at": None,
        }, id)  # fmt: skip
        for line in lines:
            if "_item" in line:
                self.get("invoiceitem", line["_item"])["invoice"] = id
        invoice["lines"]["data"] = [self.render(line) for line in invoice["lines"]["data"]]
        self.compute_totals(invoice)
        self.emit("invoice.created", invoice)
        return invoice

    def compute_totals(self, invoice: Document) -> None:
        """Compute taxes, totals and the amount due with the customer's balance."""
        customer = self.get("customer", invoice["customer"])
        taxes: dict[str, Document] = {}
        discounts: dict[str, int] = {}
        for line in invoice["lines"]["data"]:
            for each in line["discount_amounts"]:
                discounts[each["discount"]] = discounts.get(each["discount"], 0) + each["amount"]
            net = line["amount"] - sum(each["amount"] for each in line["discount_amounts"])
            line["taxes"] = [self._compute_tax(customer, net)] if invoice["automatic_tax"]["enabled"] else []
            for tax in line["taxes"]:
                total = taxes.setdefault(tax["taxability_reason"], tax | {"amount": 0, "taxable_amount": 0})
                total["amount"] += tax["amount"]
                total["taxable_amount"] += tax["taxable_amount"]
        subtotal = sum(line["amount"] for line in invoice["lines"]["data"])
        net = subtotal - sum(discounts.values())
        total = net + sum(tax["amount"] for tax in taxes.values())
        due = max(0, total + customer["balance"]) if total > 0 else 0
        invoice |= {
            "subtotal": subtotal, "subtotal_excluding_tax": subtotal, "total": total, "total_excluding_tax": net,
            "total_discount_amounts": [{"amount": v, "discount": k} for k, v in discounts.items()],
            "total_taxes": list(taxes.values()), "starting_balance": customer["balance"], "amount_due": due,
            "amount_remaining": due,
        }  # fmt: skip

    def _compute_tax(self, customer: Document, amount: int) -> Document:
        country = (customer["address"] or {}).get("country")
        is_reversed = country != self.account_country and any(
            each["type"] == "eu_vat" for each in self.select("tax_id", customer=customer["id"])
        )
        if customer["tax_exempt"] != "none":
            rate, reason = 0.0, {"exempt": "customer_exempt", "reverse": "reverse_charge"}[customer["tax_exempt"]]
        elif is_reversed:
            rate, reason = 0.0, "reverse_charge"
        else:
            rate = self.tax_rates.get(country or "", 0.0)
            reason = "standard_rated" if rate else "not_collecting"
        return {
            "amount": round_amount(Fraction(str(rate)) * amount / 100), "tax_behavior": "exclusive",
            "tax_rate_details": {"tax_rate": f"txr_{country}_{rate}"} if rate else None, "taxability_reason": reason,
            "taxable_amount": amount if rate else 0, "type": "tax_rate_details",
        }  # fmt: skip

    def find_payment_method(self, invoice: Document) -> str | None:
        """Return the ID of the payment method that Stripe charges by default."""
        subscription = invoice["_subscription"] and self.get("subscription", invoice["_subscription"])
        settings = self.get("customer", invoice["customer"])["invoice_settings"]
        return (subscription and subscription["default_payment_method"]) or settings["default_payment_method"]

    def finalize(self, invoice: Document) -> None:
        """Finalise a draft, apply the customer's balance, and create the payment intent."""
        customer = self.get("customer", invoice["customer"])
        self.compute_totals(invoice)
        with self.track(customer, "customer.updated"):
            customer["balance"] += invoice["total"] - invoice["amount_due"]
            number = customer["next_invoice_sequence"]
            customer["next_invoice_sequence"] += 1
        url = f"https://invoice.stripe.com/i/{invoice['id']}"
        invoice["status_transitions"]["finalized_at"] = self.now
        invoice |= {
            "status": "open", "number": f"{customer['invoice_prefix']}-{number:04d}", "effective_at": self.now,
            "ending_balance": customer["balance"], "automatically_finalizes_at": None, "hosted_invoice_url": url,
            "invoice_pdf": f"{url}/pdf",
        }  # fmt: skip
        if invoice["amount_due"] > 0:
            intent = self.create_payment_intent(invoice, self.find_payment_method(invoice))
            self.add("invoice_payment", {
                "amount_requested": invoice["amount_due"], "currency": invoice["currency"], "invoice": invoice["id"],
                "is_default": True, "payment": {"payment_intent": intent["id"], "type": "payment_intent"},
                "status": "open", "status_transitions": {"canceled_at": None, "paid_at": None},
            })  # fmt: skip
        self.emit("invoice.finalized", invoice)
        if invoice["amount_due"] == 0:
            self._mark_paid(invoice)

    def pay(self, invoice: Document, method: Document | None, *, off_session: bool = True) -> Document | None:
        """Pay an open invoice.

        Returns:
            The error of the card, or None if the invoice is paid.
        """
        if invoice["status"] == "paid":
            return None
        intent = self.find_intent(invoice["id"])
        assert intent is not None
        if method is None and (default := self.find_payment_method(invoice)) is not None:
            method = self.get("payment_method", default)
        if method is None:
            self._record_failure(invoice, intent)
            return {"type": "invalid_request_error", "code": "resource_missing", "message":
                    "Cannot charge a customer that has no active card or payment method."}  # fmt: skip
        self.attempt(intent, method, off_session=off_session)
        if intent["status"] == "succeeded":
            self.settle(intent)
            return None
        self._record_failure(invoice, intent)
        if intent["status"] == "requires_action":
            return build_action_error("invoice")
        return intent["last_payment_error"]

    def settle(self, intent: Document) -> None:
        """Mark the invoice of a paid intent as paid."""
        invoice = self.get("invoice", intent["_invoice"])
        invoice |= {"attempted": True, "attempt_count": invoice["attempt_count"] + 1}
        for payment in self.select("invoice_payment", invoice=invoice["id"], status="open"):
            payment |= {"status": "paid", "amount_paid": intent["amount"]}
            payment["status_transitions"]["paid_at"] = self.now
            self.emit("invoice_payment.paid", payment)
        invoice |= {"amount_paid": intent["amount"], "amount_remaining": 0}
        self._mark_paid(invoice)

    def _mark_paid(self, invoice: Document) -> None:
        invoice["status_transitions"]["paid_at"] = self.now
        invoice |= {"status": "paid", "attempted": True, "auto_advance": False, "next_payment_attempt": None}
        for type in ("invoice.paid", "invoice.payment_succeeded"):
            self.emit(type, invoice)
        self.update_subscription_status(invoice, is_paid=True)

    def report_failure(self, intent: Document) -> None:
        """Record that the payment of the invoice of an intent failed."""
        self._record_failure(self.get("invoice", intent["_invoice"]), intent)

    def _record_failure(self, invoice: Document, intent: Document) -> None:
        """Count an attempt and schedule the next one; an incomplete subscription has no retries."""
        invoice |= {"attempted": True, "attempt_count": invoice["attempt_count"] + 1}
        if invoice["auto_advance"] and invoice["billing_reason"] != "subscription_create":
            first = invoice["_attempted_at"] = invoice["_attempted_at"] or self.now
            times = [first + day * DAY for day in self.retry_days]
            invoice["next_payment_attempt"] = next((each for each in times if each > self.now), None)
        self.emit("invoice.payment_failed", invoice)
        if intent["status"] == "requires_action":
            self.emit("invoice.payment_action_required", invoice)
        self.emit("invoice.updated", invoice)
        self.update_subscription_status(invoice, is_paid=False)

    def close(self, invoice: Document, status: str) -> None:
        """Void an invoice or mark it as uncollectible."""
        names = {"void": "voided_at", "uncollectible": "marked_uncollectible_at"}
        if invoice["status"] not in (("open", "uncollectible") if status == "void" else ("open",)):
            raise ApiError(400, f"You can only change an open invoice to {status}; this invoice is "
                           f"{invoice['status']}.", code="invoice_not_editable")  # fmt: skip
        invoice["status_transitions"][names[status]] = self.now
        invoice |= {"status": status, "auto_advance": False, "next_payment_attempt": None}
        intent = self.find_intent(invoice["id"])
        if status == "void" and intent is not None:
            intent |= {"status": "canceled", "canceled_at": self.now, "cancellation_reason": "void_invoice"}
            self.emit("payment_intent.canceled", intent)
            for payment in self.select("invoice_payment", invoice=invoice["id"], status="open"):
                payment["status"] = "canceled"
                payment["status_transitions"]["canceled_at"] = self.now
        self.emit("invoice.voided" if status == "void" else "invoice.marked_uncollectible", invoice)


def build_pricing(price: Document) -> Document:
    """Return the price of a line."""
    details = {"price": price["id"], "product": price["product"]}
    return {"price_details": details, "type": "price_details", "unit_amount_decimal": price["unit_amount_decimal"]}


def build_action_error(subject: str) -> Document:
    """Return the error of a payment that the customer has to authenticate."""
    return {
        "type": "card_error",
        "code": f"{subject}_payment_intent_requires_action",
        "decline_code": "authentication_required",
        "message": "This payment requires additional user action before it can be completed successfully.",
    }
