"""One POST to a receiver as operators see it: a span below the run that it tells of, and a count."""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery
from domain.webhooks.payload import run_of
from domain.webhooks.ports import DeliveryLog, Sent, Subscriber
from ports.telemetry import Span, SpanKind, Tracing, WorkMetrics

WITHIN: Final = 100
"""Deliveries that a process shows as parts of one run's trace; those that follow are traces of their own, with a link to it: a
run may tell of a hundred thousand changes, and no collector takes a trace of so many."""
KNOWN: Final = 1_000
"""Runs of which it is remembered what they were traced as."""
LOG: Final = logging.getLogger("joinery.webhooks")


@dataclass(slots=True)
class _Traced:
    trace: str | None
    told: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt belongs: below what, or beside what, and the run that it tells of."""

    parent: str | None = None
    link: str | None = None
    run: str | None = None


class DeliveryObserver:
    """Tells whoever is there: `metrics`, `tracing`, or nobody. One a place, as the log is."""

    def __init__(self, log: DeliveryLog, metrics: WorkMetrics | None = None, tracing: Tracing | None = None) -> None:
        self._log, self._metrics, self._tracing = log, metrics, tracing
        self._runs: OrderedDict[tuple[Tenant, str], _Traced] = OrderedDict()

    async def place(self, subscriber: Subscriber, body: bytes) -> Place | None:
        """Where the attempt belongs; None where nothing is traced, and nobody is asked. Never raises for the store's troubles."""
        if self._tracing is None:
            return None
        run = run_of(body)
        if run is None:
            return Place()
        known = await self._traced(subscriber.tenant, run)
        known.told += 1
        return Place(known.trace, None, run) if known.told <= WITHIN else Place(None, known.trace, run)

    async def _traced(self, tenant: Tenant, run: str) -> _Traced:
        key = tenant, run
        known = self._runs.get(key)
        if known is not None:
            return known
        try:
            trace = await self._log.trace(tenant, run)
        except Exception as error:
            LOG.debug("what %s was traced as is not known: %r", run, error)
            return _Traced(None)
        known = self._runs.setdefault(key, _Traced(trace))
        if len(self._runs) > KNOWN:
            self._runs.popitem(last=False)
        return known

    @contextlib.contextmanager
    def attempt(self, place: Place | None, subscriber: Subscriber, delivery: Delivery) -> Iterator[Span | None]:
        """Around a POST."""
        if self._tracing is None or place is None:
            yield None
            return
        endpoint, tenant = subscriber.endpoint, subscriber.tenant
        with self._tracing.span("webhook delivery", SpanKind.CLIENT, parent=place.parent, link=place.link) as span:
            span.note(
                http__request__method="POST",
                server__address=urlsplit(endpoint.url).hostname,  # never more of the URL: people put keys into it
                joinery__delivery__id=delivery.id,
                joinery__delivery__attempt=delivery.made + 1,
                joinery__endpoint=endpoint.id,
                joinery__event__id=delivery.event,
                joinery__event__type=delivery.type,
                joinery__correlation_id=place.run,
                joinery__org=tenant.org,
                joinery__livemode=tenant.livemode,
            )
            yield span

    def ended(self, span: Span | None, sent: Sent, failure: str | None, seconds: float) -> None:
        """It ended so; `failure` is the verdict's word for it."""
        if self._metrics is not None:
            self._metrics.delivery_attempted(failure or "succeeded", seconds)
        if span is not None:
            span.note(http__response__status_code=sent.status)
            if failure is not None:
                span.failed(failure)
