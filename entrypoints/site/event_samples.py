"""One sample of each event type as it is sent, thin and fat, about one made-up product; the same each time."""

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
    """What is POSTed to an endpoint that asks for thin payloads, and to one that asks for fat ones (None: the same)."""

    thin: Any
    fat: Any


def _steady(text: str, type: str) -> str:
    """The text with made-up ids that are the same each time, so that the page is."""
    known: dict[str, str] = {}

    def made(found: re.Match[str]) -> str:
        if found[0] not in known:
            digest = sha256(f"{type} {len(known)}".encode()).digest()
            known[found[0]] = f"{found[1]}_" + "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:22])
        return known[found[0]]

    return _ID.sub(made, text)


def _put(target: dict[str, Any], path: str, value: Any) -> None:
    *outer, name = path.split(".", 2)
    for part in outer:
        target = target.setdefault(part, {})
    target[name] = value


def _stated(type: str) -> Event:
    return sample(type, new_id("cat"), _NOW)


def _resource(noun: str, event: Event, **more: Any) -> dict[str, Any]:
    """What the event is about, as reading it answers."""
    made: dict[str, Any] = {"object": noun, "id": event.data["id"], **more, "version": event.version}
    for path, _, new in _stated(f"{noun}.created").fields:
        _put(made, path, new)
    return made


def _object(event: Event) -> dict[str, Any] | None:
    """`data.object` of a fat payload; None where there is none."""
    moment = "2026-11-20T13:08:00.123Z"
    noun = event.type.partition(".")[0]
    if noun not in NOUNS:
        return None
    if noun == "offer":
        around = {name: event.data[name] for name in ("source", "location", "variant", "product")}
        return _resource(noun, event, **around, catalogue=event.catalogue, observed_at=moment)
    active = {"status": "discontinued" if event.type == "product.discontinued" else "active"}
    if noun == "variant":
        around = {"product": event.data["product"]}
        return _resource(noun, event, **around, **active, offers=[], updated_at=moment)
    return _resource(
        noun, event, catalogue=event.catalogue, **active, visibility="listed", variants=[], created_at=moment,
        updated_at=moment,
    )  # fmt: skip


def _special(type: str, table: Table) -> Event | None:
    """Events that test mode sends no sample of, and the service sends all the same."""
    endpoint = new_id("whe")
    if type == "webhook.test":
        return Event(type, endpoint, 1, {"id": endpoint, "url": "https://shop.example/hooks"})
    if type == "usage.threshold_reached":
        org = new_id("org")
        told = {"id": org, "meter": "records", "threshold": 80, "used": 412_000, "included": 500_000}
        return Event(type, org, 1, {**schema.example(USAGE.schema), **told})
    if type == "delivery.disabled":
        reply = next((dict(row.reply or {}) for row in table if row.id == "webhooks.read"), None)
        if reply is not None:
            reason = {"code": "failing", "message": "Nothing succeeded for 72 hours."}
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
    """The sample; None for a type whose payload is not known, since nothing sends it."""
    event = _stated(type) if type in TYPES_WITH_SAMPLE else _special(type, table)
    if event is None:
        return None
    event.identify(AuditContext(Actor("service", "worker"), "sample"))
    whole = json.loads(events.told(event, Tenant(new_id("org"), livemode=False), _NOW))
    object = _object(event)
    fat = None
    if object is not None:
        fat = json.loads(WirePayloadRendering().fat(json.dumps(whole).encode(), json.dumps(object).encode()))
    pair = json.loads(_steady(json.dumps([thin(whole), fat], ensure_ascii=False), type))
    return Sample(pair[0], pair[1])
