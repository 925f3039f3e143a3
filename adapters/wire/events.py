"""Encoding of events (docs/conventions.md#envelope) to the bytes that feed, stream and webhooks share."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from domain.catalogue.differences import facets
from domain.changes.model import GROUP_OF
from domain.events.model import Event, LoggedEvent, Provenance, omitted
from domain.kernel.bounds import EVENT_BYTES
from domain.kernel.plain import instant
from domain.kernel.tenancy import Tenant

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(decimal_format="number").encode

_OMITTED_BYTES = 40
"""Maximum bytes of the member `fields_omitted`."""


@lru_cache(maxsize=256)
def _provenance(provenance: Provenance) -> msgspec.Raw:
    """Encode a provenance; the result is cached for the many fields of one run."""
    return msgspec.Raw(
        _encode(
            {
                "source": provenance.source,
                "method": provenance.method,
                "confidence": provenance.confidence,
                "observed_at": instant(provenance.observed_at),
            }
        )
    )


def _field(path: str, old: Any, new: Any, provenance: dict[str, Any]) -> dict[str, Any]:
    if path == "withdrawn_at":
        old, new = (instant(old) if old else None), (instant(new) if new else None)
    return {"path": path, "old": old, "new": new, **provenance}


def data(event: Event) -> dict[str, Any]:
    """Render the event's data: ids, version, facets, and each changed field with its provenance."""
    answer: dict[str, Any] = {**event.data}
    if event.catalogue not in (None, event.subject):
        answer["catalogue"] = event.catalogue
    answer["version"] = event.version
    if (previous := event.previous_version) is not None:
        answer["previous_version"] = previous
    if event.facets is not None:
        answer["facets"] = list(event.facets)
    if event.fields:
        provenance = {"provenance": _provenance(event.provenance)} if event.provenance else {}
        origins = {path: {"provenance": _provenance(origin)} for path, origin in event.origins.items()}
        answer["fields"] = [_field(path, old, new, origins.get(path, provenance)) for path, old, new in event.fields]
    return answer


def envelope(event: Event, tenant: Tenant, time: datetime) -> dict[str, Any]:
    """Render the event's envelope with its data."""
    return {
        "id": event.id,
        "type": event.type,
        "spec_version": "1.0",
        "source": event.area,
        "subject": event.subject,
        "time": instant(time),
        "tenant_id": tenant.org,
        "version": event.version,
        "schema_version": event.schema_version,
        "livemode": tenant.livemode,
        "data": data(event),
        "correlation_id": event.correlation_id,
        "causation_id": event.causation_id,
    }


def told(event: Event, tenant: Tenant, time: datetime) -> bytes:
    """Encode the event; the largest values of an oversized event are replaced by `omitted`."""
    return bounded(envelope(event, tenant, time))


def bounded(whole: Mapping[str, Any]) -> bytes:
    """Encode an envelope, shortening its fields to fit into EVENT_BYTES."""
    body = _encode(whole)
    if len(body) <= EVENT_BYTES or "fields" not in whole["data"]:
        return body
    copy = {**whole, "data": {**whole["data"], "fields": list(whole["data"]["fields"])}}
    without_values(copy, EVENT_BYTES)
    return _encode(copy)


def without_values(whole: dict[str, Any], most: int) -> None:
    """Shorten an envelope in place to `most` bytes: omit the largest values first, then drop fields from the end."""
    fields, excess = whole["data"]["fields"], len(_encode(whole)) + _OMITTED_BYTES - most
    sizes = [(len(_encode([field.get("old"), field.get("new")])), index) for index, field in enumerate(fields)]
    for length, index in sorted(sizes, reverse=True):
        if excess <= 0:
            return
        fields[index] = omitted(fields[index])
        excess -= length - 8
    count, excess = len(fields), len(_encode(whole)) + _OMITTED_BYTES - most
    while excess > 0 and fields:
        excess -= len(_encode(fields.pop()))
    if len(fields) < count:
        whole["data"]["fields_omitted"] = count - len(fields)


class WireEventRendering:
    """EventRendering port."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Encode the event."""
        return told(event, tenant, time)

    def redacted(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """Return the envelope restricted to the field groups, or None if no changed field belongs to them.

        `previous_version` is removed, because a reader does not receive every version.
        """
        if not event.type.startswith("offer."):
            return event.body
        whole = _decode(event.body)
        redacted = whole["data"]
        fields = [field for field in redacted.get("fields", ()) if GROUP_OF.get(field["path"], "base") in groups]
        if not fields:
            return None
        redacted["fields"] = fields
        if "facets" in redacted:
            redacted["facets"] = facets([(field["path"], None, None) for field in fields])
        redacted.pop("previous_version", None)
        return _encode(whole)
