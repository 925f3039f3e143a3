"""One delivery attempt: body, signature, POST and verdict."""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from domain.changes.model import View
from domain.changes.ports import FeedCursors
from domain.changes.usecases.reading import LogReading
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from domain.secrets.ports import Vault
from domain.webhooks.model import (
    DELAYS,
    STORED_ANSWER,
    TIMEOUT,
    Attempt,
    AttemptFailure,
    AttemptStatus,
    Delivery,
    DeliveryStatus,
    Endpoint,
    SealedSecrets,
    Verdict,
    judge,
)
from domain.webhooks.payload import run_of
from domain.webhooks.ports import DeliveryLog, Sender, Sent, Subscriber
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Item
from domain.webhooks.usecases.payloads import Payloads
from domain.webhooks.usecases.secrets import key_of, signature
from ports.clock import Clock
from ports.telemetry import Span, SpanKind, Tracing, WorkMetrics

WITHIN = 100
"""Maximum deliveries in one run's trace; further ones start their own traces with a link, because a run may cause a
hundred thousand."""
KNOWN = 1_000
"""Runs whose trace contexts are cached."""
LOG = logging.getLogger("joinery.webhooks")


@dataclass(slots=True)
class _Traced:
    trace: str | None
    told: int = 0


class DeliveryObserver:
    """Recorder of attempts in `metrics` and `tracing`, where present; one per database."""

    def __init__(self, log: DeliveryLog, metrics: WorkMetrics | None = None, tracing: Tracing | None = None) -> None:
        self._log, self._metrics, self._tracing = log, metrics, tracing
        self._runs: OrderedDict[tuple[Tenant, str], _Traced] = OrderedDict()

    async def _traced(self, tenant: Tenant, run: str) -> _Traced:
        key = tenant, run
        known = self._runs.get(key)
        if known is not None:
            return known
        try:
            trace = await self._log.trace(tenant, run)
        except Exception as error:
            LOG.debug("trace of %s could not be read: %r", run, error)
            return _Traced(None)
        known = self._runs.setdefault(key, _Traced(trace))
        if len(self._runs) > KNOWN:
            self._runs.popitem(last=False)
        return known

    @contextlib.asynccontextmanager
    async def attempt(self, subscriber: Subscriber, delivery: Delivery, body: bytes) -> AsyncIterator[Span | None]:
        """Trace a POST as part of its run's trace, or linked to it; never raises for errors of the store."""
        if self._tracing is None:
            yield None
            return
        endpoint, tenant, run = subscriber.endpoint, subscriber.tenant, run_of(body)
        known = await self._traced(tenant, run) if run is not None else _Traced(None)
        known.told += 1
        related = {"parent" if known.told <= WITHIN else "link": known.trace}
        with self._tracing.span("webhook delivery", SpanKind.CLIENT, **related) as span:
            span.note(
                http__request__method="POST",
                server__address=urlsplit(endpoint.url).hostname,  # only the host, because URLs may contain keys
                joinery__delivery__id=delivery.id,
                joinery__delivery__attempt=delivery.made + 1,
                joinery__endpoint=endpoint.id,
                joinery__event__id=delivery.event,
                joinery__event__type=delivery.type,
                joinery__correlation_id=run,
                joinery__org=tenant.org,
                joinery__livemode=tenant.livemode,
            )
            yield span

    def ended(self, span: Span | None, sent: Sent, failure: str | None, seconds: float) -> None:
        """Record the outcome; `failure` is the verdict's code."""
        if self._metrics is not None:
            self._metrics.delivery_attempted(failure or "succeeded", seconds)
        if span is not None:
            span.note(http__response__status_code=sent.status)
            if failure is not None:
                span.failed(failure)


KEPT_HEADERS = ("content-type", "retry-after", "webhook-delivery", "server")

_AT_A_TIME = 32
"""Maximum events of one delivery read from the log at a time."""


class Posting:
    """Maker of attempts; `agent` is the User-Agent."""

    def __init__(
        self,
        events: LogReading,
        log: DeliveryLog,
        sender: Sender,
        payloads: Payloads,
        vault: Vault,
        cursors: FeedCursors,
        clock: Clock,
        agent: str,
        delays: Sequence[timedelta] = DELAYS,
        observer: DeliveryObserver | None = None,
    ) -> None:
        self._observer = observer or DeliveryObserver(log)
        self._events, self._log, self._sender, self._payloads = events, log, sender, payloads
        self._vault, self._cursors = vault, cursors
        self._clock, self._agent, self._delays = clock, agent, delays

    async def attempt(self, queue: EndpointQueue, item: Item) -> tuple[Verdict, Attempt | None]:
        """Send the delivery once; make no attempt if there is nothing left to send."""
        subscriber = queue.subscriber
        body = await self._body(subscriber, item)
        if body is None:
            return Verdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED), None
        queue.attempt_began(item, body)
        async with self._observer.attempt(subscriber, item.delivery, body) as span:
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
            self._observer.ended(span, sent, verdict.failure, duration)
        return verdict, _attempt(sent, verdict, at, duration)

    def _headers(self, queue: EndpointQueue, item: Item, body: bytes, at: datetime) -> dict[str, str]:
        subscriber, timestamp = queue.subscriber, int(at.timestamp())
        keys = signing_keys(self._vault, subscriber.endpoint, subscriber.secrets, at)
        return {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            "webhook-id": item.delivery.event,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(keys, item.delivery.event, timestamp, body),
            "Service-Version": subscriber.endpoint.api_version,
            "Service-Feed-Cursor": self._cursors.sign(subscriber.tenant, queue.delivered_up_to),
        }

    async def _body(self, subscriber: Subscriber, item: Item) -> bytes | None:
        """Return the body: the one sent before, or that of the events; None if they are no longer kept."""
        delivery = item.delivery
        if delivery.body is not None:
            return delivery.body
        if item.stored_body and (stored := await self._log.body(subscriber.tenant, delivery.id)) is not None:
            return stored
        events = item.events or await self._logged(subscriber, delivery)
        # deleted by age, or replaced in a log that went back
        if not events or events[-1].id != delivery.event:
            return None
        return await self._payloads.render(subscriber, events)

    async def _logged(self, subscriber: Subscriber, delivery: Delivery) -> Sequence[LoggedEvent]:
        """Read the events from the log in batches, combining earlier ones meanwhile."""
        events: list[LoggedEvent] = []
        positions = delivery.positions
        view = View.network(subscriber.tenant) if delivery.network else View.own(subscriber.tenant)
        for first in range(0, len(positions), _AT_A_TIME):
            if len(events) > 1:
                events = [self._payloads.folded(events)]
            events += await self._events.at(view, positions[first : first + _AT_A_TIME])
        return events


def signing_keys(vault: Vault, endpoint: Endpoint, sealed: SealedSecrets, now: datetime) -> tuple[bytes, ...]:
    """Return the keys that sign now: the present one, then the previous one during a rotation's overlap.

    Raises ValueError if the secrets cannot be opened.
    """
    both = (sealed.current, sealed.previous if endpoint.rotation_at(now) else None)
    return tuple(key_of(vault.open(one, endpoint.id)["secret"]) for one in both if one is not None)


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
