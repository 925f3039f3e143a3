"""Rendering of payloads from the log's envelopes: thin, or fat with the object at the event's version."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.catalogue.ports import CatalogueStore
from domain.changes.ports import EventReader
from domain.events.model import LoggedEvent
from domain.kernel.bounds import DOCUMENT_BYTES, PAYLOAD_BYTES
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import PayloadKind
from domain.webhooks.payload import NOUNS, combined, inside, reverted, thin
from domain.webhooks.ports import PayloadRendering, Subscriber
from ports.codec import Codec
from ports.unit_of_work import UnitOfWork

_MOST_KEPT = 2_000
_LARGEST_KEPT = 4 << 10
"""Maximum bytes of a thin body that is cached for other endpoints."""
_MOST_LATER = 100
"""Maximum changes that are undone to reach an earlier version."""


@dataclass(frozen=True, slots=True)
class ObjectsAsOf:
    """Objects of fat payloads: the present document with later changes undone by the log."""

    uow: UnitOfWork
    events: EventReader
    codec: Codec

    async def as_of(self, tenant: Tenant, event: LoggedEvent) -> bytes | None:
        """Return the object's JSON, as reading it returns.

        None if it has none, belongs to another organisation, is too large, or cannot be reconstructed.
        """
        if event.type.partition(".")[0] not in NOUNS or event.groups is not None:
            return None
        async with self.uow.read(tenant) as tx:
            document = await tx[CatalogueStore].product(event.product or event.subject)
        if document is None or len(document.body) > DOCUMENT_BYTES:
            return None
        found = inside(self.codec.decode(document.body), event.subject)
        if found is None or found["version"] < event.version:
            return None
        if found["version"] > event.version:
            later = await self.events.later(tenant, event.subject, event.position, _MOST_LATER)
            found = reverted(found, [self.codec.decode(one.body) for one in later], event.version)
        whole = None if found is None else self.codec.encode(found)
        return None if whole is None or len(whole) > PAYLOAD_BYTES else whole


class Payloads:
    """Renderer of payloads, which caches thin bodies for endpoints with the same view of the event."""

    def __init__(self, codec: Codec, rendering: PayloadRendering, objects: ObjectsAsOf) -> None:
        self._codec, self._rendering, self._objects = codec, rendering, objects
        self._thin: dict[tuple[str, frozenset[str] | None], bytes] = {}

    async def render(self, subscriber: Subscriber, events: Sequence[LoggedEvent]) -> bytes:
        """Render events of one subject, oldest first and at least one, as one body for the endpoint."""
        endpoint, latest = subscriber.endpoint, events[-1]
        if endpoint.payload == PayloadKind.FAT and subscriber.fat:
            whole = latest.body if len(events) == 1 else self._rendering.whole(self._combined(events))
            body = self._rendering.fat(whole, await self._objects.as_of(subscriber.tenant, latest))
        elif len(events) == 1:
            body = self._thin_once(latest)
        else:
            body = self._codec.encode(thin(self._combined(events)))
        return self._rendering.shaped(body, endpoint.api_version)

    def folded(self, events: Sequence[LoggedEvent]) -> LoggedEvent:
        """Combine events of one subject, oldest first, into one for further combination."""
        return replace(events[-1], body=self._rendering.whole(self._combined(events)))

    def _combined(self, events: Sequence[LoggedEvent]) -> dict[str, Any]:
        return combined([self._codec.decode(event.body) for event in events])

    def _thin_once(self, event: LoggedEvent) -> bytes:
        seen = event.id, event.groups
        body = self._thin.get(seen)
        if body is None:
            if len(self._thin) >= _MOST_KEPT:
                self._thin.clear()
            body = self._codec.encode(thin(self._codec.decode(event.body)))
            if len(body) <= _LARGEST_KEPT:
                self._thin[seen] = body
        return body
