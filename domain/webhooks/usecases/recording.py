"""Recording of delivery results, many in one transaction."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.changes.model import FeedPosition
from domain.kernel.bounds import OUTCOME_BYTES
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery
from domain.webhooks.ports import DeliveryLog, Progress
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Snapshot

PERIOD = 0.03
"""Seconds between transactions while there are results."""
AGE = 0.5
"""Age in seconds at which an open delivery is recorded without a result."""
CHECKPOINT_EVERY = 0.5
NETWORK_EVERY = 60.0
"""Interval for checkpoints that change in the network log only."""
SUCCESS_EVERY = timedelta(seconds=5)
MOST_BEHIND = 2_000
"""Maximum results that wait for the store; beyond it nothing is sent."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.webhooks")


class Recorder:
    """Recorder of delivery results, idle without results."""

    def __init__(self, log: DeliveryLog) -> None:
        self._log = log
        self._queues: set[EndpointQueue] = set()
        self._busy: set[EndpointQueue] = set()
        self._checkpoints: dict[EndpointQueue, tuple[FeedPosition, float]] = {}
        self._succeeded: dict[EndpointQueue, datetime] = {}
        self._failing: dict[EndpointQueue, datetime | None] = {}
        self._recorded_success: dict[EndpointQueue, datetime] = {}
        self._news = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._behind = 0
        self._stalled = False

    @property
    def keeps_up(self) -> bool:
        """True if more may be sent; `run` reports the end of a stall."""
        self._stalled = self._stalled or self._behind >= MOST_BEHIND
        return self._behind < MOST_BEHIND

    def register(self, queue: EndpointQueue) -> None:
        """Start to record the queue."""
        self._queues.add(queue)
        self._checkpoints[queue] = (queue.subscriber.checkpoint, 0.0)
        self.wake(queue)

    def leave(self, queue: EndpointQueue) -> None:
        """Stop recording the queue after its last results."""
        self._queues.discard(queue)
        self.wake(queue)

    def drop_everything(self) -> None:
        """Discard all queues, because other workers record them."""
        for queue in self._queues | self._busy:
            queue.lose()
        self._queues.clear()
        for kept in (self._busy, self._checkpoints, self._succeeded, self._failing, self._recorded_success):
            kept.clear()
        self._behind = 0

    def wake(self, queue: EndpointQueue) -> None:
        """Schedule a check of the queue."""
        if not queue.lost:
            self._busy.add(queue)
            self._news.set()

    def on_attempt_ended(
        self, queue: EndpointQueue, *, succeeded: bool, at: datetime, turned: bool, size: int = 0
    ) -> None:
        """Note an ended attempt. `turned`: the endpoint's health changed with it; `size` is its body's."""
        self._behind += 1 + size // OUTCOME_BYTES
        if succeeded:
            recorded = self._recorded_success.get(queue)
            if turned or recorded is None or at - recorded >= SUCCESS_EVERY:
                self._succeeded[queue] = at
        if turned:
            self._failing[queue] = queue.subscriber.endpoint.failing_since
        self.wake(queue)

    async def run(self, lost: Callable[[], None], relieved: Callable[[], None]) -> None:
        """Record until cancelled.

        `lost` is called if other workers hold the shards, `relieved` when sending may resume.
        """
        while True:
            await self._news.wait()
            await asyncio.sleep(PERIOD)
            self._news.clear()
            try:
                await self.flush()
                if self._stalled and self._behind < MOST_BEHIND:
                    self._stalled = False
                    relieved()
            except LeaseLost:
                lost()
            except Exception:
                LOG.exception("deliveries could not be recorded, retrying in %.0f s", _RETRY)
                await asyncio.sleep(_RETRY)
            if self._busy:
                self._news.set()

    async def flush(self, *, everything: bool = False) -> None:
        """Record present results; `everything` includes young open deliveries."""
        async with self._one_at_a_time:
            now = asyncio.get_running_loop().time()
            progress, snapshots = self._collect(now, everything=everything)
            behind = self._behind
            if progress:
                try:
                    await self._log.record(progress)
                except BaseException:
                    self._restore(progress, snapshots)
                    raise
            self._behind -= min(behind, self._behind)
            for queue, recorded in snapshots.items():
                queue.recorded(recorded)

    def _collect(self, now: float, *, everything: bool) -> tuple[Progress, dict[EndpointQueue, list[Snapshot]]]:
        progress, snapshots = Progress(), {}
        latest: dict[str, tuple[Tenant, Delivery]] = {}
        for queue in list(self._busy):
            key = queue.key
            position, moment = self._checkpoints.get(queue, (FeedPosition(), 0.0))
            changed = snapshots[queue] = queue.unrecorded(now + 1 if everything else now - AGE)
            for _, delivery in changed:
                newest = latest.get(delivery.id)
                if newest is None or delivery.made >= newest[1].made:
                    latest[delivery.id] = (key[0], delivery)
            pause = (
                CHECKPOINT_EVERY if changed or queue.checkpoint.own.position > position.own.position else NETWORK_EVERY
            )
            moved = queue.checkpoint.numbers != position.numbers
            if moved and (everything or now - moment >= pause):
                # results of this transaction are safe only after it, so the earlier position is recorded
                progress.checkpoint[key] = position = queue.checkpoint
                self._checkpoints[queue] = (position, now)
            self._collect_health(queue, key, progress)
            if not queue.has_unrecorded and queue.checkpoint.own.position <= position.own.position and not changed:
                self._busy.discard(queue)
                if queue not in self._queues:
                    self._checkpoints.pop(queue, None)
                    self._recorded_success.pop(queue, None)
        progress.deliveries = list(latest.values())
        return progress, snapshots

    def _collect_health(self, queue: EndpointQueue, key: tuple[Tenant, str], progress: Progress) -> None:
        if (at := self._succeeded.pop(queue, None)) is not None:
            progress.succeeded[key] = self._recorded_success[queue] = at
        if queue in self._failing:
            progress.failing[key] = self._failing.pop(queue)

    def _restore(self, progress: Progress, snapshots: dict[EndpointQueue, list[Snapshot]]) -> None:
        for queue, not_recorded in snapshots.items():
            queue.not_recorded(not_recorded)
            key = queue.key
            if key in progress.failing:
                self._failing.setdefault(queue, progress.failing[key])
            if key in progress.succeeded:
                self._succeeded.setdefault(queue, progress.succeeded[key])
            if key in progress.checkpoint:
                self._checkpoints[queue] = (FeedPosition(), 0.0)
            self._busy.add(queue)
