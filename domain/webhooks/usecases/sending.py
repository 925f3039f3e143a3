"""Scheduling of attempts: the first delivery of each subject, limited per endpoint by its queue."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Actor, AuditContext
from domain.webhooks.model import Attempt, DeliveryStatus, EndpointStatus, Verdict, disabled_for
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Item
from domain.webhooks.usecases.posting import Posting
from domain.webhooks.usecases.recording import Recorder
from domain.webhooks.usecases.service import WebhookService
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

RETRY = 1.0
"""Seconds until a retry after a failure on our side."""
_LOG_INTERVAL = 10.0

LOG = logging.getLogger("joinery.webhooks")

_CONTEXT = AuditContext(Actor("service", "webhooks"), "webhooks.disable")


class Sending:
    """Scheduler of attempts. `on_disabled` is called with the queue of an endpoint that was just disabled."""

    def __init__(
        self,
        posting: Posting,
        recorder: Recorder,
        service: WebhookService,
        uow: UnitOfWork,
        clock: Clock,
        on_disabled: Callable[[EndpointQueue], object],
    ) -> None:
        self._posting, self._recorder, self._service, self._uow = posting, recorder, service, uow
        self._clock, self._on_disabled = clock, on_disabled
        self._due: list[tuple[float, int, EndpointQueue, Item]] = []
        self._order = count()
        self._due_changed = asyncio.Event()
        self._attempts: set[asyncio.Task[None]] = set()
        self._logged_at = float("-inf")
        self._stopping = False

    async def run(self) -> None:
        """Make due items ready until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._due_changed.clear()
            while self._due and self._due[0][0] <= loop.time():
                _, _, queue, item = heappop(self._due)
                if item.due <= loop.time():
                    queue.make_ready(item)
                    self.dispatch_ready(queue)
            wait = self._due[0][0] - loop.time() if self._due else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._due_changed.wait()

    def stop(self) -> None:
        """Start no further attempts."""
        self._stopping = True

    async def close(self, grace: float) -> None:
        """Give running attempts `grace` seconds to end, then cancel them."""
        if self._attempts:
            _, late = await asyncio.wait(self._attempts, timeout=grace)
            for attempt in late:
                attempt.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def schedule(self, queue: EndpointQueue, item: Item) -> None:
        """Schedule the item for when it is due and first of its subject; `dispatch_ready` sends due ones."""
        if not queue.is_head(item):
            return
        if item.due <= asyncio.get_running_loop().time():
            queue.make_ready(item)
        else:
            heappush(self._due, (item.due, next(self._order), queue, item))
            self._due_changed.set()

    def drop_unserved(self) -> None:
        """Drop scheduled items of queues that are no longer served."""
        self._due = [entry for entry in self._due if entry[2].served]
        heapify(self._due)

    def dispatch_ready(self, queue: EndpointQueue) -> None:
        """Send the items that are ready, within the limits."""
        if self._stopping or not queue.served:
            return
        while self._recorder.keeps_up and (item := queue.next()) is not None:
            task = asyncio.create_task(self._attempt(queue, item))
            self._attempts.add(task)
            task.add_done_callback(self._attempts.discard)

    async def _attempt(self, queue: EndpointQueue, item: Item) -> None:
        try:
            verdict, attempt = await self._posting.attempt(queue, item)
        except Exception as error:
            self._log_failure(item, error)
            queue.attempt_not_made(item, asyncio.get_running_loop().time() + RETRY)
            self.schedule(queue, item)
        else:
            await self._conclude(queue, item, verdict, attempt)

    def _log_failure(self, item: Item, error: Exception) -> None:
        """Log a failure on our side, at most every ten seconds, because it mostly affects all deliveries."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_INTERVAL:
            self._logged_at = now
            known = isinstance(error, Unavailable)
            cause = error if known else f"{type(error).__name__} (delivery {item.delivery.id})"
            LOG.warning("deliveries could not be attempted, retrying in %.0f s: %s", RETRY, cause, exc_info=not known)

    async def _conclude(self, queue: EndpointQueue, item: Item, verdict: Verdict, attempt: Attempt | None) -> None:
        now, failing_since = self._clock.now(), queue.subscriber.endpoint.failing_since
        wait = ((verdict.next_attempt_at or now) - now).total_seconds()
        due = asyncio.get_running_loop().time() + wait
        following = queue.attempt_ended(item, verdict, attempt, at=now, due=due)
        endpoint = queue.subscriber.endpoint
        succeeded, turned = verdict.status == DeliveryStatus.SUCCEEDED, endpoint.failing_since != failing_since
        size = len(item.delivery.body or b"")
        self._recorder.on_attempt_ended(queue, succeeded=succeeded, at=now, turned=turned, size=size)
        if following is not None:
            self.schedule(queue, following)
        self.dispatch_ready(queue)
        reason = disabled_for(verdict, endpoint.failing_since, now)
        if reason is None or endpoint.status != EndpointStatus.ENABLED:
            return
        try:
            with queue.disabling():
                await self._recorder.flush(everything=True)
                async with self._uow.begin(queue.subscriber.tenant, _CONTEXT) as tx:
                    await self._service.disable(tx, endpoint.id, reason)
        except Exception:
            LOG.exception("endpoint %s could not be disabled, retrying at its next failure", endpoint.id)
        else:
            self._on_disabled(queue)
