"""Objects of the account: lookup, rendering, expansion, lists and events."""

import copy
import operator
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import stripe

from tests.stripe_server.errors import ApiError, InvalidParameters
from tests.stripe_server.validation import complete_document, load_specification

Document = dict[str, Any]
_COMPARISONS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
PREFIXES = {
    "customer": "cus", "tax_id": "txi", "price": "price", "product": "prod", "setup_intent": "seti", "refund": "re",
    "payment_intent": "pi", "payment_method": "pm", "charge": "ch", "subscription": "sub", "subscription_item": "si",
    "subscription_schedule": "sub_sched", "invoice": "in", "invoiceitem": "ii", "line_item": "il", "event": "evt",
    "invoice_payment": "inpay", "coupon": "coupon", "promotion_code": "promo", "discount": "di",
    "test_helpers.test_clock": "clock", "request": "req", "setup_attempt": "setatt",
}  # fmt: skip
"""Prefix of the IDs of each type."""


class Store:
    """Objects by type and ID, with the time of the account.

    A document has Stripe's fields, references by ID, and fields of the server, whose names start with an underscore.
    """

    def __init__(self, now: int) -> None:
        self.now = now
        self.objects: dict[str, dict[str, Document]] = {}
        self.events: list[Document] = []
        self.included: dict[tuple[str, str], Callable[[Document], Any]] = {}
        """Fields that an answer contains only if the request expands them."""
        self.event_is_enabled = True
        self.request: Document | None = None
        self._seed, self._count = secrets.token_hex(4), 0

    def create_id(self, kind: str) -> str:
        """Return a new ID; IDs of different servers differ."""
        self._count += 1
        return f"{PREFIXES[kind]}_{self._seed}{self._count:08x}"

    def add(self, kind: str, fields: Document, id: str | None = None) -> Document:
        """Store a new object of a type."""
        document = self.build(kind, {"id": id or self.create_id(kind)} | fields)
        self.objects.setdefault(kind, {})[document["id"]] = document
        return document

    def build(self, kind: str, fields: Document) -> Document:
        """Return a document of a type; the specification states its other fields that are null."""
        names = load_specification()["components"]["schemas"][kind]["properties"]
        common = {"object": kind, "created": self.now, "livemode": False, "metadata": {}}
        document = {name: value for name, value in common.items() if name in names} | fields
        complete_document(document, {"$ref": f"/{kind}"}, {name for owner, name in self.included if owner == kind})
        return document

    def select(self, kind: str, **fields: Any) -> list[Document]:
        """Return the objects of a type whose fields have the values, oldest first."""
        return [
            each
            for each in self.objects.get(kind, {}).values()
            if all(each.get(name) == value for name, value in fields.items())
        ]

    def get(self, kind: str, id: str, param: str | None = None) -> Document:
        """Return an object. Raises ApiError if the account has none of this type and ID."""
        found = self.objects.get(kind, {}).get(id)
        if found is None:
            status = 404 if param is None else 400
            name = kind.rpartition(".")[2].replace("_", " ")
            raise ApiError(status, f"No such {name}: '{id}'", code="resource_missing", param=param or "id")
        return found

    def render(self, document: Document) -> Document:
        """Return a copy without the fields of the server."""
        if "_" not in "".join(name[0] for name in document):
            return copy.deepcopy(document)
        return copy.deepcopy({name: value for name, value in document.items() if name[0] != "_"})

    def expand(self, document: Any, path: str) -> None:
        """Replace the reference at a path, such as `latest_invoice.payments`, by its object."""
        name, _, rest = path.partition(".")
        if isinstance(document, list):
            for each in document:
                self.expand(each, path)
            return
        if document is None or (isinstance(document, dict) and document.get("deleted")):
            return
        include = self.included.get((document.get("object", ""), name))
        if include is not None and name not in document:
            document[name] = include(document)
        elif isinstance(document.get(name), str):
            found = [group[document[name]] for group in self.objects.values() if document[name] in group]
            if not found:
                raise InvalidParameters(f"This property cannot be expanded ({path}).", "expand")
            document[name] = self.render(found[0])
        elif isinstance(document.get(name), list) and all(isinstance(each, str) for each in document[name]):
            holder = {"object": document["object"]} | {str(i): id for i, id in enumerate(document[name])}
            for key in list(holder)[1:]:
                self.expand(holder, key)
            document[name] = list(holder.values())[1:]
        elif name not in document:
            raise InvalidParameters(f"This property cannot be expanded ({path}).", "expand")
        if rest:
            self.expand(document[name], rest)

    def list_page(self, rows: list[Document], url: str, parameters: Document) -> Document:
        """Return a page of objects, newest first."""
        limit = parameters.get("limit", 10)
        if not 1 <= limit <= 100:
            raise InvalidParameters("Invalid integer: limit must be between 1 and 100", "limit")
        created = parameters.get("created", {})
        bounds = created if isinstance(created, dict) else {"gte": created, "lte": created}
        rows = [
            row for row in reversed(rows) if all(_COMPARISONS[name](row["created"], at) for name, at in bounds.items())
        ]  # fmt: skip
        for name in ("starting_after", "ending_before"):
            if (cursor := parameters.get(name)) is not None:
                position = next((i for i, row in enumerate(rows) if row["id"] == cursor), None)
                if position is None:
                    raise InvalidParameters(f"No such object: '{cursor}'", name, "resource_missing")
                rows = rows[position + 1 :] if name == "starting_after" else rows[:position][-limit:]
        page = [self.render(row) for row in rows[:limit]]
        return {"object": "list", "data": page, "has_more": len(rows) > limit, "url": url}

    def wrap(self, rows: list[Document], url: str) -> Document:
        """Return a complete list inside an object."""
        return {"object": "list", "data": rows, "has_more": False, "url": url}

    def emit(self, type: str, document: Document, previous: Document | None = None) -> None:
        """Record an event about an object."""
        if not self.event_is_enabled:
            return
        data: Document = {"object": self.render(document)}
        if previous is not None:
            data["previous_attributes"] = previous
        self.events.append({
            "id": self.create_id("event"),
            "object": "event",
            "api_version": stripe.api_version,
            "created": self.now,
            "data": data,
            "livemode": False,
            "pending_webhooks": 1,
            "request": self.request or {"id": None, "idempotency_key": None},
            "type": type,
        })  # fmt: skip

    @contextmanager
    def track(self, document: Document, type: str) -> Iterator[None]:
        """Record an event with the previous attributes if the block changes the object."""
        before = self.render(document)
        yield
        after = self.render(document)
        previous = {name: before.get(name) for name in after if before.get(name) != after[name]}
        if previous:
            self.emit(type, document, previous)

    def save(self) -> bytes:
        """Return a copy of the state, which `restore` accepts."""
        return pickle.dumps((self.objects, self.events, self.now))

    def restore(self, saved: bytes) -> None:
        """Replace the state by a copy."""
        self.objects, self.events, self.now = pickle.loads(saved)


def merge_metadata(document: Document, changes: Any) -> None:
    """Apply metadata of a request: "" removes a key, or all keys."""
    if changes is None:
        return
    metadata = document["metadata"] if changes != "" else {}
    document["metadata"] = {key: value for key, value in (metadata | (changes or {})).items() if value != ""}


def empty_to_none(value: Any) -> Any:
    """Return None for the empty string, which unsets a field."""
    return None if value == "" else value
