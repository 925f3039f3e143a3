"""Cards, intents, charges and refunds."""

from typing import Any

from tests.stripe_server.errors import ApiError
from tests.stripe_server.store import Document, Store

CARDS: dict[str, tuple[str, str, str | None]] = {
    "pm_card_visa": ("visa", "4242", None),
    "pm_card_mastercard": ("mastercard", "4444", None),
    "pm_card_chargeCustomerFail": ("visa", "0341", "generic_decline"),
    "pm_card_chargeDeclined": ("visa", "0002", "generic_decline"),
    "pm_card_chargeDeclinedInsufficientFunds": ("visa", "9995", "insufficient_funds"),
    "pm_card_authenticationRequired": ("visa", "3184", "authentication_required"),
}
"""Brand, last digits and reason of the decline of Stripe's test cards."""
_ATTACHABLE = frozenset({"4242", "4444", "0341", "3184"})
_AUTOMATIC = {"allow_redirects": "always", "enabled": True}


def build_decline(reason: str) -> Document:
    """Return the error of a declined card."""
    message = {
        "insufficient_funds": "Your card has insufficient funds.",
        "authentication_required": "Your card was declined. This transaction requires authentication.",
    }.get(reason, "Your card was declined.")
    code = "authentication_required" if reason == "authentication_required" else "card_declined"
    return {"code": code, "decline_code": reason, "message": message, "type": "card_error"}


class Payments(Store):
    """State machine of the payments of invoices."""

    def settle(self, intent: Document) -> None:
        """Update the invoice of a paid intent; implemented by billing."""
        raise NotImplementedError

    def report_failure(self, intent: Document) -> None:
        """Update the invoice of an intent that failed in the browser; implemented by billing."""
        raise NotImplementedError

    def resolve_payment_method(self, id: str, param: str = "payment_method") -> Document:
        """Return a stored payment method, or a new one for the name of a test card."""
        if id not in CARDS:
            return self.get("payment_method", id, param)
        brand, last4, _ = CARDS[id]
        names = dict.fromkeys(("address", "email", "name", "phone", "tax_id"))
        checks = {"cvc_check": "pass"}
        card = {
            "brand": brand, "checks": checks, "country": "US", "display_brand": brand, "exp_month": 12,
            "exp_year": 2040, "fingerprint": f"fp{last4}", "funding": "credit", "last4": last4,
            "networks": {"available": [brand]}, "regulated_status": "unregulated",
            "three_d_secure_usage": {"supported": True},
        }  # fmt: skip
        return self.add("payment_method", {
            "allow_redisplay": "unspecified", "billing_details": names, "card": card, "metadata": {}, "type": "card",
            "_card": id,
        })  # fmt: skip

    def attach(self, method: Document, customer: str) -> None:
        """Attach a payment method to a customer. Raises ApiError for cards that a bank declines at once."""
        if method["customer"] not in (None, customer):
            raise ApiError(400, "The payment method you provided has already been attached to a customer.",
                           code="payment_method_unexpected_state", param="payment_method")  # fmt: skip
        if method["card"]["last4"] not in _ATTACHABLE:
            raise ApiError(402, **build_decline(CARDS[method["_card"]][2] or ""))
        if method["customer"] is None:
            method["customer"] = customer
            self.emit("payment_method.attached", method)

    def create_setup_intent(self, parameters: Document) -> Document:
        """Create an intent to store a card."""
        id = self.create_id("setup_intent")
        automatic = parameters.get("automatic_payment_methods", {"enabled": True})
        intent = self.add("setup_intent", {
            "automatic_payment_methods": {"allow_redirects": "always"} | automatic,
            "client_secret": f"{id}_secret_{self.create_id('request')[4:]}", "customer": parameters.get("customer"),
            "description": parameters.get("description"), "last_setup_error": None,
            "metadata": parameters.get("metadata") or {}, "next_action": None, "payment_method": None,
            "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
            "payment_method_types": parameters.get("payment_method_types", ["card"]),
            "status": "requires_payment_method", "usage": parameters.get("usage", "off_session"),
        }, id)  # fmt: skip
        self.emit("setup_intent.created", intent)
        return intent

    def confirm_setup_intent(self, intent: Document, method: Document, return_url: str | None) -> None:
        """Confirm an intent with a card. Raises ApiError if the bank declines the card."""
        if intent["status"] in ("succeeded", "canceled"):
            raise ApiError(400, f"You cannot confirm this SetupIntent because it has a status of {intent['status']}.",
                           code="setup_intent_unexpected_state")  # fmt: skip
        if method["card"]["last4"] not in _ATTACHABLE:
            error = build_decline(CARDS[method["_card"]][2] or "")
            intent |= {"last_setup_error": error, "status": "requires_payment_method"}
            self.emit("setup_intent.setup_failed", intent)
            raise ApiError(402, **error, setup_intent=self.render(intent))
        intent |= {"payment_method": method["id"], "last_setup_error": None}
        if CARDS[method["_card"]][2] == "authentication_required":
            intent |= {"status": "requires_action", "next_action": self._build_redirect(intent, return_url)}
            self.emit("setup_intent.requires_action", intent)
        else:
            self._complete_setup(intent)

    def _complete_setup(self, intent: Document) -> None:
        intent |= {"status": "succeeded", "next_action": None}
        if intent["customer"]:
            self.attach(self.get("payment_method", intent["payment_method"]), intent["customer"])
        self.emit("setup_intent.succeeded", intent)

    def _build_redirect(self, intent: Document, return_url: str | None) -> Document:
        if return_url is None:
            return {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
        url = f"https://hooks.stripe.com/redirect/authenticate/{intent['id']}"
        return {"type": "redirect_to_url", "redirect_to_url": {"return_url": return_url, "url": url}}

    def create_payment_intent(self, invoice: Document, method: str | None) -> Document:
        """Create the intent of a finalised invoice."""
        id = self.create_id("payment_intent")
        intent = self.add("payment_intent", {
            "amount": invoice["amount_due"], "amount_capturable": 0, "amount_details": {"tip": {}},
            "amount_received": 0, "automatic_payment_methods": _AUTOMATIC, "canceled_at": None,
            "capture_method": "automatic", "client_secret": f"{id}_secret_{self.create_id('request')[4:]}",
            "confirmation_method": "automatic", "currency": invoice["currency"], "customer": invoice["customer"],
            "description": invoice["description"], "last_payment_error": None, "metadata": {}, "next_action": None,
            "payment_method": method, "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
            "payment_method_types": ["card"], "setup_future_usage": "off_session" if invoice["parent"] else None,
            "status": "requires_confirmation" if method else "requires_payment_method", "_invoice": invoice["id"],
        }, id)  # fmt: skip
        self.emit("payment_intent.created", intent)
        return intent

    def attempt(self, intent: Document, method: Document, *, off_session: bool, return_url: str | None = None) -> None:
        """Charge an intent; its status and `last_payment_error` state the result."""
        reason = CARDS[method["_card"]][2]
        intent |= {"payment_method": method["id"], "last_payment_error": None, "next_action": None}
        if reason == "authentication_required":
            intent |= {"status": "requires_action", "next_action": self._build_redirect(intent, return_url)}
            if off_session:
                self._create_charge(intent, method, build_decline(reason))
                intent["last_payment_error"] = build_decline(reason) | {"payment_method": self.render(method)}
            self.emit("payment_intent.requires_action", intent)
        elif reason is not None:
            self._fail(intent, method, build_decline(reason))
        else:
            self._succeed(intent, method)

    def _fail(self, intent: Document, method: Document, error: Document) -> None:
        charge = self._create_charge(intent, method, error)
        intent |= {
            "status": "requires_payment_method",
            "payment_method": None,
            "next_action": None,
            "last_payment_error": error | {"charge": charge["id"], "payment_method": self.render(method)},
        }
        self.emit("payment_intent.payment_failed", intent)

    def _succeed(self, intent: Document, method: Document) -> None:
        self._create_charge(intent, method, None)
        intent |= {"status": "succeeded", "amount_received": intent["amount"], "next_action": None}
        if intent["setup_future_usage"] and intent["customer"]:
            self.attach(method, intent["customer"])
        self.emit("payment_intent.succeeded", intent)

    def _create_charge(self, intent: Document, method: Document, error: Document | None) -> Document:
        paid = error is None
        declined = {} if error is None else {"failure_code": error["code"], "failure_message": error["message"]}
        outcome = {
            "network_status": "approved_by_network" if paid else "declined_by_network",
            "reason": None if error is None else error["decline_code"], "risk_level": "normal", "risk_score": 10,
            "seller_message": "Payment complete." if paid else "The bank declined the payment.",
            "type": "authorized" if paid else "issuer_declined",
        }  # fmt: skip
        charge = self.add("charge", {
            "amount": intent["amount"], "amount_captured": intent["amount"] if paid else 0, "amount_refunded": 0,
            "billing_details": method["billing_details"], "captured": paid, "currency": intent["currency"],
            "customer": intent["customer"], "disputed": False, "fraud_details": {}, "metadata": {}, "outcome": outcome,
            "paid": paid, "payment_intent": intent["id"], "payment_method": method["id"], "refunded": False,
            "status": "succeeded" if paid else "failed",
        } | declined)  # fmt: skip
        intent["latest_charge"] = charge["id"]
        self.emit("charge.succeeded" if paid else "charge.failed", charge)
        return charge

    def confirm_payment_intent(self, intent: Document, method: Document, return_url: str | None) -> None:
        """Confirm an intent as the browser does. Raises ApiError if the card is declined."""
        if intent["status"] in ("succeeded", "canceled"):
            raise ApiError(
                400, f"You cannot confirm this PaymentIntent because it has a status of {intent['status']}.",
                code="payment_intent_unexpected_state", payment_intent=self.render(intent),
            )  # fmt: skip
        self.attempt(intent, method, off_session=False, return_url=return_url)
        self._conclude(intent)

    def _conclude(self, intent: Document) -> None:
        if intent["status"] == "succeeded":
            self.settle(intent)
        elif intent["status"] == "requires_payment_method":
            self.report_failure(intent)
            raise ApiError(402, **intent["last_payment_error"], payment_intent=self.render(intent))

    def complete_authentication(self, id: str, *, is_successful: bool = True) -> None:
        """Complete the authentication of an intent, as the customer does in the browser."""
        kind = "setup_intent" if id.startswith("seti_") else "payment_intent"
        intent = self.get(kind, id)
        assert intent["status"] == "requires_action", intent["status"]
        method = self.get("payment_method", intent["payment_method"])
        failure = {
            "code": f"{kind}_authentication_failure", "type": "invalid_request_error",
            "message": "We are unable to authenticate your payment method.",
        }  # fmt: skip
        if kind == "setup_intent":
            if is_successful:
                self._complete_setup(intent)
            else:
                intent |= {"status": "requires_payment_method", "next_action": None, "payment_method": None,
                           "last_setup_error": failure}  # fmt: skip
                self.emit("setup_intent.setup_failed", intent)
        elif is_successful:
            intent["last_payment_error"] = None
            self._succeed(intent, method)
            self.settle(intent)
        else:
            intent |= {"status": "requires_payment_method", "next_action": None, "payment_method": None,
                       "last_payment_error": failure}  # fmt: skip
            self.emit("payment_intent.payment_failed", intent)
            self.report_failure(intent)

    def create_refund(self, parameters: Document) -> Document:
        """Refund a charge. Raises ApiError if the amount exceeds the unrefunded amount."""
        if "payment_intent" in parameters:
            intent = self.get("payment_intent", parameters["payment_intent"], "payment_intent")
            charges = self.select("charge", payment_intent=intent["id"], paid=True)
        else:
            charges = [self.get("charge", parameters.get("charge", ""), "charge")]
        if not charges:
            raise ApiError(400, f"This PaymentIntent ({parameters['payment_intent']}) does not have a successful "
                           "charge to refund.", param="payment_intent")  # fmt: skip
        charge = charges[0]
        left = charge["amount_captured"] - charge["amount_refunded"]
        amount = parameters.get("amount", left)
        if left == 0:
            raise ApiError(400, f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
        if not 0 < amount <= left:
            raise ApiError(400, f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})",
                           param="amount")  # fmt: skip
        card: Any = {"reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund"}
        refund = self.add("refund", {
            "amount": amount, "charge": charge["id"], "currency": charge["currency"],
            "destination_details": {"card": card, "type": "card"}, "metadata": parameters.get("metadata") or {},
            "payment_intent": charge["payment_intent"], "reason": parameters.get("reason"), "status": "succeeded",
        })  # fmt: skip
        charge["amount_refunded"] += amount
        charge["refunded"] = charge["amount_refunded"] == charge["amount_captured"]
        self.emit("refund.created", refund)
        self.emit("charge.refunded", charge)
        return refund
