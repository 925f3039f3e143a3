"""Rendering of payloads from events in the log: thin, or fat with the object at the event's version."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.catalogue.ports import CatalogueStore
from domain.changes.ports import EventReader
from domain.events.model import LoggedEvent
from domain.kernel.bounds import DOCUMENT_BYTES, PAYLOAD_BYTES
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import PayloadKind
from domain.webhooks.payload import SUBJECT_KINDS_WITH_OBJECT, combine_envelopes, find_object, make_thin, revert_object
from domain.webhooks.ports import PayloadRendering, Subscriber
from ports.codec import Codec
from ports.unit_of_work import UnitOfWork

_MAX_CACHED_BODIES = 2_000
_MAX_CACHED_BYTES = 4 << 10
"""Maximum size of a cached thin body in bytes."""
_MAX_REVERTED = 100
"""Maximum number of events that are undone to reconstruct an earlier version of an object."""


@dataclass(frozen=True, slots=True)
class ObjectHistory:
    """Earlier versions of objects, reconstructed from current documents and later events in the log."""

    uow: UnitOfWork
    events: EventReader
    codec: Codec

    async def reconstruct(self, tenant: Tenant, event: LoggedEvent) -> bytes | None:
        """Return the event's object as JSON, as the API returned it at the event's version.

        Returns None if the event has no object, or the object is too large, no longer exists, belongs to another
        organisation, or cannot be reconstructed at this version.
        """
        if event.type.partition(".")[0] not in SUBJECT_KINDS_WITH_OBJECT or event.groups is not None:
            return None
        async with self.uow.begin_reading(tenant) as tx:
            document = await tx[CatalogueStore].get_product(event.product or event.subject)
        if document is None or len(document.body) > DOCUMENT_BYTES:
            return None
        current = find_object(self.codec.decode(document.body), event.subject)
        if current is None or current["version"] < event.version:
            return None
        if current["version"] > event.version:
            later = await self.events.get_about_subject(tenant, event.subject, event.position, _MAX_REVERTED)
            current = revert_object(current, [self.codec.decode(one.body) for one in later], event.version)
        encoded = None if current is None else self.codec.encode(current)
        return None if encoded is None or len(encoded) > PAYLOAD_BYTES else encoded


class PayloadRenderer:
    """Renders payloads. Thin bodies are cached, because several endpoints can receive the same event."""

    def __init__(self, codec: Codec, rendering: PayloadRendering, objects: ObjectHistory) -> None:
        self._codec, self._rendering, self._objects = codec, rendering, objects
        self._thin_bodies: dict[tuple[str, frozenset[str] | None], bytes] = {}

    async def render(self, subscriber: Subscriber, events: Sequence[LoggedEvent]) -> bytes:
        """Return the body of a request to the endpoint with these events of one subject.

        Args:
            subscriber: The endpoint.
            events: One or more events, oldest first.
        """
        endpoint, latest = subscriber.endpoint, events[-1]
        if endpoint.payload == PayloadKind.FAT and subscriber.includes_fat_payloads:
            envelope = (
                latest.body if len(events) == 1 else self._rendering.encode_combined_envelope(self._combine(events))
            )
            body = self._rendering.add_object(envelope, await self._objects.reconstruct(subscriber.tenant, latest))
        elif len(events) == 1:
            body = self._render_thin(latest)
        else:
            body = self._codec.encode(make_thin(self._combine(events)))
        return self._rendering.convert_to_version(body, endpoint.api_version)

    def combine_events(self, events: Sequence[LoggedEvent]) -> LoggedEvent:
        """Combine events of one subject, oldest first, into one event; the result can be combined with later events."""
        return replace(events[-1], body=self._rendering.encode_combined_envelope(self._combine(events)))

    def _combine(self, events: Sequence[LoggedEvent]) -> dict[str, Any]:
        return combine_envelopes([self._codec.decode(event.body) for event in events])

    def _render_thin(self, event: LoggedEvent) -> bytes:
        cache_key = event.id, event.groups
        body = self._thin_bodies.get(cache_key)
        if body is None:
            if len(self._thin_bodies) >= _MAX_CACHED_BODIES:
                self._thin_bodies.clear()
            body = self._codec.encode(make_thin(self._codec.decode(event.body)))
            if len(body) <= _MAX_CACHED_BYTES:
                self._thin_bodies[cache_key] = body
        return body
