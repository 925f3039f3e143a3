"""Scheduling of attempts for the first delivery of each subject, with a concurrency limit for each endpoint."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Actor, AuditContext
from domain.webhooks.model import AttemptVerdict, DeliveryAttempt, DeliveryStatus, EndpointStatus, find_disabling_reason
from domain.webhooks.usecases.attempts import AttemptSender
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, QueuedDelivery
from domain.webhooks.usecases.recorder import DeliveryRecorder
from domain.webhooks.usecases.service import WebhookService
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

RETRY_SECONDS = 1.0
"""Seconds until a retry after an internal failure."""
_LOG_INTERVAL_SECONDS = 10.0
"""Minimum seconds between two log lines about internal failures."""

LOG = logging.getLogger("joinery.webhooks")
_CONTEXT = AuditContext(Actor("service", "webhooks"), "webhooks.disable")


class DeliveryScheduler:
    """Starts attempts when they are due.

    Args:
        on_disabled: Called with the queue of an endpoint that was disabled because of an attempt.
    """

    def __init__(
        self,
        sender: AttemptSender,
        recorder: DeliveryRecorder,
        service: WebhookService,
        uow: UnitOfWork,
        clock: Clock,
        on_disabled: Callable[[EndpointQueue], object],
    ) -> None:
        self._sender, self._recorder, self._service, self._uow = sender, recorder, service, uow
        self._clock, self._on_disabled = clock, on_disabled
        self._due: list[tuple[float, int, EndpointQueue, QueuedDelivery]] = []
        self._order = count()
        self._due_changed = asyncio.Event()
        self._attempts: set[asyncio.Task[None]] = set()
        self._logged_at = float("-inf")
        self._stopping = False

    async def run(self) -> None:
        """Send deliveries when they become due, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._due_changed.clear()
            while self._due and self._due[0][0] <= loop.time():
                _, _, queue, item = heappop(self._due)
                if item.due_at <= loop.time():
                    queue.make_ready(item)
                    self.dispatch_ready(queue)
            wait = self._due[0][0] - loop.time() if self._due else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._due_changed.wait()

    def stop(self) -> None:
        """Start no further attempts from now on."""
        self._stopping = True

    async def close(self, timeout_seconds: float) -> None:
        """Wait up to `timeout_seconds` seconds for running attempts to end, then cancel them."""
        if self._attempts:
            _, late = await asyncio.wait(self._attempts, timeout=timeout_seconds)
            for attempt in late:
                attempt.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def schedule(self, queue: EndpointQueue, item: QueuedDelivery) -> None:
        """Schedule the next attempt of a delivery, if the delivery is the first of its subject.

        If the attempt is due already, the next call of `dispatch_ready` starts it.
        """
        if not queue.is_head(item):
            return
        if item.due_at <= asyncio.get_running_loop().time():
            queue.make_ready(item)
        else:
            heappush(self._due, (item.due_at, next(self._order), queue, item))
            self._due_changed.set()

    def drop_unserved(self) -> None:
        """Remove scheduled deliveries of queues that this process no longer serves."""
        self._due = [entry for entry in self._due if entry[2].is_served]
        heapify(self._due)

    def dispatch_ready(self, queue: EndpointQueue) -> None:
        """Start attempts for the ready deliveries of the queue, up to the concurrency limit."""
        if self._stopping or not queue.is_served:
            return
        while self._recorder.can_send and (item := queue.take_next()) is not None:
            task = asyncio.create_task(self._attempt(queue, item))
            self._attempts.add(task)
            task.add_done_callback(self._attempts.discard)

    async def _attempt(self, queue: EndpointQueue, item: QueuedDelivery) -> None:
        try:
            verdict, attempt = await self._sender.make_attempt(queue, item)
        except Exception as error:
            self._log_failure(item, error)
            queue.postpone_attempt(item, asyncio.get_running_loop().time() + RETRY_SECONDS)
            self.schedule(queue, item)
        else:
            await self._process_verdict(queue, item, verdict, attempt)

    def _log_failure(self, item: QueuedDelivery, error: Exception) -> None:
        """Log an internal failure, at most once in _LOG_INTERVAL_SECONDS, because it usually affects all deliveries."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_INTERVAL_SECONDS:
            self._logged_at = now
            is_expected = isinstance(error, Unavailable)
            cause = error if is_expected else f"{type(error).__name__} (delivery {item.delivery.id})"
            LOG.warning(
                "deliveries could not be attempted, retrying in %.0f s: %s",
                RETRY_SECONDS,
                cause,
                exc_info=not is_expected,
            )

    async def _process_verdict(
        self, queue: EndpointQueue, item: QueuedDelivery, verdict: AttemptVerdict, attempt: DeliveryAttempt | None
    ) -> None:
        now, failing_since = self._clock.now(), queue.subscriber.endpoint.failing_since
        wait = ((verdict.next_attempt_at or now) - now).total_seconds()
        due = asyncio.get_running_loop().time() + wait
        following = queue.end_attempt(item, verdict, attempt, at=now, due=due)
        endpoint = queue.subscriber.endpoint
        has_succeeded, has_health_changed = (
            verdict.status == DeliveryStatus.SUCCEEDED,
            endpoint.failing_since != failing_since,
        )
        size = len(item.delivery.body or b"")
        self._recorder.add_result(
            queue, has_succeeded=has_succeeded, at=now, has_health_changed=has_health_changed, body_bytes=size
        )
        if following is not None:
            self.schedule(queue, following)
        self.dispatch_ready(queue)
        reason = find_disabling_reason(verdict, endpoint.failing_since, now)
        if reason is None or endpoint.status != EndpointStatus.ENABLED:
            return
        try:
            with queue.treat_as_disabled():
                await self._recorder.record_results(includes_newest=True)
                async with self._uow.begin(queue.subscriber.tenant, _CONTEXT) as tx:
                    await self._service.disable(tx, endpoint.id, reason)
        except Exception:
            LOG.exception("endpoint %s could not be disabled, retrying at its next failure", endpoint.id)
        else:
            self._on_disabled(queue)
