"""Events as JSON: the envelope (docs/conventions.md#envelope), the very bytes that feed, stream and webhooks give."""

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

_MARK = 40
"""Bytes that telling how many fields are left out takes, at most."""


@lru_cache(maxsize=256)
def _provenance(provenance: Provenance) -> msgspec.Raw:
    """Encoded once for the many fields of one run."""
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
    """The event's data: ids, version, facets, and each changed field with its provenance."""
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
        own = {path: {"provenance": _provenance(one)} for path, one in event.origins.items()}
        answer["fields"] = [_field(path, old, new, own.get(path, provenance)) for path, old, new in event.fields]
    return answer


def envelope(event: Event, tenant: Tenant, time: datetime) -> dict[str, Any]:
    """The whole event."""
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
    """The event's bytes. Of one that is too large the largest values are left out: their fields say `omitted` instead."""
    return bounded(envelope(event, tenant, time))


def bounded(whole: Mapping[str, Any]) -> bytes:
    """An envelope's bytes, EVENT_BYTES at most unless something else than its fields is large."""
    body = _encode(whole)
    if len(body) <= EVENT_BYTES or "fields" not in whole["data"]:
        return body
    copy = {**whole, "data": {**whole["data"], "fields": list(whole["data"]["fields"])}}
    without_values(copy, EVENT_BYTES)
    return _encode(copy)


def without_values(whole: dict[str, Any], most: int) -> None:
    """Bring an envelope to so many bytes: the values of its largest fields go, and where that is not enough last fields."""
    fields, excess = whole["data"]["fields"], len(_encode(whole)) + _MARK - most
    sizes = [(len(_encode([field.get("old"), field.get("new")])), place) for place, field in enumerate(fields)]
    for length, place in sorted(sizes, reverse=True):
        if excess <= 0:
            return
        fields[place] = omitted(fields[place])
        excess -= length - 8
    count, excess = len(fields), len(_encode(whole)) + _MARK - most
    while excess > 0 and fields:
        excess -= len(_encode(fields.pop()))
    if len(fields) < count:
        whole["data"]["fields_omitted"] = count - len(fields)


class WireEventRendering:
    """The port's face of this module."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """The envelope with its data."""
        return told(event, tenant, time)

    def redacted(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """The envelope with these field groups alone; None when nothing of the change may be shown.

        Versions that show nothing to this reader leave gaps, so `previous_version` goes as well.
        """
        if not event.type.startswith("offer."):
            return event.body
        answer = _decode(event.body)
        shown = answer["data"]
        fields = [field for field in shown.get("fields", ()) if GROUP_OF.get(field["path"], "base") in groups]
        if not fields:
            return None
        shown["fields"] = fields
        if "facets" in shown:
            shown["facets"] = facets([(field["path"], None, None) for field in fields])
        shown.pop("previous_version", None)
        return _encode(answer)
