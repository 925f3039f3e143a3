"""Subscriptions, their schedules, and the passing of time."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.stripe_server.errors import ApiError, InvalidParameters
from tests.stripe_server.invoices import ENDED, SELF, Invoices, build_action_error, build_pricing
from tests.stripe_server.periods import DAY, HOUR, add_intervals, find_period, prorate
from tests.stripe_server.store import Document, empty_to_none, merge_metadata
from tests.stripe_server.validation import Parameters

EXPIRY = 23 * HOUR
"""Seconds until an incomplete subscription expires."""


class Subscriptions(Invoices):
    """State machine of subscriptions; `advance` executes what becomes due."""

    # Items and periods

    def _recurrence(self, subscription: Document) -> tuple[str, int]:
        recurring = subscription["items"]["data"][0]["price"]["recurring"]
        return recurring["interval"], recurring["interval_count"]

    def _period(self, subscription: Document) -> tuple[int, int]:
        item = subscription["items"]["data"][0]
        return item["current_period_start"], item["current_period_end"]

    def _set_period(self, subscription: Document, period: tuple[int, int]) -> None:
        for item in subscription["items"]["data"]:
            item["current_period_start"], item["current_period_end"] = period

    def _build_item(self, subscription: str, requested: Document, price: Document) -> Document:
        return self.build("subscription_item", {
            "id": self.create_id("subscription_item"), "current_period_end": 0, "current_period_start": 0,
            "discounts": [], "metadata": requested.get("metadata") or {}, "price": price,
            "quantity": requested.get("quantity", 1), "subscription": subscription, "tax_rates": [],
        })  # fmt: skip

    def _resolve_recurring_price(self, requested: Document) -> Document:
        price = self.render(self.resolve_price(requested))
        if price["recurring"] is None:
            raise InvalidParameters("The price specified is set to `type=one_time` but this field only accepts prices "
                                    "with `type=recurring`.", "items[0][price]")  # fmt: skip
        return price

    def _amount(self, item: Document) -> int:
        return item["quantity"] * (item["price"]["unit_amount"] or 0)

    def _net_amount(self, subscription: Document, item: Document) -> int:
        """Return the amount of an item for a whole period, without its discounts."""
        amount = self._amount(item)
        discounts = self.compute_discounts(subscription["discounts"], amount, subscription["currency"])
        return amount - sum(each["amount"] for each in discounts)

    def _build_period_lines(self, subscription: Document) -> list[Document]:
        """Return the lines of the current period, and use the discounts."""
        lines = []
        for item in subscription["items"]["data"]:
            amount = self._amount(item)
            discounts = self.compute_discounts(subscription["discounts"], amount, subscription["currency"])
            parent = {"type": "subscription_item_details", "subscription_item_details": {
                "proration": False, "subscription": subscription["id"],
                "subscription_item": item["id"]}}  # fmt: skip
            subscription["_net"][item["id"]] = amount - sum(each["amount"] for each in discounts)
            description = f"{item['quantity']} × {self._describe_price(item['price'])}"
            period = {"start": item["current_period_start"], "end": item["current_period_end"]}
            lines.append(self.build_line(amount, subscription["currency"], description, period,
                                         build_pricing(item["price"]), item["quantity"], parent,
                                         subscription["metadata"], discounts))  # fmt: skip
        self.use_discounts(subscription["discounts"])
        return lines

    def _describe_price(self, price: Document) -> str:
        product = self.get("product", price["product"])
        amount = f"{price['unit_amount_decimal']} {price['currency']}"
        return f"{product['name']} (at {amount} / {price['recurring']['interval']})"

    def take_pending_lines(self, customer: str, subscription: str | None) -> list[Document]:
        """Return the lines of pending invoice items; prorations belong to the invoices of their subscription."""
        lines = []
        for item in self.select("invoiceitem", customer=customer, invoice=None):
            owner = item["parent"] and item["parent"]["subscription_details"]["subscription"]
            if owner in (None, subscription):
                lines.append(self.build_item_line(item))
        return lines

    def _invoice(
        self, subscription: Document, reason: str, lines: list[Document], period: tuple[int, int] | None = None
    ) -> Document:
        customer = self.get("customer", subscription["customer"])
        lines = [*self.take_pending_lines(customer["id"], subscription["id"]), *lines]
        invoice = self.create_invoice(customer, reason, lines, subscription["currency"], subscription=subscription,
                                      period=period, collection_method=subscription["collection_method"],
                                      days_until_due=subscription["days_until_due"])  # fmt: skip
        subscription["latest_invoice"] = invoice["id"]
        return invoice

    # Creation

    def create_subscription(self, parameters: Document) -> Document:
        """Create a subscription and its first invoice. Raises ApiError as `payment_behavior` defines."""
        customer = self.get("customer", parameters["customer"], "customer")
        behavior = parameters.get("payment_behavior", "allow_incomplete")
        is_automatic = parameters.get("collection_method", "charge_automatically") == "charge_automatically"
        if not parameters.get("items"):
            raise InvalidParameters("Missing required param: items.", "items", "parameter_missing")
        prices = [self._resolve_recurring_price(each) for each in parameters["items"]]
        currency = prices[0]["currency"]
        self.check_currency(customer, currency)
        tax = parameters.get("automatic_tax", {"enabled": False})["enabled"]
        self.check_location(customer, tax)
        if (method := parameters.get("default_payment_method")) is not None:
            self.get("payment_method", method, "default_payment_method")
        id = self.create_id("subscription")
        anchor = parameters.get("billing_cycle_anchor", self.now)
        settings = parameters.get("payment_settings", {})
        subscription = self.add("subscription", {
            "automatic_tax": {"enabled": tax, "liability": SELF if tax else None}, "billing_cycle_anchor": anchor,
            "billing_mode": {"type": "flexible", "flexible": {"proration_discounts": "included"}},
            "billing_schedules": [], "cancel_at_period_end": parameters.get("cancel_at_period_end", False),
            "canceled_at": None, "cancellation_details": {"reason": None},
            "collection_method": parameters.get("collection_method", "charge_automatically"), "currency": currency,
            "customer": customer["id"], "days_until_due": parameters.get("days_until_due"),
            "default_payment_method": method, "default_tax_rates": [], "description": parameters.get("description"),
            "discounts": self.create_discounts(parameters.get("discounts"), customer["id"], id),
            "invoice_settings": {"issuer": SELF}, "items": self.wrap([], f"/v1/subscription_items?subscription={id}"),
            "metadata": parameters.get("metadata") or {},
            "payment_settings": {"payment_method_types": settings.get("payment_method_types"),
            "save_default_payment_method": settings.get("save_default_payment_method", "off")}, "schedule": None,
            "start_date": self.now, "status": "incomplete" if is_automatic else "active",
            "test_clock": customer["test_clock"],
            "trial_settings": {"end_behavior": {"missing_payment_method": "create_invoice"}}, "_net": {},
        }, id)  # fmt: skip
        subscription["items"]["data"] = [
            self._build_item(id, each, price) for each, price in zip(parameters["items"], prices, strict=True)
        ]
        interval, length = self._recurrence(subscription)
        if not self.now <= anchor <= add_intervals(self.now, interval, length):
            raise InvalidParameters("billing_cycle_anchor must be within the first period.", "billing_cycle_anchor")
        self._set_period(subscription, find_period(anchor, interval, length, self.now))
        self.emit("customer.subscription.created", subscription)
        with self.track(subscription, "customer.subscription.updated"):
            lines = self._bill_first_period(subscription, parameters.get("proration_behavior", "create_prorations"))
            invoice = self._invoice(subscription, "subscription_create", lines)
            self.finalize(invoice)
            if invoice["status"] == "open" and is_automatic and behavior != "default_incomplete":
                default = self.find_payment_method(invoice)
                if default is None:
                    raise InvalidParameters("This customer has no attached payment source or default payment method. "
                                            "Please consider adding a default payment method.", None,
                                            "resource_missing")  # fmt: skip
                self._charge(subscription, invoice, behavior, off_session=parameters.get("off_session", False))
        return subscription

    def check_location(self, customer: Document, is_taxed: bool) -> None:
        """Check that automatic tax knows the country of the customer. Raises ApiError if not."""
        if is_taxed and not (customer["address"] or {}).get("country"):
            raise InvalidParameters("The customer's location isn't recognized. Set a valid customer address in order "
                                    "to automatically calculate tax.", "automatic_tax[enabled]",
                                    "customer_tax_location_invalid")  # fmt: skip

    def _bill_first_period(self, subscription: Document, behavior: str) -> list[Document]:
        """Return the lines until the billing cycle anchor; a part of a period is prorated."""
        start, end = self._period(subscription)
        if start == self.now:
            return self._build_period_lines(subscription)
        for item in subscription["items"]["data"]:
            net = self._net_amount(subscription, item)
            subscription["_net"][item["id"]] = prorate(net, start, end, self.now)
            if behavior != "none":
                self._add_proration(subscription, item, prorate(net, start, end, self.now), (self.now, end))
        self._set_period(subscription, (self.now, end))
        self.use_discounts(subscription["discounts"])
        return []

    def _charge(self, subscription: Document, invoice: Document, behavior: str, *, off_session: bool) -> None:
        error = self.pay(invoice, None, off_session=off_session)
        if error is not None and behavior == "error_if_incomplete":
            intent = self.find_intent(invoice["id"])
            if intent is not None and intent["status"] == "requires_action":
                error = build_action_error("subscription")
            raise ApiError(402, **{name: value for name, value in error.items() if name != "charge"})

    # Changes

    def _add_proration(
        self, subscription: Document, item: Document, amount: int, period: tuple[int, int], verb: str = ""
    ) -> None:
        name = self.get("product", item["price"]["product"])["name"]
        text = f"{verb or 'Remaining time on'} {name}"
        self.create_invoiceitem(subscription["customer"], item["price"], item["quantity"], amount, text, period,
                                subscription["metadata"], (subscription["id"], item["id"]))  # fmt: skip

    def change_items(
        self, subscription: Document, requested: list[Document], behavior: str, date: int, *, is_reset: bool = False
    ) -> bool:
        """Change prices and quantities; prorate to the second.

        Returns:
            Whether a new period started at the time of the change.
        """
        start, end = self._period(subscription)
        if not start <= date <= end:
            raise InvalidParameters("Cannot specify proration date outside of current subscription period.",
                                    "proration_date")  # fmt: skip
        before = [(dict(item), subscription["_net"].get(item["id"], 0)) for item in subscription["items"]["data"]]
        recurrence = self._recurrence(subscription)
        for each in requested:
            self._change_item(subscription, each)
        items = {item["id"]: item for item in subscription["items"]["data"]}
        if not items:
            raise InvalidParameters("A subscription must have at least one active price.", "items")
        self._set_period(subscription, (start, end))
        is_paid_first = not any(self._amount(item) for item, _ in before) and any(map(self._amount, items.values()))
        is_reset = is_reset or self._recurrence(subscription) != recurrence or is_paid_first
        names = ("price", "quantity")
        kept = {
            item["id"] for item, _ in before
            if item["id"] in items and all(item[name] == items[item["id"]][name] for name in names)
        }  # fmt: skip
        for item, net in before if behavior != "none" else ():
            if self._amount(item) and (is_reset or item["id"] not in kept):
                credit = -prorate(net, start, end, date)
                self._add_proration(subscription, item, credit, (date, end), "Unused time on")
        if is_reset:
            subscription["billing_cycle_anchor"] = self.now
            self._set_period(subscription, find_period(self.now, *self._recurrence(subscription), self.now))
            return True
        for item in items.values() if behavior != "none" else ():
            if item["id"] not in kept:
                net = subscription["_net"][item["id"]] = self._net_amount(subscription, item)
                self._add_proration(subscription, item, prorate(net, start, end, date), (date, end))
        if behavior != "none":
            self.use_discounts(subscription["discounts"])
        return False

    def _change_item(self, subscription: Document, requested: Document) -> None:
        items = subscription["items"]["data"]
        item = next((row for row in items if row["id"] == requested.get("id")), None)
        if "id" in requested and item is None:
            raise InvalidParameters(
                f"No such subscription item: '{requested['id']}'", "items[0][id]", "resource_missing"
            )
        if item is None:
            item = self._build_item(subscription["id"], requested, self._resolve_recurring_price(requested))
            items.append(item)
        elif requested.get("deleted"):
            items.remove(item)
        elif "price" in requested or "price_data" in requested:
            item["price"] = self._resolve_recurring_price(requested)
        item["quantity"] = requested.get("quantity", item["quantity"])
        if item["price"]["currency"] != subscription["currency"]:
            raise InvalidParameters("Currency and interval fields must match across all prices on this subscription "
                                    f"({subscription['currency']}).", "items")  # fmt: skip

    def update_subscription(self, subscription: Document, parameters: Document) -> None:
        """Update a subscription; with an immediate invoice if the change requires one."""
        if subscription["status"] in ENDED:
            raise ApiError(404, f"No such subscription: '{subscription['id']}'", code="resource_missing", param="id")
        behavior = parameters.get("payment_behavior", "allow_incomplete")
        if behavior == "pending_if_incomplete":
            raise InvalidParameters("The server does not support pending_if_incomplete.", "payment_behavior")
        if subscription["schedule"] and "cancel_at_period_end" in parameters:
            raise InvalidParameters(
                f"The subscription is managed by the subscription schedule `{subscription['schedule']}`, and updating "
                "any cancelation behavior directly is not allowed. Please update the schedule instead.",
                "cancel_at_period_end")  # fmt: skip
        for name in ("default_payment_method", "description", "days_until_due", "collection_method"):
            if name in parameters:
                subscription[name] = empty_to_none(parameters[name])
        if subscription["default_payment_method"]:
            self.get("payment_method", subscription["default_payment_method"], "default_payment_method")
        merge_metadata(subscription, parameters.get("metadata"))
        subscription["payment_settings"] |= parameters.get("payment_settings", {})
        subscription["cancellation_details"] |= parameters.get("cancellation_details", {})
        if "automatic_tax" in parameters:
            enabled = parameters["automatic_tax"]["enabled"]
            self.check_location(self.get("customer", subscription["customer"]), enabled)
            subscription["automatic_tax"] |= {"enabled": enabled, "liability": SELF if enabled else None}
        if "discounts" in parameters:
            subscription["discounts"] = self.create_discounts(
                parameters["discounts"], subscription["customer"], subscription["id"]
            )
        if "cancel_at_period_end" in parameters:
            self._set_cancellation(subscription, parameters["cancel_at_period_end"])
        is_reset = parameters.get("billing_cycle_anchor") == "now"
        if "items" in parameters or is_reset:
            proration = parameters.get("proration_behavior", "create_prorations")
            date = parameters.get("proration_date", self.now)
            self.apply_items(subscription, parameters.get("items", []), proration, date, is_reset, behavior,
                             parameters.get("off_session", False))  # fmt: skip

    def apply_items(
        self, subscription: Document, items: list[Document], proration: str, date: int, is_reset: bool = False,
        behavior: str = "allow_incomplete", off_session: bool = True,
    ) -> None:  # fmt: skip
        """Change the items, and invoice the change if a new period starts or the behaviour is `always_invoice`."""
        period = self._period(subscription)
        is_reset = self.change_items(subscription, items, proration, date, is_reset=is_reset)
        lines = self._build_period_lines(subscription) if is_reset else []
        pending = self.take_pending_lines(subscription["customer"], subscription["id"])
        if schedule := subscription["schedule"]:
            self._copy_items(subscription, self.get("subscription_schedule", schedule))
        if not is_reset and (proration != "always_invoice" or not pending):
            return
        invoice = self._invoice(subscription, "subscription_update", lines, period)
        if proration != "none":
            invoice["parent"]["subscription_details"]["subscription_proration_date"] = date
        self.finalize(invoice)
        if invoice["status"] != "open" or subscription["collection_method"] == "send_invoice":
            return
        if behavior == "default_incomplete":
            subscription["status"] = "past_due"
        elif self.event_is_enabled:
            self._charge(subscription, invoice, behavior, off_session=off_session)

    def _set_cancellation(self, subscription: Document, at_end: bool) -> None:
        reason = "cancellation_requested" if at_end else None
        subscription |= {"cancel_at_period_end": at_end, "canceled_at": self.now if at_end else None}
        subscription["cancel_at"] = self._period(subscription)[1] if at_end else None
        subscription["cancellation_details"]["reason"] = reason

    def end_subscription(self, subscription: Document, reason: str, status: str = "canceled") -> None:
        """End a subscription and its schedule."""
        if subscription["status"] == "incomplete":
            status = "incomplete_expired"
            invoice = self.get("invoice", subscription["latest_invoice"])
            if invoice["status"] == "open":
                self.close(invoice, "void")
        for invoice in self.select("invoice", _subscription=subscription["id"]):
            invoice |= {"auto_advance": False, "next_payment_attempt": None, "automatically_finalizes_at": None}
        subscription |= {"status": status, "ended_at": self.now}
        subscription["canceled_at"] = subscription["canceled_at"] or self.now
        subscription["cancellation_details"]["reason"] = subscription["cancellation_details"]["reason"] or reason
        if schedule := subscription["schedule"]:
            self.end_schedule(self.get("subscription_schedule", schedule), "canceled")
        is_expired = status == "incomplete_expired"
        self.emit(f"customer.subscription.{'updated' if is_expired else 'deleted'}", subscription,
                  {"status": "incomplete"} if is_expired else None)  # fmt: skip

    def cancel_subscription(self, subscription: Document, parameters: Document) -> None:
        """Cancel at once, with a credit if the request prorates."""
        if subscription["status"] in ENDED:
            raise ApiError(404, f"No such subscription: '{subscription['id']}'", code="resource_missing", param="id")
        start, end = self._period(subscription)
        for item in subscription["items"]["data"] if parameters.get("prorate") else ():
            credit = -prorate(subscription["_net"].get(item["id"], 0), start, end, self.now)
            self._add_proration(subscription, item, credit, (self.now, end), "Unused time on")
        if parameters.get("invoice_now") and self.take_pending_lines(subscription["customer"], subscription["id"]):
            invoice = self._invoice(subscription, "subscription_update", [], (start, end))
            self.finalize(invoice)
            if invoice["status"] == "open":
                self.pay(invoice, None)
        subscription["cancellation_details"] |= parameters.get("cancellation_details", {})
        self.end_subscription(subscription, "cancellation_requested")

    def update_subscription_status(self, invoice: Document, *, is_paid: bool) -> None:
        """Adapt the subscription to the result of a payment."""
        if invoice["_subscription"] is None:
            return
        subscription = self.get("subscription", invoice["_subscription"])
        status = subscription["status"]
        if status in ENDED:
            return
        with self.track(subscription, "customer.subscription.updated"):
            if is_paid:
                rows = self.select("invoice", _subscription=subscription["id"], status="open")
                if status == "incomplete" or not rows:
                    subscription["status"] = "active"
                intent = self.find_intent(invoice["id"])
                is_saved = subscription["payment_settings"]["save_default_payment_method"] == "on_subscription"
                if intent is not None and is_saved:
                    subscription["default_payment_method"] = intent["payment_method"]
            elif status == "active":
                subscription["status"] = "past_due"
        is_last = invoice["_attempted_at"] is not None and invoice["next_payment_attempt"] is None
        if not is_paid and is_last and subscription["status"] == "past_due":
            if self.final_status == "canceled":
                self.end_subscription(subscription, "payment_failed")
            else:
                with self.track(subscription, "customer.subscription.updated"):
                    subscription["status"] = self.final_status

    def preview(self, parameters: Document) -> Document:
        """Return the invoice that a change, a creation or the next renewal produces; the state is unchanged."""
        saved = self.save()
        self.event_is_enabled = False
        try:
            shared = {name: parameters[name] for name in ("automatic_tax", "discounts") if name in parameters}
            details = Parameters(parameters.get("subscription_details", {}) | shared)
            if id := parameters.get("subscription"):
                subscription = self.get("subscription", id, "subscription")
                previous = subscription["latest_invoice"]
                self.update_subscription(subscription, details)
                if subscription["latest_invoice"] == previous:
                    if subscription["cancel_at_period_end"]:
                        raise ApiError(404, f"No upcoming invoices for customer: '{subscription['customer']}'",
                                       code="invoice_upcoming_none")  # fmt: skip
                    self._start_period(subscription)
            else:
                details |= {"customer": parameters.get("customer", ""), "payment_behavior": "default_incomplete"}
                subscription = self.create_subscription(details)
            if names := details.find_ignored():
                raise InvalidParameters(f"The server does not support {', '.join(names)} here.", "subscription_details")
            invoice = self.render(self.get("invoice", subscription["latest_invoice"]))
            invoice |= {
                "id": f"upcoming_{invoice['id']}", "status": "draft", "number": None, "effective_at": None,
                "hosted_invoice_url": None, "invoice_pdf": None, "auto_advance": False, "attempted": False,
                "amount_paid": 0, "amount_remaining": invoice["amount_due"], "next_payment_attempt": None,
                "status_transitions": dict.fromkeys(invoice["status_transitions"]),
            }  # fmt: skip
            return invoice
        finally:
            self.restore(saved)
            self.event_is_enabled = True

    # Schedules

    def create_schedule(self, subscription: Document) -> Document:
        """Create a schedule whose single phase is the current period."""
        if subscription["schedule"]:
            raise InvalidParameters("You cannot migrate a subscription that is already attached to a schedule: "
                                    f"{subscription['schedule']}.", "from_subscription")  # fmt: skip
        start, end = self._period(subscription)
        schedule = self.add("subscription_schedule", {
            "billing_mode": subscription["billing_mode"], "canceled_at": None, "current_phase": {"end_date": end,
            "start_date": start}, "customer": subscription["customer"],
            "default_settings": {"automatic_tax": subscription["automatic_tax"], "billing_cycle_anchor": "automatic",
            "collection_method": "charge_automatically", "default_payment_method": None,
            "invoice_settings": {"issuer": SELF}}, "end_behavior": "release", "metadata": {},
            "phases": [self._build_phase({}, start, end, subscription)], "status": "active",
            "subscription": subscription["id"], "test_clock": subscription["test_clock"],
        })  # fmt: skip
        self._copy_items(subscription, schedule)
        with self.track(subscription, "customer.subscription.updated"):
            subscription["schedule"] = schedule["id"]
        self.emit("subscription_schedule.created", schedule)
        return schedule

    def _build_phase(self, requested: Document, start: int, end: int, subscription: Document) -> Document:
        items = []
        for each in requested.get("items", []):
            if "price" not in each:
                each = each | {"price": self._resolve_recurring_price(each)["id"]}
            price = self.get("price", each["price"], "phases[items][price]")
            if price["currency"] != subscription["currency"]:
                raise InvalidParameters("The currency of a phase must match the subscription.", "phases")
            items.append({"discounts": [], "metadata": each.get("metadata") or {},
                          "price": price["id"], "quantity": each.get("quantity", 1), "tax_rates": []})  # fmt: skip
        discounts = [
            dict.fromkeys(("coupon", "discount", "promotion_code")) | each for each in requested.get("discounts") or ()
        ]
        if end <= start:
            raise InvalidParameters("The end of a phase must be after its start.", "phases[end_date]")
        return self.build("subscription_schedule_phase_configuration", {
            "add_invoice_items": [], "currency": subscription["currency"], "default_payment_method": None,
            "default_tax_rates": [], "discounts": discounts, "end_date": end, "items": items,
            "metadata": requested.get("metadata") or {}, "proration_behavior": requested.get("proration_behavior",
            "create_prorations"), "start_date": start,
        })  # fmt: skip

    def _current_phase(self, schedule: Document) -> Document | None:
        return next((each for each in schedule["phases"] if each["start_date"] <= self.now < each["end_date"]), None)

    def _copy_items(self, subscription: Document, schedule: Document) -> None:
        """Copy the items of the subscription to the current phase of its schedule."""
        phase = self._current_phase(schedule) or schedule["phases"][0]
        phase["items"] = [
            {"discounts": [], "metadata": item["metadata"], "price": item["price"]["id"],
             "quantity": item["quantity"], "tax_rates": []}
            for item in subscription["items"]["data"]
        ]  # fmt: skip

    def update_schedule(self, schedule: Document, parameters: Document) -> None:
        """Replace the phases; a change of the current phase is applied at once."""
        self._check_schedule(schedule)
        subscription = self.get("subscription", schedule["subscription"])
        with self.track(schedule, "subscription_schedule.updated"):
            merge_metadata(schedule, parameters.get("metadata"))
            schedule["end_behavior"] = parameters.get("end_behavior", schedule["end_behavior"])
            if "phases" not in parameters:
                return
            current, phases = schedule["current_phase"], []
            position = parameters["phases"][0].get("start_date")
            if position not in {each["start_date"] for each in schedule["phases"]} and position != "now":
                raise InvalidParameters("You can not modify the start date of the current phase.",
                                        "phases[0][start_date]")  # fmt: skip
            position = self.now if position == "now" else position
            for number, each in enumerate(parameters["phases"]):
                start = each.get("start_date", position)
                if start == "now" or (number and start != position):
                    raise InvalidParameters("The start of a phase must be the end of the previous phase.", "phases")
                duration = each.get("duration")
                end = each.get("end_date")
                if duration is not None:
                    end = add_intervals(start, duration["interval"], duration.get("interval_count", 1))
                if end is None:
                    interval, length = self._recurrence_of(each["items"][0])
                    end = add_intervals(start, interval, length)
                position = self.now if end == "now" else end
                phases.append(self._build_phase(each, start, position, subscription))
            schedule["phases"] = phases
            phase = self._current_phase(schedule)
            if phase is None:
                raise InvalidParameters("The phases must contain the current time.", "phases")
            schedule["current_phase"] = {"end_date": phase["end_date"], "start_date": phase["start_date"]}
            is_new = current["start_date"] != phase["start_date"]
            behavior = parameters.get("proration_behavior", "create_prorations")
            with self.track(subscription, "customer.subscription.updated"):
                self._apply_phase(subscription, phase, phase["proration_behavior"] if is_new else behavior)

    def _recurrence_of(self, requested: Document) -> tuple[str, int]:
        recurring = self._resolve_recurring_price(requested)["recurring"]
        return recurring["interval"], recurring["interval_count"]

    def _enter_phase(self, subscription: Document, phase: Document) -> list[Document]:
        """Apply the metadata and the discounts of a phase, and return the changes of the items."""
        subscription["metadata"] = {k: v for k, v in (subscription["metadata"] | phase["metadata"]).items() if v != ""}
        codes = [{name: value for name, value in each.items() if value is not None} for each in phase["discounts"]]
        if codes:
            subscription["discounts"] = self.create_discounts(codes, subscription["customer"], subscription["id"])
        old, new = subscription["items"]["data"], phase["items"]
        if [(each["price"]["id"], each["quantity"]) for each in old] == [(e["price"], e["quantity"]) for e in new]:
            return []
        changes = [{"price": each["price"], "quantity": each["quantity"]} for each in new]
        changes = [each | ({"id": old[i]["id"]} if i < len(old) else {}) for i, each in enumerate(changes)]
        return changes + [{"id": item["id"], "deleted": True} for item in old[len(new) :]]

    def _apply_phase(self, subscription: Document, phase: Document, behavior: str) -> None:
        if changes := self._enter_phase(subscription, phase):
            self.apply_items(subscription, changes, behavior, self.now)

    def _check_schedule(self, schedule: Document) -> None:
        if schedule["status"] not in ("not_started", "active"):
            raise InvalidParameters(f"You cannot change a subscription schedule that is {schedule['status']}.")

    def end_schedule(self, schedule: Document, status: str) -> None:
        """End a schedule: `released`, `canceled` or `completed`; the subscription is detached."""
        self._check_schedule(schedule)
        subscription = self.get("subscription", schedule["subscription"])
        names = {"released": "released_at", "canceled": "canceled_at", "completed": "completed_at"}
        schedule |= {"status": status, "current_phase": None, names[status]: self.now}
        if status == "released":
            schedule |= {"subscription": None, "released_subscription": subscription["id"]}
        with self.track(subscription, "customer.subscription.updated"):
            subscription["schedule"] = None
        self.emit(f"subscription_schedule.{status}", schedule)
        if status != "released" and subscription["status"] not in ENDED:
            self.end_subscription(subscription, "cancellation_requested")

    def _change_phase(self, schedule: Document) -> None:
        phase = self._current_phase(schedule)
        if phase is None:
            self.end_schedule(schedule, "released" if schedule["end_behavior"] == "release" else "completed")
            return
        subscription = self.get("subscription", schedule["subscription"])
        with self.track(schedule, "subscription_schedule.updated"):
            schedule["current_phase"] = {"end_date": phase["end_date"], "start_date": phase["start_date"]}
            with self.track(subscription, "customer.subscription.updated"):
                if self._period(subscription)[1] <= self.now:  # the new price belongs to the new period
                    self._start_period(subscription, phase)
                else:
                    self._apply_phase(subscription, phase, phase["proration_behavior"])

    # Passing of time

    def _start_period(self, subscription: Document, phase: Document | None = None) -> None:
        """Start the next period and create its draft."""
        before = self._period(subscription)
        if phase is not None:
            anchor, recurrence = subscription["billing_cycle_anchor"], self._recurrence(subscription)
            self.change_items(subscription, self._enter_phase(subscription, phase), "none", before[1])
            if self._recurrence(subscription) == recurrence:
                subscription["billing_cycle_anchor"] = anchor
        interval, length = self._recurrence(subscription)
        self._set_period(subscription, find_period(subscription["billing_cycle_anchor"], interval, length, before[1]))
        subscription["discounts"] = [
            id for id in subscription["discounts"]
            if not self.get("discount", id)["_is_used"] and (self.get("discount", id)["end"] or before[1] + 1) > before[1]
        ]  # fmt: skip
        self._invoice(subscription, "subscription_cycle", self._build_period_lines(subscription), before)

    def _end_period(self, subscription: Document) -> None:
        if subscription["cancel_at_period_end"]:
            period = self._period(subscription)
            self.end_subscription(subscription, "cancellation_requested")
            if self.take_pending_lines(subscription["customer"], subscription["id"]):
                self._invoice(subscription, "subscription_cycle", [], period)
            return
        with self.track(subscription, "customer.subscription.updated"):
            self._start_period(subscription)

    def _advance_draft(self, invoice: Document) -> None:
        self.finalize(invoice)
        if invoice["status"] == "open" and invoice["collection_method"] == "charge_automatically":
            self.pay(invoice, None)

    def _list_due(self) -> Iterator[tuple[int, int, Callable[[Document], Any], Document]]:
        """Yield the time, the rank at equal times, and the action of each object that waits for a time."""
        for schedule in self.select("subscription_schedule", status="active"):
            yield schedule["current_phase"]["end_date"], 0, self._change_phase, schedule
        for subscription in self.select("subscription"):
            if subscription["status"] == "incomplete":
                yield (
                    subscription["created"] + EXPIRY,
                    1,
                    lambda each: self.end_subscription(each, "payment_failed"),
                    subscription,
                )
            elif subscription["status"] not in ENDED:
                yield self._period(subscription)[1], 1, self._end_period, subscription
        for invoice in self.select("invoice", status="draft"):
            if invoice["auto_advance"] and invoice["automatically_finalizes_at"]:
                yield invoice["automatically_finalizes_at"], 2, self._advance_draft, invoice
        for invoice in self.select("invoice", status="open"):
            if invoice["next_payment_attempt"] and invoice["collection_method"] == "charge_automatically":
                yield invoice["next_payment_attempt"], 3, lambda each: self.pay(each, None), invoice

    def advance(self, to: int) -> None:
        """Move the clock, and execute everything that becomes due, in order of time."""
        while due := [each for each in self._list_due() if each[0] <= to]:
            at, _, action, document = min(due, key=lambda each: each[:2])
            self.now = max(self.now, at)
            action(document)
        self.now = max(self.now, to)

    def advance_test_clock(self, clock: Document, to: int) -> None:
        """Advance a test clock by at most two intervals of the shortest subscription of its customers."""
        ends = [
            add_intervals(clock["frozen_time"], interval, 2 * length)
            for each in self.select("subscription", test_clock=clock["id"])
            if each["status"] not in ENDED
            for interval, length in [self._recurrence(each)]
        ]
        if to <= clock["frozen_time"]:
            raise InvalidParameters("The new frozen time must be after the current one.", "frozen_time")
        if to > min(ends, default=clock["frozen_time"] + 730 * DAY):
            raise InvalidParameters("You can only advance the test clock by up to two intervals of the shortest "
                                    "subscription of its customers.", "frozen_time")  # fmt: skip
        self.advance(to)
        clock |= {"frozen_time": to, "status": "advancing"}
        clock["status_details"] = {"advancing": {"target_frozen_time": to}}
        self.emit("test_helpers.test_clock.advancing", clock)
