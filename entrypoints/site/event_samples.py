"""One deterministic sample of each event type, thin and fat, about a fictitious product."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from adapters.wire import events
from adapters.wire.usage import USAGE
from adapters.wire.webhooks import WirePayloadRendering
from domain.events.model import Event
from domain.kernel import schema
from domain.kernel.ids import PREFIXES, new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.webhooks.payload import NOUNS, thin
from domain.webhooks.samples import TYPES_WITH_SAMPLE, sample
from entrypoints.operations.table import Table

_NOW = datetime(2026, 11, 20, 13, 8, 0, 123000, UTC)
_ID = re.compile(rf"\b({'|'.join(sorted(PREFIXES))})_[0-9A-Za-z]{{22}}\b")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Sample:
    """Bodies sent to endpoints with thin and with fat payloads (None: the same)."""

    thin: Any
    fat: Any


def _with_fixed_ids(text: str, type: str) -> str:
    """Replace random IDs by deterministic ones, so that the page is reproducible."""
    fixed_by_id: dict[str, str] = {}

    def fixed_id(match: re.Match[str]) -> str:
        if match[0] not in fixed_by_id:
            digest = sha256(f"{type} {len(fixed_by_id)}".encode()).digest()
            fixed_by_id[match[0]] = f"{match[1]}_" + "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:22])
        return fixed_by_id[match[0]]

    return _ID.sub(fixed_id, text)


def _put(target: dict[str, Any], path: str, value: Any) -> None:
    *outer, name = path.split(".", 2)
    for part in outer:
        target = target.setdefault(part, {})
    target[name] = value


def _sample_event(type: str) -> Event:
    return sample(type, new_id("cat"), _NOW)


def _resource(noun: str, event: Event, **more: Any) -> dict[str, Any]:
    """Return the event's subject as its read operation returns it."""
    made: dict[str, Any] = {"object": noun, "id": event.data["id"], **more, "version": event.version}
    for path, _, new in _sample_event(f"{noun}.created").fields:
        _put(made, path, new)
    return made


def _object(event: Event) -> dict[str, Any] | None:
    """Return `data.object` of a fat payload, or None."""
    moment = "2026-11-20T13:08:00.123Z"
    noun = event.type.partition(".")[0]
    if noun not in NOUNS:
        return None
    if noun == "offer":
        references = {name: event.data[name] for name in ("source", "location", "variant", "product")}
        return _resource(noun, event, **references, catalogue=event.catalogue, observed_at=moment)
    active = {"status": "discontinued" if event.type == "product.discontinued" else "active"}
    if noun == "variant":
        references = {"product": event.data["product"]}
        return _resource(noun, event, **references, **active, offers=[], updated_at=moment)
    return _resource(
        noun, event, catalogue=event.catalogue, **active, visibility="listed", variants=[], created_at=moment,
        updated_at=moment,
    )  # fmt: skip


def _special(type: str, table: Table) -> Event | None:
    """Return a sample of an event type for which test mode sends none, or None."""
    endpoint = new_id("whe")
    if type == "webhook.test":
        return Event(type, endpoint, 1, {"id": endpoint, "url": "https://shop.example/hooks"})
    if type == "usage.threshold_reached":
        org = new_id("org")
        usage = {"id": org, "meter": "records", "threshold": 80, "used": 412_000, "included": 500_000}
        return Event(type, org, 1, {**schema.example(USAGE.schema), **usage})
    if type == "delivery.disabled":
        reply = next((dict(row.reply or {}) for row in table if row.id == "webhooks.read"), None)
        if reply is not None:
            reason = {"code": "failing", "message": "No delivery succeeded for 72 hours."}
            data = {**schema.example(reply), "id": endpoint, "status": "disabled", "status_reason": reason}
            return Event(type, endpoint, 3, data)
    if type == "export.completed":
        reply = next((dict(row.reply or {}) for row in table if row.id == "exports.read"), None)
        if reply is not None:
            export = new_id("exp")
            data = {**schema.example(reply), "id": export, "kind": "products", "status": "succeeded"}
            return Event(type, export, 1, data)
    return None


def sample_of(type: str, table: Table) -> Sample | None:
    """Return the sample; None for a type that is not sent yet."""
    event = _sample_event(type) if type in TYPES_WITH_SAMPLE else _special(type, table)
    if event is None:
        return None
    event.identify(AuditContext(Actor("service", "worker"), "sample"))
    whole = json.loads(events.told(event, Tenant(new_id("org"), livemode=False), _NOW))
    object = _object(event)
    fat = None
    if object is not None:
        fat = json.loads(WirePayloadRendering().fat(json.dumps(whole).encode(), json.dumps(object).encode()))
    pair = json.loads(_with_fixed_ids(json.dumps([thin(whole), fat], ensure_ascii=False), type))
    return Sample(pair[0], pair[1])
