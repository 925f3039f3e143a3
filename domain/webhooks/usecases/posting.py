"""One attempt: the body, its signature, the POST, and the verdict on it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from domain.changes.usecases.reading import LogReading
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import (
    STORED_ANSWER,
    Attempt,
    AttemptFailure,
    AttemptStatus,
    DeliveryStatus,
    Endpoint,
    SealedSecrets,
    Verdict,
)
from domain.webhooks.schedule import DELAYS, TIMEOUT, judge
from domain.webhooks.signing import signature
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Item
from ports.clock import Clock
from ports.webhooks import DeliveryLog, ObjectReader, PayloadRendering, Sender, Sent, Subscriber

KEPT_HEADERS: Final = ("content-type", "retry-after", "webhook-delivery", "server")
_MOST_KEPT: Final = 2_000

Keys = Callable[[Endpoint, SealedSecrets, datetime], tuple[bytes, ...]]
"""The signing keys in force, the current one first."""
FeedCursor = Callable[[Tenant, int], str]
"""The cursor of the change feed at a position."""


class Posting:
    """Makes attempts; `agent` is the User-Agent."""

    def __init__(
        self,
        events: LogReading,
        log: DeliveryLog,
        sender: Sender,
        rendering: PayloadRendering,
        objects: ObjectReader,
        keys: Keys,
        feed_cursor: FeedCursor,
        clock: Clock,
        agent: str,
        delays: Sequence[timedelta] = DELAYS,
    ) -> None:
        self._events, self._log, self._sender, self._rendering = events, log, sender, rendering
        self._objects, self._keys, self._feed_cursor = objects, keys, feed_cursor
        self._clock, self._agent, self._delays = clock, agent, delays
        self._thin: dict[tuple[str, frozenset[str] | None], bytes] = {}

    async def attempt(self, queue: EndpointQueue, item: Item) -> tuple[Verdict, Attempt | None]:
        """Send the delivery once; no attempt is made when there is nothing to send any more."""
        subscriber = queue.subscriber
        body = await self._body(subscriber, item)
        if body is None:
            return Verdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED), None
        queue.attempt_began(item, body)
        at, started = self._clock.now(), asyncio.get_running_loop().time()
        sent = await self._sender.post(
            subscriber.endpoint.url,
            body,
            self._headers(queue, item, body, at),
            livemode=subscriber.tenant.livemode,
            seconds=TIMEOUT,
        )
        duration = asyncio.get_running_loop().time() - started
        tries = item.delivery.tries + 1
        verdict = judge(sent.failure, sent.status, sent.headers, tries, self._clock.now(), self._delays)
        return verdict, _attempt(sent, verdict, at, duration)

    def _headers(self, queue: EndpointQueue, item: Item, body: bytes, at: datetime) -> dict[str, str]:
        subscriber, timestamp = queue.subscriber, int(at.timestamp())
        keys = self._keys(subscriber.endpoint, subscriber.secrets, at)
        undelivered = queue.lowest_open
        position = queue.taken_up_to if undelivered is None else undelivered - 1
        return {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            "webhook-id": item.delivery.event,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(keys, item.delivery.event, timestamp, body),
            "Service-Version": subscriber.endpoint.api_version,
            "Service-Feed-Cursor": self._feed_cursor(subscriber.tenant, position),
        }

    async def _body(self, subscriber: Subscriber, item: Item) -> bytes | None:
        """What is sent: once more what was sent before, or the events' own; None when they are no longer kept."""
        delivery = item.delivery
        if delivery.body is not None:
            return delivery.body
        if item.stored_body and (stored := await self._log.body(subscriber.tenant, delivery.id)) is not None:
            return stored
        events: Sequence[LoggedEvent] = item.events
        if not events:
            events = await self._events.at(subscriber.tenant, delivery.positions)
        if not events:
            return None
        return await self._rendered(subscriber, events)

    async def _rendered(self, subscriber: Subscriber, events: Sequence[LoggedEvent]) -> bytes:
        endpoint, latest, rendering = subscriber.endpoint, events[-1], self._rendering
        whole = latest.body if len(events) == 1 else rendering.combined([event.body for event in events])
        if endpoint.payload == "fat" and subscriber.fat:
            body = rendering.fat(whole, await self._objects.as_of(subscriber.tenant, latest))
        else:
            body = rendering.thin(whole) if len(events) > 1 else self._thin_once(latest)
        return rendering.shaped(body, endpoint.api_version)

    def _thin_once(self, event: LoggedEvent) -> bytes:
        """Several endpoints get the very same thin body, if they may see the same of the event."""
        seen = event.id, event.groups
        body = self._thin.get(seen)
        if body is None:
            if len(self._thin) >= _MOST_KEPT:
                self._thin.clear()
            body = self._thin[seen] = self._rendering.thin(event.body)
        return body


def _attempt(sent: Sent, verdict: Verdict, at: datetime, duration: float) -> Attempt:
    return Attempt(
        at=at,
        status=AttemptStatus.SUCCEEDED if verdict.status == DeliveryStatus.SUCCEEDED else AttemptStatus.FAILED,
        duration_ms=round(duration * 1000),
        failure=verdict.failure,
        response_status=sent.status,
        response_body=sent.body[:STORED_ANSWER].decode("utf-8", "replace").replace("\0", "�") if sent.body else None,
        response_headers={name: sent.headers[name] for name in KEPT_HEADERS if name in sent.headers},
    )
