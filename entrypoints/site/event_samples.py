"""Samples of the events of each type for the documentation, with thin and fat payloads, about a fictitious product."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from adapters.api_json import events
from adapters.api_json.billing import PURCHASE
from adapters.api_json.credits import CREDIT_BALANCE, CREDIT_LOT
from adapters.api_json.proposals import PROPOSAL
from adapters.api_json.usage import USAGE
from adapters.api_json.webhooks import JsonPayloadRendering
from domain.events.model import Event
from domain.kernel import schema
from domain.kernel.ids import PREFIXES, new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.webhooks.payload import SUBJECT_KINDS_WITH_OBJECT, make_thin
from domain.webhooks.samples import TYPES_WITH_SAMPLE, create_sample
from entrypoints.operations.table import OperationTable

_NOW = datetime(2026, 11, 20, 13, 8, 0, 123000, UTC)
_ID = re.compile(rf"\b({'|'.join(sorted(PREFIXES))})_[0-9A-Za-z]{{22}}\b")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class EventSample:
    """Samples of the thin and the fat payload of an event type; `fat` is None if both payloads are the same."""

    thin: Any
    fat: Any


def _replace_random_ids(text: str, type: str) -> str:
    """Replace the random IDs in a text by fixed IDs, so that the page is the same in each build."""
    fixed_by_id: dict[str, str] = {}

    def fixed_id(match: re.Match[str]) -> str:
        if match[0] not in fixed_by_id:
            digest = sha256(f"{type} {len(fixed_by_id)}".encode()).digest()
            fixed_by_id[match[0]] = f"{match[1]}_" + "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:22])
        return fixed_by_id[match[0]]

    return _ID.sub(fixed_id, text)


def _set_value(target: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path in nested objects."""
    *outer, name = path.split(".", 2)
    for part in outer:
        target = target.setdefault(part, {})
    target[name] = value


def _create_sample_event(type: str) -> Event:
    """Return the sample of an event type that the API also sends in test mode."""
    return create_sample(type, new_id("cat"), _NOW)


def _build_resource(subject_kind: str, event: Event, **properties: Any) -> dict[str, Any]:
    """Return an example of the resource that an event is about, in the format of the API.

    Args:
        subject_kind: The kind of the resource, such as `product`.
        event: The event.
        properties: Further properties of the resource.
    """
    resource: dict[str, Any] = {"object": subject_kind, "id": event.data["id"], **properties, "version": event.version}
    for path, _, new in _create_sample_event(f"{subject_kind}.created").fields:
        _set_value(resource, path, new)
    return resource


def _build_object(event: Event) -> dict[str, Any] | None:
    """Return the `data.object` of an event's fat payload; None if the payload contains no object."""
    moment = "2026-11-20T13:08:00.123Z"
    subject_kind = event.type.partition(".")[0]
    if subject_kind not in SUBJECT_KINDS_WITH_OBJECT:
        return None
    if subject_kind == "offer":
        references = {name: event.data[name] for name in ("source", "location", "variant", "product")}
        return _build_resource(subject_kind, event, **references, catalogue=event.catalogue, observed_at=moment)
    active = {"status": "discontinued" if event.type == "product.discontinued" else "active"}
    if subject_kind == "variant":
        references = {"product": event.data["product"]}
        return _build_resource(subject_kind, event, **references, **active, offers=[], updated_at=moment)
    return _build_resource(
        subject_kind, event, catalogue=event.catalogue, **active, visibility="listed", variants=[], created_at=moment,
        updated_at=moment,
    )  # fmt: skip


def _create_proposal_event(type: str) -> Event:
    """Return a sample of an event about a proposal."""
    proposal = schema.build_example(PROPOSAL.schema)
    del proposal["reason"]
    if type == "proposal.applied":
        return Event(type, proposal["id"], 2, {**proposal, "status": "applied"})
    del proposal["decided_by"], proposal["decided_at"]
    return Event(type, proposal["id"], 1, {**proposal, "status": "proposed"})


def _create_special_event(type: str, table: OperationTable) -> Event | None:
    """Return a sample of an event type that `domain.webhooks.samples` does not include; None for unsupported types."""
    endpoint = new_id("whe")
    if type == "webhook.test":
        return Event(type, endpoint, 1, {"id": endpoint, "url": "https://shop.example/hooks"})
    if type in ("credits.low", "credits.exhausted"):
        org, is_low = new_id("org"), type == "credits.low"
        amounts = {"available_micros": 840_000 * is_low, "reserved_micros": 120_000 * is_low}
        balance = schema.build_example(CREDIT_BALANCE.schema)
        return Event(type, org, 1, {**balance, **amounts, "lots": balance["lots"] if is_low else [], "id": org})
    if type == "credits.purchased":
        purchase = schema.build_example(PURCHASE.schema) | {"status": "succeeded"}
        del purchase["confirmation"]
        return Event(type, purchase["id"], 1, purchase)
    if type == "credits.expiring":
        lot = schema.build_example(CREDIT_LOT.schema)
        return Event(type, lot["id"], 1, lot)
    if type == "usage.threshold_reached":
        org = new_id("org")
        usage = {"id": org, "meter": "records", "threshold": 80, "used": 412_000, "included": 500_000}
        return Event(type, org, 1, {**schema.build_example(USAGE.schema), **usage})
    if type == "delivery.disabled":
        reply = next((dict(row.reply or {}) for row in table if row.id == "webhooks.read"), None)
        if reply is not None:
            reason = {"code": "failing", "message": "No delivery succeeded for 72 hours."}
            data = {**schema.build_example(reply), "id": endpoint, "status": "disabled", "status_reason": reason}
            return Event(type, endpoint, 3, data)
    if type == "export.completed":
        reply = next((dict(row.reply or {}) for row in table if row.id == "exports.read"), None)
        if reply is not None:
            export = new_id("exp")
            data = {**schema.build_example(reply), "id": export, "kind": "products", "status": "succeeded"}
            return Event(type, export, 1, data)
    return None


def create_event_sample(type: str, table: OperationTable) -> EventSample | None:
    """Return the sample of an event type; None for a type that is never sent."""
    if type in TYPES_WITH_SAMPLE:
        event: Event | None = _create_sample_event(type)
    elif type.startswith("proposal."):
        event = _create_proposal_event(type)
    else:
        event = _create_special_event(type, table)
    if event is None:
        return None
    event.assign_ids(AuditContext(Actor("service", "worker"), "sample"))
    stored_event = json.loads(events.encode_event(event, Tenant(new_id("org"), livemode=False), _NOW))
    object = _build_object(event)
    fat = None
    if object is not None:
        fat = json.loads(
            JsonPayloadRendering().add_object(json.dumps(stored_event).encode(), json.dumps(object).encode())
        )
    pair = json.loads(_replace_random_ids(json.dumps([make_thin(stored_event), fat], ensure_ascii=False), type))
    return EventSample(pair[0], pair[1])
