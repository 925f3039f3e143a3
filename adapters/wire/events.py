"""Events as JSON: the envelope of the specification, the very bytes that feed, stream and webhooks give."""

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from adapters.wire.words import instant
from domain.events.model import Event, Provenance
from domain.kernel.tenancy import Tenant

_encode = msgspec.json.Encoder(decimal_format="number").encode


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


def _field(path: str, old: Any, new: Any, told: dict[str, Any]) -> dict[str, Any]:
    if path == "withdrawn_at":
        old, new = (instant(old) if old else None), (instant(new) if new else None)
    return {"path": path, "old": old, "new": new, **told}


def data(event: Event) -> dict[str, Any]:
    """The event's data: ids, version, facets, and each changed field with its provenance."""
    answer: dict[str, Any] = {**event.data, "version": event.version}
    if event.facets is not None:
        answer["facets"] = list(event.facets)
    if event.fields:
        told = {"provenance": _provenance(event.provenance)} if event.provenance else {}
        answer["fields"] = [_field(path, old, new, told) for path, old, new in event.fields]
    return answer


def envelope(event: Event, tenant: Tenant, time: datetime) -> dict[str, Any]:
    """The whole event."""
    answer = {
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
    }
    if event.correlation_id is not None:
        answer["correlation_id"] = event.correlation_id
    answer["causation_id"] = event.causation_id
    return answer


class WireEventRendering:
    """The port's face of this module."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """The envelope with its data."""
        return _encode(envelope(event, tenant, time))
