"""Encoding of events (docs/conventions.md#envelope) as the JSON that feed, stream and webhooks share."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from domain.catalogue.differences import find_affected_facets
from domain.catalogue.licences import GROUP_BY_FIELD
from domain.events.model import Event, LoggedEvent, Provenance, to_omitted_field
from domain.kernel.bounds import EVENT_BYTES
from domain.kernel.json_values import format_time
from domain.kernel.tenancy import Tenant

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(decimal_format="number").encode

_MAX_FIELDS_OMITTED_BYTES = 40
"""Maximum size of the encoded member `fields_omitted`, which is added to a shortened event."""


@lru_cache(maxsize=256)
def _encode_provenance(provenance: Provenance) -> msgspec.Raw:
    """Encode a provenance. The result is cached, because many fields of one run have the same provenance."""
    return msgspec.Raw(
        _encode(
            {
                "source": provenance.source,
                "method": provenance.method,
                "confidence": provenance.confidence,
                "observed_at": format_time(provenance.observed_at),
            }
        )
    )


def _render_field_change(path: str, old: Any, new: Any, provenance: dict[str, Any]) -> dict[str, Any]:
    if path == "withdrawn_at":
        old, new = (format_time(old) if old else None), (format_time(new) if new else None)
    return {"path": path, "old": old, "new": new, **provenance}


def render_event_data(event: Event) -> dict[str, Any]:
    """Render the data of an event: IDs, versions, the changed parts of an offer (`facets`) and the changed fields."""
    data: dict[str, Any] = {**event.data}
    if event.catalogue not in (None, event.subject):
        data["catalogue"] = event.catalogue
    data["version"] = event.version
    if (previous := event.previous_version) is not None:
        data["previous_version"] = previous
    if event.facets is not None:
        data["facets"] = list(event.facets)
    if event.fields:
        provenance = {"provenance": _encode_provenance(event.provenance)} if event.provenance else {}
        origins = {path: {"provenance": _encode_provenance(origin)} for path, origin in event.origins.items()}
        data["fields"] = [
            _render_field_change(path, old, new, origins.get(path, provenance)) for path, old, new in event.fields
        ]
    return data


def render_envelope(event: Event, tenant: Tenant, time: datetime) -> dict[str, Any]:
    """Render the envelope of an event, including the event's data."""
    return {
        "id": event.id,
        "type": event.type,
        "spec_version": "1.0",
        "source": event.area,
        "subject": event.subject,
        "time": format_time(time),
        "tenant_id": tenant.org,
        "version": event.version,
        "schema_version": event.schema_version,
        "livemode": tenant.livemode,
        "data": render_event_data(event),
        "correlation_id": event.correlation_id,
        "causation_id": event.causation_id,
    }


def encode_event(event: Event, tenant: Tenant, time: datetime) -> bytes:
    """Encode an event; if it has more than EVENT_BYTES bytes, shorten its list of changed fields."""
    return encode_bounded_envelope(render_envelope(event, tenant, time))


def encode_bounded_envelope(envelope: Mapping[str, Any]) -> bytes:
    """Encode an envelope; if it has more than EVENT_BYTES bytes, shorten its list of changed fields."""
    body = _encode(envelope)
    if len(body) <= EVENT_BYTES or "fields" not in envelope["data"]:
        return body
    shortened = {**envelope, "data": {**envelope["data"], "fields": list(envelope["data"]["fields"])}}
    shorten_envelope(shortened, EVENT_BYTES)
    return _encode(shortened)


def shorten_envelope(envelope: dict[str, Any], max_bytes: int) -> None:
    """Shorten the list of changed fields in place, so that the encoded envelope has at most `max_bytes` bytes.

    The largest old and new values are omitted first. If that is not enough, the last fields are removed, and
    `fields_omitted` states their number.
    """
    fields, excess = envelope["data"]["fields"], len(_encode(envelope)) + _MAX_FIELDS_OMITTED_BYTES - max_bytes
    sizes = [(len(_encode([field.get("old"), field.get("new")])), index) for index, field in enumerate(fields)]
    for length, index in sorted(sizes, reverse=True):
        if excess <= 0:
            return
        fields[index] = to_omitted_field(fields[index])
        excess -= length - 8
    count, excess = len(fields), len(_encode(envelope)) + _MAX_FIELDS_OMITTED_BYTES - max_bytes
    while excess > 0 and fields:
        excess -= len(_encode(fields.pop()))
    if len(fields) < count:
        envelope["data"]["fields_omitted"] = count - len(fields)


class JsonEventRendering:
    """Rendering of events as JSON; implements the port EventRendering."""

    def encode_event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Encode an event with its envelope."""
        return encode_event(event, tenant, time)

    def redact(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """Return the envelope with only the changed fields that belong to the field groups; None if there are none.

        `previous_version` is removed, because a reader does not receive every version.
        """
        if not event.type.startswith("offer."):
            return event.body
        whole = _decode(event.body)
        redacted = whole["data"]
        fields = [field for field in redacted.get("fields", ()) if GROUP_BY_FIELD.get(field["path"], "base") in groups]
        if not fields:
            return None
        redacted["fields"] = fields
        if "facets" in redacted:
            redacted["facets"] = find_affected_facets([(field["path"], None, None) for field in fields])
        redacted.pop("previous_version", None)
        return _encode(whole)
