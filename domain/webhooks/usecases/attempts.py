"""One delivery attempt: body, signature, POST request and verdict."""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from domain.changes.model import LogView
from domain.changes.ports import FeedCursors
from domain.changes.usecases.log_reader import LogReader
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from domain.secrets.ports import Vault
from domain.webhooks.model import (
    MAX_STORED_RESPONSE_BYTES,
    RETRY_DELAYS,
    TIMEOUT_SECONDS,
    AttemptFailure,
    AttemptStatus,
    AttemptVerdict,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    EncryptedSecrets,
    Endpoint,
    evaluate_attempt,
)
from domain.webhooks.payload import find_run_id
from domain.webhooks.ports import DeliveryStore, PostResult, Sender, Subscriber
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, QueuedDelivery
from domain.webhooks.usecases.payloads import PayloadRenderer
from domain.webhooks.usecases.secrets import create_signature_header, decode_key
from ports.clock import Clock
from ports.telemetry import Span, SpanKind, Tracing, WorkMetrics

MAX_TRACED_PER_RUN = 100
"""Maximum number of attempts in the trace of one run; further attempts get traces that are linked to it."""
MAX_CACHED_RUNS = 1_000
"""Maximum number of runs whose trace contexts are cached."""
LOG = logging.getLogger("joinery.webhooks")


@dataclass(slots=True)
class _RunTrace:
    """Trace context of a run (None if unknown), and number of traced attempts of the run's deliveries."""

    trace_context: str | None
    attempt_count: int = 0


class DeliveryObserver:
    """Records attempts in metrics and traces, if these are enabled."""

    def __init__(
        self, store: DeliveryStore, metrics: WorkMetrics | None = None, tracing: Tracing | None = None
    ) -> None:
        self._store, self._metrics, self._tracing = store, metrics, tracing
        self._runs: OrderedDict[tuple[Tenant, str], _RunTrace] = OrderedDict()

    async def _find_run_trace(self, tenant: Tenant, run: str) -> _RunTrace:
        key = tenant, run
        run_trace = self._runs.get(key)
        if run_trace is not None:
            return run_trace
        try:
            trace_context = await self._store.get_trace_context(tenant, run)
        except Exception as error:
            LOG.debug("trace of run %s could not be read: %r", run, error)
            return _RunTrace(None)
        run_trace = self._runs.setdefault(key, _RunTrace(trace_context))
        if len(self._runs) > MAX_CACHED_RUNS:
            self._runs.popitem(last=False)
        return run_trace

    @contextlib.asynccontextmanager
    async def trace_attempt(
        self, subscriber: Subscriber, delivery: Delivery, body: bytes
    ) -> AsyncIterator[Span | None]:
        """Create a span for an attempt, in the trace of the event's run or linked to that trace.

        Yields the span, or None without tracing. Errors of the store are not raised.
        """
        if self._tracing is None:
            yield None
            return
        endpoint, tenant, run = subscriber.endpoint, subscriber.tenant, find_run_id(body)
        run_trace = await self._find_run_trace(tenant, run) if run is not None else _RunTrace(None)
        run_trace.attempt_count += 1
        trace_option = {
            "parent_context"
            if run_trace.attempt_count <= MAX_TRACED_PER_RUN
            else "linked_context": run_trace.trace_context
        }
        with self._tracing.open_span("webhook delivery", SpanKind.CLIENT, **trace_option) as span:
            span.set_attributes(
                http__request__method="POST",
                server__address=urlsplit(endpoint.url).hostname,  # only the host, because URLs may contain keys
                joinery__delivery__id=delivery.id,
                joinery__delivery__attempt=delivery.attempts_made + 1,
                joinery__endpoint=endpoint.id,
                joinery__event__id=delivery.event,
                joinery__event__type=delivery.type,
                joinery__correlation_id=run,
                joinery__org=tenant.org,
                joinery__livemode=tenant.livemode,
            )
            yield span

    def record_result(self, span: Span | None, result: PostResult, failure: str | None, seconds: float) -> None:
        """Record the result of an attempt in metrics and in the span; `failure` is None for a success."""
        if self._metrics is not None:
            self._metrics.record_delivery_attempt(failure or "succeeded", seconds)
        if span is not None:
            span.set_attributes(http__response__status_code=result.status)
            if failure is not None:
                span.mark_failed(failure)


STORED_HEADERS = ("content-type", "retry-after", "webhook-delivery", "server")
"""Headers of a receiver's response that are stored."""

_BATCH_SIZE = 32
"""Maximum number of a delivery's events to read from the log at a time."""


class AttemptSender:
    """Makes delivery attempts.

    Args:
        user_agent: User-Agent of the requests.
        delays: Delays after failed attempts.
        observer: Records attempts in metrics and traces.
    """

    def __init__(
        self,
        events: LogReader,
        store: DeliveryStore,
        sender: Sender,
        payloads: PayloadRenderer,
        vault: Vault,
        cursors: FeedCursors,
        clock: Clock,
        user_agent: str,
        delays: Sequence[timedelta] = RETRY_DELAYS,
        observer: DeliveryObserver | None = None,
    ) -> None:
        self._observer = observer or DeliveryObserver(store)
        self._events, self._store, self._sender, self._payloads = events, store, sender, payloads
        self._vault, self._cursors = vault, cursors
        self._clock, self._user_agent, self._delays = clock, user_agent, delays

    async def make_attempt(
        self, queue: EndpointQueue, item: QueuedDelivery
    ) -> tuple[AttemptVerdict, DeliveryAttempt | None]:
        """Send the delivery once; return the verdict and the attempt.

        If the delivery's events are no longer stored, nothing is sent: the verdict has the failure `aborted`, and the
        attempt is None.
        """
        subscriber = queue.subscriber
        body = await self._find_body(subscriber, item)
        if body is None:
            return AttemptVerdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED), None
        queue.start_attempt(item, body)
        async with self._observer.trace_attempt(subscriber, item.delivery, body) as span:
            at, started = self._clock.now(), asyncio.get_running_loop().time()
            sent = await self._sender.post(
                subscriber.endpoint.url,
                body,
                self._create_headers(queue, item, body, at),
                livemode=subscriber.tenant.livemode,
                seconds=TIMEOUT_SECONDS,
            )
            duration = asyncio.get_running_loop().time() - started
            tries = item.delivery.tries + 1
            verdict = evaluate_attempt(sent.failure, sent.status, sent.headers, tries, self._clock.now(), self._delays)
            self._observer.record_result(span, sent, verdict.failure, duration)
        return verdict, _create_attempt(sent, verdict, at, duration)

    def _create_headers(self, queue: EndpointQueue, item: QueuedDelivery, body: bytes, now: datetime) -> dict[str, str]:
        subscriber, timestamp = queue.subscriber, int(now.timestamp())
        keys = decrypt_signing_keys(self._vault, subscriber.endpoint, subscriber.secrets, now)
        return {
            "Content-Type": "application/json",
            "User-Agent": self._user_agent,
            "webhook-id": item.delivery.event,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": create_signature_header(keys, item.delivery.event, timestamp, body),
            "Service-Version": subscriber.endpoint.api_version,
            "Service-Feed-Cursor": self._cursors.sign(subscriber.tenant, queue.delivered_up_to),
        }

    async def _find_body(self, subscriber: Subscriber, item: QueuedDelivery) -> bytes | None:
        """Return the body of earlier attempts, or else render the events; None if these are no longer stored."""
        delivery = item.delivery
        if delivery.body is not None:
            return delivery.body
        if item.has_stored_body and (stored := await self._store.get_body(subscriber.tenant, delivery.id)) is not None:
            return stored
        events = item.events or await self._read_events(subscriber, delivery)
        # the events were deleted by age, or replaced when an older log was restored
        if not events or events[-1].id != delivery.event:
            return None
        return await self._payloads.render(subscriber, events)

    async def _read_events(self, subscriber: Subscriber, delivery: Delivery) -> Sequence[LoggedEvent]:
        """Read the delivery's events from the log, in batches that are combined to save memory."""
        events: list[LoggedEvent] = []
        positions = delivery.positions
        view = LogView.network(subscriber.tenant) if delivery.network else LogView.own(subscriber.tenant)
        for first in range(0, len(positions), _BATCH_SIZE):
            if len(events) > 1:
                events = [self._payloads.combine_events(events)]
            events += await self._events.get_at(view, positions[first : first + _BATCH_SIZE])
        return events


def decrypt_signing_keys(
    vault: Vault, endpoint: Endpoint, secrets: EncryptedSecrets, now: datetime
) -> tuple[bytes, ...]:
    """Return the keys that sign requests at `now`: the current key and, during a rotation, the previous one.

    Raises ValueError if the secrets cannot be decrypted.
    """
    ciphertexts = (secrets.current, secrets.previous if endpoint.rotation_at(now) else None)
    return tuple(
        decode_key(vault.decrypt(ciphertext, endpoint.id)["secret"])
        for ciphertext in ciphertexts
        if ciphertext is not None
    )


def _create_attempt(
    sent: PostResult, verdict: AttemptVerdict, started_at: datetime, duration: float
) -> DeliveryAttempt:
    return DeliveryAttempt(
        at=started_at,
        status=AttemptStatus.SUCCEEDED if verdict.status == DeliveryStatus.SUCCEEDED else AttemptStatus.FAILED,
        duration_ms=round(duration * 1000),
        failure=verdict.failure,
        response_status=sent.status,
        response_body=sent.body[:MAX_STORED_RESPONSE_BYTES].decode("utf-8", "replace").replace("\0", "�")
        if sent.body
        else None,
        response_headers={name: sent.headers[name] for name in STORED_HEADERS if name in sent.headers},
    )
