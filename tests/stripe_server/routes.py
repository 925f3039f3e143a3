"""Routes of the API: one function per operation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.stripe_server.errors import ApiError, InvalidParameters
from tests.stripe_server.invoices import ENDED
from tests.stripe_server.periods import DAY
from tests.stripe_server.store import Document, empty_to_none, merge_metadata
from tests.stripe_server.subscriptions import Subscriptions

Handler = Callable[..., Document]


@dataclass(frozen=True)
class Route:
    """Operation of the API; `is_atomic` operations leave no trace if they fail."""

    method: str
    path: str
    handler: Handler
    is_atomic: bool = False

    def match(self, method: str, path: str) -> list[str] | None:
        """Return the IDs in the path, or None for another operation."""
        found = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", self.path), path) if method == self.method else None
        return found and list(found.groups())


ROUTES: list[Route] = []


def route(method: str, path: str, *, is_atomic: bool = False) -> Callable[[Handler], Handler]:
    """Register an operation."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, path, handler, is_atomic))
        return handler

    return register


def retrieve(path: str, kind: str) -> None:
    """Register the retrieval of an object."""
    ROUTES.append(Route("GET", path, lambda store, parameters, *ids: store.get(kind, ids[-1])))


def enumerate_objects(path: str, kind: str, *filters: str) -> None:
    """Register a list with filters by equal fields."""

    def select(store: Subscriptions, parameters: Document) -> Document:
        fields = {name: parameters[name.removeprefix("_")] for name in filters if name.removeprefix("_") in parameters}
        return store.list_page(store.select(kind, **fields), path, parameters)

    ROUTES.append(Route("GET", path, select))


def choose(parameters: Document, *names: str) -> Document:
    """Return the given parameters; the empty string unsets a field."""
    return {name: empty_to_none(parameters[name]) for name in names if name in parameters}


_ADDRESS = ("city", "country", "line1", "line2", "postal_code", "state")


def _read_customer(store: Subscriptions, parameters: Document) -> Document:
    fields = choose(parameters, "name", "email", "phone", "description", "tax_exempt", "balance", "preferred_locales")
    if "address" in parameters:
        address = parameters["address"]
        fields["address"] = {name: address.get(name) for name in _ADDRESS} if address else None
    return fields


def _update_invoice_settings(store: Subscriptions, customer: Document, parameters: Document) -> None:
    if "default_payment_method" in (settings := parameters.get("invoice_settings", {})):
        method = empty_to_none(settings["default_payment_method"])
        if method and store.get("payment_method", method, "default_payment_method")["customer"] != customer["id"]:
            raise InvalidParameters("The customer does not have a payment method with this ID.",
                                    "invoice_settings[default_payment_method]", "resource_missing")  # fmt: skip
        customer["invoice_settings"] = customer["invoice_settings"] | {"default_payment_method": method}


@route("POST", "/v1/customers", is_atomic=True)
def create_customer(store: Subscriptions, parameters: Document) -> Document:
    if clock := parameters.get("test_clock"):
        store.get("test_helpers.test_clock", clock, "test_clock")
    id = store.create_id("customer")
    customer = store.add("customer", {
        "balance": 0, "delinquent": False, "invoice_prefix": id[-8:].upper(),
        "invoice_settings": {"default_payment_method": None}, "metadata": parameters.get("metadata") or {},
        "next_invoice_sequence": 1, "preferred_locales": [], "tax_exempt": "none",
        "test_clock": parameters.get("test_clock"),
    } | _read_customer(store, parameters), id)  # fmt: skip
    if method := parameters.get("payment_method"):
        store.attach(store.resolve_payment_method(method), id)
    _update_invoice_settings(store, customer, parameters)
    store.emit("customer.created", customer)
    for data in parameters.get("tax_id_data", ()):
        create_tax_id(store, data, id)
    return customer


@route("POST", "/v1/customers/{customer}")
def update_customer(store: Subscriptions, parameters: Document, id: str) -> Document:
    customer = store.get("customer", id)
    with store.track(customer, "customer.updated"):
        _update_invoice_settings(store, customer, parameters)
        customer |= _read_customer(store, parameters)
        merge_metadata(customer, parameters.get("metadata"))
    return customer


@route("DELETE", "/v1/customers/{customer}")
def delete_customer(store: Subscriptions, parameters: Document, customer: str) -> Document:
    store.emit("customer.deleted", store.get("customer", customer))
    for subscription in store.select("subscription", customer=customer):
        if subscription["status"] not in ENDED:
            store.end_subscription(subscription, "cancellation_requested")
    store.objects["customer"][customer] = {"id": customer, "object": "customer", "deleted": True}
    return store.objects["customer"][customer]


@route("POST", "/v1/customers/{customer}/tax_ids")
def create_tax_id(store: Subscriptions, parameters: Document, customer: str) -> Document:
    store.get("customer", customer)
    value = parameters["value"].replace(" ", "").upper()
    if parameters["type"] == "eu_vat" and not re.fullmatch(r"[A-Z]{2}[0-9A-Z]{2,13}", value):
        raise InvalidParameters(f"Invalid value for {parameters['type']}.", "value", "tax_id_invalid")
    tax_id = store.add("tax_id", {
        "country": value[:2] if parameters["type"] == "eu_vat" else parameters["type"][:2].upper(),
        "customer": customer, "owner": {"customer": customer, "type": "customer"}, "type": parameters["type"],
        "value": value, "verification": {"status": "pending"},
    })  # fmt: skip
    store.emit("customer.tax_id.created", tax_id)
    return tax_id


@route("GET", "/v1/customers/{customer}/tax_ids")
def list_tax_ids(store: Subscriptions, parameters: Document, customer: str) -> Document:
    store.get("customer", customer)
    url = f"/v1/customers/{customer}/tax_ids"
    return store.list_page(store.select("tax_id", customer=customer), url, parameters)


@route("DELETE", "/v1/customers/{customer}/tax_ids/{id}")
def delete_tax_id(store: Subscriptions, parameters: Document, customer: str, id: str) -> Document:
    store.emit("customer.tax_id.deleted", store.get("tax_id", id))
    return _delete(store, "tax_id", id)


def _delete(store: Subscriptions, kind: str, id: str) -> Document:
    del store.objects[kind][id]
    return {"id": id, "object": kind, "deleted": True}


@route("POST", "/v1/products")
def create_product(store: Subscriptions, parameters: Document) -> Document:
    id = parameters.get("id") or store.create_id("product")
    if id in store.objects.get("product", {}):
        raise InvalidParameters(f"Product already exists: {id}", "id", "resource_already_exists")
    product = store.add("product", {
        "active": True, "images": [], "marketing_features": [], "metadata": parameters.get("metadata") or {},
        "name": parameters["name"], "updated": store.now,
    } | choose(parameters, "active", "description", "tax_code", "unit_label", "url"), id)  # fmt: skip
    store.emit("product.created", product)
    return product


@route("POST", "/v1/products/{id}")
def update_product(store: Subscriptions, parameters: Document, id: str) -> Document:
    product = store.get("product", id)
    with store.track(product, "product.updated"):
        product |= choose(parameters, "name", "active", "description", "tax_code", "unit_label", "url")
        merge_metadata(product, parameters.get("metadata"))
        product["updated"] = store.now
    return product


@route("POST", "/v1/setup_intents")
def create_setup_intent(store: Subscriptions, parameters: Document) -> Document:
    if customer := parameters.get("customer"):
        store.get("customer", customer, "customer")
    intent = store.create_setup_intent(parameters)
    if method := parameters.get("payment_method"):
        intent |= {"payment_method": store.resolve_payment_method(method)["id"], "status": "requires_confirmation"}
    return confirm_setup_intent(store, parameters, intent["id"]) if parameters.get("confirm") else intent


@route("POST", "/v1/setup_intents/{intent}/confirm")
def confirm_setup_intent(store: Subscriptions, parameters: Document, id: str) -> Document:
    intent = store.get("setup_intent", id)
    method = intent["payment_method"] or parameters.get("payment_method")
    if method is None:
        raise InvalidParameters("You cannot confirm this SetupIntent because it's missing a payment method.",
                                None, "setup_intent_unexpected_state")  # fmt: skip
    method = store.resolve_payment_method(parameters.get("payment_method", method))
    store.confirm_setup_intent(intent, method, parameters.get("return_url"))
    return intent


@route("POST", "/v1/payment_methods/{payment_method}/attach")
def attach_payment_method(store: Subscriptions, parameters: Document, id: str) -> Document:
    store.get("customer", parameters.get("customer", ""), "customer")
    method = store.resolve_payment_method(id)
    store.attach(method, parameters["customer"])
    return method


@route("POST", "/v1/payment_methods/{payment_method}/detach")
def detach_payment_method(store: Subscriptions, parameters: Document, id: str) -> Document:
    method = store.get("payment_method", id)
    if method["customer"] is None:
        raise InvalidParameters("The payment method you provided is not attached to a customer.", "payment_method")
    with store.track(method, "payment_method.detached"):
        customer, method["customer"] = store.get("customer", method["customer"]), None
    if customer["invoice_settings"]["default_payment_method"] == id:
        customer["invoice_settings"] = customer["invoice_settings"] | {"default_payment_method": None}
    for subscription in store.select("subscription", default_payment_method=id):
        subscription["default_payment_method"] = None
    return method


@route("POST", "/v1/payment_intents/{intent}/confirm")
def confirm_payment_intent(store: Subscriptions, parameters: Document, id: str) -> Document:
    intent = store.get("payment_intent", id)
    method = parameters.get("payment_method", intent["payment_method"])
    if method is None:
        raise InvalidParameters("You cannot confirm this PaymentIntent because it's missing a payment method.",
                                None, "payment_intent_unexpected_state")  # fmt: skip
    store.confirm_payment_intent(intent, store.resolve_payment_method(method), parameters.get("return_url"))
    return intent


@route("POST", "/v1/subscriptions", is_atomic=True)
def create_subscription(store: Subscriptions, parameters: Document) -> Document:
    if "customer" not in parameters:
        raise InvalidParameters("Missing required param: customer.", "customer", "parameter_missing")
    return store.create_subscription(parameters)


@route("GET", "/v1/subscriptions")
def list_subscriptions(store: Subscriptions, parameters: Document) -> Document:
    fields = choose(parameters, "customer", "test_clock")
    status = parameters.get("status")
    ended = {None: ("canceled", "incomplete_expired"), "all": ()}.get(status)
    rows = [
        each for each in store.select("subscription", **fields)
        if (each["status"] not in ended if ended is not None else
            each["status"] == status or (status == "ended" and each["status"] in ("canceled", "incomplete_expired")))
    ]  # fmt: skip
    return store.list_page(rows, "/v1/subscriptions", parameters)


@route("POST", "/v1/subscriptions/{subscription_exposed_id}", is_atomic=True)
def update_subscription(store: Subscriptions, parameters: Document, id: str) -> Document:
    subscription = store.get("subscription", id)
    with store.track(subscription, "customer.subscription.updated"):
        store.update_subscription(subscription, parameters)
    return subscription


@route("DELETE", "/v1/subscriptions/{subscription_exposed_id}")
def cancel_subscription(store: Subscriptions, parameters: Document, id: str) -> Document:
    subscription = store.get("subscription", id)
    store.cancel_subscription(subscription, parameters)
    return subscription


@route("POST", "/v1/subscription_schedules", is_atomic=True)
def create_schedule(store: Subscriptions, parameters: Document) -> Document:
    if "from_subscription" not in parameters:
        raise InvalidParameters("The server supports schedules from a subscription only.", "from_subscription")
    return store.create_schedule(store.get("subscription", parameters["from_subscription"], "from_subscription"))


@route("POST", "/v1/subscription_schedules/{schedule}", is_atomic=True)
def update_schedule(store: Subscriptions, parameters: Document, id: str) -> Document:
    schedule = store.get("subscription_schedule", id)
    store.update_schedule(schedule, parameters)
    return schedule


@route("POST", "/v1/subscription_schedules/{schedule}/release")
def release_schedule(store: Subscriptions, parameters: Document, id: str) -> Document:
    schedule = store.get("subscription_schedule", id)
    store.end_schedule(schedule, "released")
    return schedule


@route("POST", "/v1/subscription_schedules/{schedule}/cancel")
def cancel_schedule(store: Subscriptions, parameters: Document, id: str) -> Document:
    schedule = store.get("subscription_schedule", id)
    store.end_schedule(schedule, "canceled")
    return schedule


@route("POST", "/v1/invoices/create_preview")
def preview_invoice(store: Subscriptions, parameters: Document) -> Document:
    return store.preview(parameters)


@route("POST", "/v1/invoices", is_atomic=True)
def create_invoice(store: Subscriptions, parameters: Document) -> Document:
    customer = store.get("customer", parameters.get("customer", ""), "customer")
    currency = parameters.get("currency") or customer["currency"] or "eur"
    tax = parameters.get("automatic_tax", {"enabled": False})["enabled"]
    store.check_location(customer, tax)
    store.check_currency(customer, currency)
    behavior = parameters.get("pending_invoice_items_behavior", "exclude")
    lines = store.take_pending_lines(customer["id"], None) if behavior == "include" else []
    return store.create_invoice(
        customer, "manual", lines, currency, automatic_tax=tax, metadata=parameters.get("metadata") or {},
        auto_advance=parameters.get("auto_advance", False),
        **choose(parameters, "description", "collection_method", "days_until_due"),
    )  # fmt: skip


@route("POST", "/v1/invoices/{invoice}")
def update_invoice(store: Subscriptions, parameters: Document, id: str) -> Document:
    invoice = store.get("invoice", id)
    with store.track(invoice, "invoice.updated"):
        invoice |= choose(parameters, "auto_advance", "description")
        merge_metadata(invoice, parameters.get("metadata"))
    return invoice


@route("GET", "/v1/invoices/{invoice}/lines")
def list_lines(store: Subscriptions, parameters: Document, invoice: str) -> Document:
    rows = store.get("invoice", invoice)["lines"]["data"]
    return store.list_page(rows[::-1], f"/v1/invoices/{invoice}/lines", parameters)


@route("POST", "/v1/invoices/{invoice}/finalize")
def finalize_invoice(store: Subscriptions, parameters: Document, id: str) -> Document:
    invoice = store.get("invoice", id)
    if invoice["status"] != "draft":
        raise ApiError(400, "This invoice is already finalized, you can't re-finalize a non-draft invoice.",
                       code="invoice_not_editable")  # fmt: skip
    invoice["auto_advance"] = parameters.get("auto_advance", invoice["auto_advance"])
    store.finalize(invoice)
    return invoice


@route("POST", "/v1/invoices/{invoice}/pay")
def pay_invoice(store: Subscriptions, parameters: Document, id: str) -> Document:
    invoice = store.get("invoice", id)
    if invoice["status"] == "paid":
        raise ApiError(400, "Invoice is already paid", code="invoice_already_paid")
    if invoice["status"] == "draft":
        store.finalize(invoice)
    if invoice["status"] not in ("open", "uncollectible", "paid"):
        raise ApiError(400, f"Invoice is {invoice['status']} and cannot be paid", code="invoice_not_editable")
    method = parameters.get("payment_method")
    error = store.pay(invoice, method and store.resolve_payment_method(method),
                      off_session=parameters.get("off_session", True))  # fmt: skip
    if error is not None:
        raise ApiError(402 if error["type"] == "card_error" else 400, **error)
    return invoice


@route("POST", "/v1/invoices/{invoice}/void")
def void_invoice(store: Subscriptions, parameters: Document, id: str) -> Document:
    invoice = store.get("invoice", id)
    store.close(invoice, "void")
    if invoice["_subscription"] is not None:
        subscription = store.get("subscription", invoice["_subscription"])
        if subscription["status"] == "incomplete" and subscription["latest_invoice"] == id:
            store.end_subscription(subscription, "cancellation_requested")
    return invoice


@route("POST", "/v1/invoices/{invoice}/mark_uncollectible")
def mark_invoice_uncollectible(store: Subscriptions, parameters: Document, id: str) -> Document:
    invoice = store.get("invoice", id)
    store.close(invoice, "uncollectible")
    return invoice


@route("POST", "/v1/invoiceitems", is_atomic=True)
def create_invoiceitem(store: Subscriptions, parameters: Document) -> Document:
    customer = store.get("customer", parameters.get("customer", ""), "customer")
    quantity = parameters.get("quantity", 1)
    if "amount" in parameters:
        product = store.objects.get("product", {}).get("_item") or store.add("product", {"name": "Item"}, "_item")
        data = {"currency": parameters.get("currency") or customer["currency"] or "eur", "product": product["id"]}
        price = store.resolve_price({"price_data": data | {"unit_amount": parameters["amount"]}})
        quantity, amount = 1, parameters["amount"]
    else:
        price = store.resolve_price(choose(parameters, "price_data") | parameters.get("pricing", {}))
        amount = quantity * (price["unit_amount"] or 0)
    if parameters.get("currency", price["currency"]) != price["currency"]:
        raise InvalidParameters("The currency of the invoice item must match its price.", "currency")
    store.check_currency(customer, price["currency"])
    period = parameters.get("period", {"start": store.now, "end": store.now})
    invoice = parameters.get("invoice")
    description = parameters.get("description") or store.get("product", price["product"])["name"]
    item = store.create_invoiceitem(customer["id"], price, quantity, amount, description, (period["start"],
                                    period["end"]), parameters.get("metadata") or {}, None, invoice)  # fmt: skip
    if invoice is not None:
        draft = store.get("invoice", invoice, "invoice")
        if draft["status"] != "draft":
            raise ApiError(400, "This invoice is no longer editable.", code="invoice_not_editable")
        draft["lines"]["data"].append(store.render(store.build_item_line(item)) | {"invoice": invoice})
        store.compute_totals(draft)
    return item


@route("GET", "/v1/invoiceitems")
def list_invoiceitems(store: Subscriptions, parameters: Document) -> Document:
    rows = store.select("invoiceitem", **choose(parameters, "customer", "invoice"))
    if "pending" in parameters:
        rows = [each for each in rows if (each["invoice"] is None) == parameters["pending"]]
    return store.list_page(rows, "/v1/invoiceitems", parameters)


@route("DELETE", "/v1/invoiceitems/{invoiceitem}")
def delete_invoiceitem(store: Subscriptions, parameters: Document, id: str) -> Document:
    item = store.get("invoiceitem", id)
    if item["invoice"] is not None:
        invoice = store.get("invoice", item["invoice"])
        if invoice["status"] != "draft":
            raise ApiError(400, "Can't delete an invoice item that is attached to an invoice that is no longer "
                           "editable.", code="invoice_not_editable")  # fmt: skip
        invoice["lines"]["data"] = [
            line for line in invoice["lines"]["data"]
            if (line["parent"]["invoice_item_details"] or {}).get("invoice_item") != id
        ]  # fmt: skip
        store.compute_totals(invoice)
    store.emit("invoiceitem.deleted", item)
    return _delete(store, "invoiceitem", id)


@route("GET", "/v1/invoice_payments")
def list_invoice_payments(store: Subscriptions, parameters: Document) -> Document:
    rows = store.select("invoice_payment", **choose(parameters, "invoice", "status"))
    if intent := parameters.get("payment", {}).get("payment_intent"):
        rows = [each for each in rows if each["payment"]["payment_intent"] == intent]
    return store.list_page(rows, "/v1/invoice_payments", parameters)


@route("POST", "/v1/refunds")
def create_refund(store: Subscriptions, parameters: Document) -> Document:
    return store.create_refund(parameters)


@route("POST", "/v1/coupons")
def create_coupon(store: Subscriptions, parameters: Document) -> Document:
    id = parameters.get("id") or store.create_id("coupon")
    if id in store.objects.get("coupon", {}):
        raise InvalidParameters("Coupon already exists.", "id", "resource_already_exists")
    if ("percent_off" in parameters) == ("amount_off" in parameters):
        raise InvalidParameters("Must provide percent_off or amount_off.", "percent_off", "parameter_missing")
    duration = parameters.get("duration", "once")
    if (duration == "repeating") != ("duration_in_months" in parameters):
        raise InvalidParameters("`duration_in_months` is required for repeating coupons only.", "duration_in_months")
    coupon = store.add("coupon", {
        "duration": duration,
        "metadata": parameters.get("metadata") or {},
        "times_redeemed": 0, "valid": True,
    } | choose(parameters, "amount_off", "currency", "duration_in_months", "max_redemptions", "name", "percent_off",
               "redeem_by"), id)  # fmt: skip
    store.emit("coupon.created", coupon)
    return coupon


@route("POST", "/v1/promotion_codes")
def create_promotion_code(store: Subscriptions, parameters: Document) -> Document:
    coupon = store.get("coupon", parameters["promotion"].get("coupon", ""), "promotion[coupon]")
    code = parameters.get("code") or store.create_id("promotion_code")[-8:].upper()
    if any(each["code"].upper() == code.upper() for each in store.select("promotion_code", active=True)):
        raise InvalidParameters("An active promotion code with this code already exists.", "code")
    promotion = store.add("promotion_code", {
        "active": True, "code": code, "metadata": parameters.get("metadata") or {},
        "promotion": {"coupon": coupon["id"], "type": "coupon"}, "restrictions": {"first_time_transaction": False},
        "times_redeemed": 0,
    } | choose(parameters, "active", "customer", "expires_at", "max_redemptions"))  # fmt: skip
    store.emit("promotion_code.created", promotion)
    return promotion


@route("POST", "/v1/promotion_codes/{promotion_code}")
def update_promotion_code(store: Subscriptions, parameters: Document, id: str) -> Document:
    promotion = store.get("promotion_code", id)
    with store.track(promotion, "promotion_code.updated"):
        promotion |= choose(parameters, "active")
        merge_metadata(promotion, parameters.get("metadata"))
    return promotion


@route("GET", "/v1/promotion_codes")
def list_promotion_codes(store: Subscriptions, parameters: Document) -> Document:
    rows = store.select("promotion_code", **choose(parameters, "active"))
    code = parameters.get("code", "").upper()
    rows = [each for each in rows if code in ("", each["code"].upper())]  # codes are case-insensitive
    return store.list_page(rows, "/v1/promotion_codes", parameters)


@route("POST", "/v1/test_helpers/test_clocks")
def create_test_clock(store: Subscriptions, parameters: Document) -> Document:
    store.now = parameters["frozen_time"]
    return store.add("test_helpers.test_clock", {
        "deletes_after": store.now + 30 * DAY, "frozen_time": store.now, "name": parameters.get("name"),
        "status": "ready", "status_details": {},
    })  # fmt: skip


@route("GET", "/v1/test_helpers/test_clocks/{test_clock}")
def retrieve_test_clock(store: Subscriptions, parameters: Document, id: str) -> Document:
    clock = store.get("test_helpers.test_clock", id)
    if clock["status"] == "advancing":
        clock |= {"status": "ready", "status_details": {}}
        store.emit("test_helpers.test_clock.ready", clock)
    return clock


@route("POST", "/v1/test_helpers/test_clocks/{test_clock}/advance")
def advance_test_clock(store: Subscriptions, parameters: Document, id: str) -> Document:
    clock = store.get("test_helpers.test_clock", id)
    if clock["status"] != "ready":
        raise ApiError(400, "The test clock is already advancing.", code="test_clock_advancing")
    store.advance_test_clock(clock, parameters["frozen_time"])
    return clock


@route("GET", "/v1/events")
def list_events(store: Any, parameters: Document) -> Document:
    types = [parameters["type"]] if "type" in parameters else parameters.get("types")
    rows = [each for each in store.events if types is None or each["type"] in types]
    return store.list_page(rows, "/v1/events", parameters)


@route("GET", "/v1/events/{id}")
def retrieve_event(store: Any, parameters: Document, id: str) -> Document:
    found = next((each for each in store.events if each["id"] == id), None)
    if found is None:
        raise ApiError(404, f"No such event: '{id}'", code="resource_missing", param="id")
    return found


for _path, _kind in {
    "/v1/customers/{customer}": "customer",
    "/v1/customers/{customer}/tax_ids/{id}": "tax_id",
    "/v1/products/{id}": "product",
    "/v1/prices/{price}": "price",
    "/v1/setup_intents/{intent}": "setup_intent",
    "/v1/payment_methods/{payment_method}": "payment_method",
    "/v1/payment_intents/{intent}": "payment_intent",
    "/v1/charges/{charge}": "charge",
    "/v1/refunds/{refund}": "refund",
    "/v1/subscriptions/{subscription_exposed_id}": "subscription",
    "/v1/subscription_schedules/{schedule}": "subscription_schedule",
    "/v1/invoices/{invoice}": "invoice",
    "/v1/invoiceitems/{invoiceitem}": "invoiceitem",
    "/v1/invoice_payments/{invoice_payment}": "invoice_payment",
    "/v1/coupons/{coupon}": "coupon",
    "/v1/promotion_codes/{promotion_code}": "promotion_code",
}.items():
    retrieve(_path, _kind)
for _path, _kind, *_filters in (
    ("/v1/customers", "customer", "email", "test_clock"),
    ("/v1/payment_methods", "payment_method", "customer", "type"),
    ("/v1/payment_intents", "payment_intent", "customer"),
    ("/v1/setup_intents", "setup_intent", "customer"),
    ("/v1/charges", "charge", "customer", "payment_intent"),
    ("/v1/refunds", "refund", "charge", "payment_intent"),
    ("/v1/subscription_schedules", "subscription_schedule", "customer"),
    ("/v1/invoices", "invoice", "customer", "status", "collection_method", "_subscription"),
    ("/v1/coupons", "coupon"),
):
    enumerate_objects(_path, _kind, *_filters)
