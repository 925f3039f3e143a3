"""Recording of delivery results in the store; one transaction records the results of many endpoints."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.changes.model import FeedPosition
from domain.kernel.bounds import BYTES_PER_RESULT
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery
from domain.webhooks.ports import DeliveryProgress, DeliveryStore
from domain.webhooks.usecases.endpoint_queue import DeliveryState, EndpointQueue

FLUSH_SECONDS = 0.03
"""Seconds between two transactions while there are results."""
MAX_UNRECORDED_SECONDS = 0.5
"""Seconds for which a new delivery waits for the result of its first attempt before it is recorded without one."""
CHECKPOINT_SECONDS = 0.5
"""Minimum number of seconds between two updates of an endpoint's stored checkpoint."""
NETWORK_CHECKPOINT_SECONDS = 60.0
"""Like CHECKPOINT_SECONDS, if only the position in the network log (events of published catalogues) has changed."""
SUCCESS_INTERVAL = timedelta(seconds=5)
"""Minimum time between two records of an endpoint's last success."""
MAX_UNRECORDED = 2_000
"""Number of unrecorded results at which no further attempts start until results are recorded."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.webhooks")


class DeliveryRecorder:
    """Records the delivery results of the registered queues."""

    def __init__(self, store: DeliveryStore) -> None:
        self._store = store
        self._queues: set[EndpointQueue] = set()
        self._changed_queues: set[EndpointQueue] = set()
        self._checkpoints: dict[EndpointQueue, tuple[FeedPosition, float]] = {}
        self._succeeded: dict[EndpointQueue, datetime] = {}
        self._failing: dict[EndpointQueue, datetime | None] = {}
        self._recorded_success: dict[EndpointQueue, datetime] = {}
        self._has_results = asyncio.Event()
        self._flush_lock = asyncio.Lock()
        self._unrecorded_count = 0
        self._stalled = False

    @property
    def can_send(self) -> bool:
        """True if further attempts may start. If it was False, `run` calls `on_resumed` once they may start again."""
        self._stalled = self._stalled or self._unrecorded_count >= MAX_UNRECORDED
        return self._unrecorded_count < MAX_UNRECORDED

    def register(self, queue: EndpointQueue) -> None:
        """Start recording the queue's results."""
        self._queues.add(queue)
        self._checkpoints[queue] = (queue.subscriber.checkpoint, 0.0)
        self.schedule_check(queue)

    def unregister(self, queue: EndpointQueue) -> None:
        """Stop recording the queue's results once the present results are recorded."""
        self._queues.discard(queue)
        self.schedule_check(queue)

    def discard_queues(self) -> None:
        """Discard all queues and mark them as lost, because other workers serve the endpoints now."""
        for queue in self._queues | self._changed_queues:
            queue.mark_lost()
        self._queues.clear()
        for collection in (
            self._changed_queues,
            self._checkpoints,
            self._succeeded,
            self._failing,
            self._recorded_success,
        ):
            collection.clear()
        self._unrecorded_count = 0

    def schedule_check(self, queue: EndpointQueue) -> None:
        """Let `run` check soon whether the queue has results to record."""
        if not queue.is_lost:
            self._changed_queues.add(queue)
            self._has_results.set()

    def add_result(
        self, queue: EndpointQueue, *, has_succeeded: bool, at: datetime, has_health_changed: bool, body_bytes: int = 0
    ) -> None:
        """Add the result of an attempt to the unrecorded results.

        Args:
            queue: The queue of the endpoint.
            has_succeeded: Whether the attempt succeeded.
            at: When the attempt ended.
            has_health_changed: Whether the endpoint has started or stopped failing because of the attempt.
            body_bytes: Size of the body in bytes; each BYTES_PER_RESULT bytes count as one more unrecorded result.
        """
        self._unrecorded_count += 1 + body_bytes // BYTES_PER_RESULT
        if has_succeeded:
            recorded = self._recorded_success.get(queue)
            if has_health_changed or recorded is None or at - recorded >= SUCCESS_INTERVAL:
                self._succeeded[queue] = at
        if has_health_changed:
            self._failing[queue] = queue.subscriber.endpoint.failing_since
        self.schedule_check(queue)

    async def run(self, on_lost: Callable[[], None], on_resumed: Callable[[], None]) -> None:
        """Record results until cancelled.

        Args:
            on_lost: Called if other workers serve the shards.
            on_resumed: Called when attempts may start again.
        """
        while True:
            await self._has_results.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            self._has_results.clear()
            try:
                await self.record_results()
                if self._stalled and self._unrecorded_count < MAX_UNRECORDED:
                    self._stalled = False
                    on_resumed()
            except LeaseLost:
                on_lost()
            except Exception:
                LOG.exception("deliveries could not be recorded, retrying in %.0f s", _RETRY)
                await asyncio.sleep(_RETRY)
            if self._changed_queues:
                self._has_results.set()

    async def record_results(self, *, includes_newest: bool = False) -> None:
        """Record the unrecorded deliveries and checkpoints in the store.

        Args:
            includes_newest: Whether to include deliveries without a result that are newer than MAX_UNRECORDED_SECONDS,
                and checkpoints that were recorded less than their minimum interval ago.
        """
        async with self._flush_lock:
            now = asyncio.get_running_loop().time()
            progress, states_by_queue = self._collect_progress(now, includes_newest=includes_newest)
            count = self._unrecorded_count
            if progress:
                try:
                    await self._store.record_progress(progress)
                except BaseException:
                    self._return_unrecorded(progress, states_by_queue)
                    raise
            self._unrecorded_count -= min(count, self._unrecorded_count)
            for queue, recorded in states_by_queue.items():
                queue.mark_recorded(recorded)

    def _collect_progress(
        self, now: float, *, includes_newest: bool
    ) -> tuple[DeliveryProgress, dict[EndpointQueue, list[DeliveryState]]]:
        progress, states_by_queue = DeliveryProgress(), {}
        latest: dict[str, tuple[Tenant, Delivery]] = {}
        for queue in list(self._changed_queues):
            key = queue.key
            position, recorded_at = self._checkpoints.get(queue, (FeedPosition(), 0.0))
            changed = states_by_queue[queue] = queue.take_unrecorded(
                now + 1 if includes_newest else now - MAX_UNRECORDED_SECONDS
            )
            for _, delivery in changed:
                newest = latest.get(delivery.id)
                if newest is None or delivery.attempts_made >= newest[1].attempts_made:
                    latest[delivery.id] = (key[0], delivery)
            min_interval = (
                CHECKPOINT_SECONDS
                if changed or queue.checkpoint.own.position > position.own.position
                else NETWORK_CHECKPOINT_SECONDS
            )
            has_progress = queue.checkpoint.increasing_numbers != position.increasing_numbers
            if has_progress and (includes_newest or now - recorded_at >= min_interval):
                # the results in this transaction are not yet marked as recorded, so that the position excludes them
                progress.checkpoints[key] = position = queue.checkpoint
                self._checkpoints[queue] = (position, now)
            self._collect_health(queue, key, progress)
            if not queue.has_unrecorded and queue.checkpoint.own.position <= position.own.position and not changed:
                self._changed_queues.discard(queue)
                if queue not in self._queues:
                    self._checkpoints.pop(queue, None)
                    self._recorded_success.pop(queue, None)
        progress.deliveries = list(latest.values())
        return progress, states_by_queue

    def _collect_health(self, queue: EndpointQueue, key: tuple[Tenant, str], progress: DeliveryProgress) -> None:
        if (at := self._succeeded.pop(queue, None)) is not None:
            progress.last_successes[key] = self._recorded_success[queue] = at
        if queue in self._failing:
            progress.failing_since[key] = self._failing.pop(queue)

    def _return_unrecorded(
        self, progress: DeliveryProgress, states_by_queue: dict[EndpointQueue, list[DeliveryState]]
    ) -> None:
        for queue, not_recorded in states_by_queue.items():
            queue.mark_unrecorded(not_recorded)
            key = queue.key
            if key in progress.failing_since:
                self._failing.setdefault(queue, progress.failing_since[key])
            if key in progress.last_successes:
                self._succeeded.setdefault(queue, progress.last_successes[key])
            if key in progress.checkpoints:
                self._checkpoints[queue] = (FeedPosition(), 0.0)
            self._changed_queues.add(queue)
