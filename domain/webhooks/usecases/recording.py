"""Tells the store what delivering came to, many deliveries in one transaction."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Item
from ports.webhooks import DeliveryLog, Progress

PERIOD: Final = 0.03
"""Seconds between two transactions while there is something to tell."""
AGE: Final = 0.5
"""Seconds after which an open delivery is told though nothing has come of it yet."""
CHECKPOINT_EVERY: Final = 0.5
SUCCESS_EVERY: Final = timedelta(seconds=5)
MOST_BEHIND: Final = 2_000
"""Outcomes that may wait for the store; beyond it nothing is sent."""
_RETRY: Final = 1.0

LOG: Final = logging.getLogger("joinery.webhooks")


class Recorder:
    """One a process. Idle, it asks nothing of anybody."""

    def __init__(self, log: DeliveryLog) -> None:
        self._log = log
        self._queues: set[EndpointQueue] = set()
        self._busy: set[EndpointQueue] = set()
        self._checkpoints: dict[EndpointQueue, tuple[int, float]] = {}
        self._succeeded: dict[EndpointQueue, datetime] = {}
        self._failing: dict[EndpointQueue, datetime | None] = {}
        self._told_success: dict[EndpointQueue, datetime] = {}
        self._news = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._behind = 0
        self._stalled = False

    @property
    def keeps_up(self) -> bool:
        """Whether more may be sent; who hears no is told when it is over (`run`)."""
        self._stalled = self._stalled or self._behind >= MOST_BEHIND
        return self._behind < MOST_BEHIND

    def register(self, queue: EndpointQueue) -> None:
        """From now on the lane is looked at."""
        self._queues.add(queue)
        self._checkpoints[queue] = (queue.subscriber.checkpoint, 0.0)
        self.wake(queue)

    def leave(self, queue: EndpointQueue) -> None:
        """What is left to tell of it is told once more, then it is forgotten."""
        self._queues.discard(queue)
        self.wake(queue)

    def drop_everything(self) -> None:
        """Others tell from now on."""
        for queue in self._queues | self._busy:
            queue.lost = True
        self._queues.clear()
        for kept in (self._busy, self._checkpoints, self._succeeded, self._failing, self._told_success):
            kept.clear()
        self._behind = 0

    def wake(self, queue: EndpointQueue) -> None:
        """Something about the lane may be to be told."""
        if not queue.lost:
            self._busy.add(queue)
            self._news.set()

    def on_attempt_finished(self, queue: EndpointQueue, *, succeeded: bool, at: datetime) -> None:
        """An attempt has ended."""
        endpoint = queue.subscriber.endpoint
        self._behind += 1
        if succeeded:
            queue.failures = 0
            told = self._told_success.get(queue)
            if told is None or at - told >= SUCCESS_EVERY or endpoint.failing_since is not None:
                self._succeeded[queue] = at
        else:
            queue.failures += 1
        if succeeded == (endpoint.failing_since is not None):
            since = None if succeeded else at
            queue.subscriber = replace(queue.subscriber, endpoint=replace(endpoint, failing_since=since))
            self._failing[queue] = since
        self.wake(queue)

    async def run(self, lost: Callable[[], None], relieved: Callable[[], None]) -> None:
        """Tell until cancelled. `lost` is called when the shards are others' by now, `relieved` when more may be sent again."""
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
                LOG.exception("deliveries could not be recorded, again in %.0f s", _RETRY)
                await asyncio.sleep(_RETRY)
            if self._busy:
                self._news.set()

    async def flush(self, *, everything: bool = False) -> None:
        """Tell the store what there is; `everything` does not wait until open deliveries are a little older."""
        async with self._one_at_a_time:
            now = asyncio.get_running_loop().time()
            progress, told = self._collect(now, everything=everything)
            behind = self._behind
            if progress:
                try:
                    await self._log.record(progress)
                except BaseException:
                    self._take_back(progress, told)
                    raise
            self._behind -= min(behind, self._behind)
            for queue, items in told.items():
                queue.recorded(items)

    def _collect(
        self, now: float, *, everything: bool
    ) -> tuple[Progress, dict[EndpointQueue, list[tuple[Item, Delivery]]]]:
        progress, told = Progress(), {}
        latest: dict[str, tuple[Tenant, Delivery]] = {}
        for queue in list(self._busy):
            key = queue.key
            before = self._checkpoints.get(queue, (0, 0.0))
            items = queue.unrecorded(now + 1 if everything else now - AGE)
            told[queue] = [(item, replace(item.delivery)) for item in items]
            for _, as_told in told[queue]:
                newest = latest.get(as_told.id)
                if newest is None or as_told.made >= newest[1].made:
                    latest[as_told.id] = (key[0], as_told)
            if queue.checkpoint > before[0] and (everything or now - before[1] >= CHECKPOINT_EVERY):
                # what this very transaction stores is safe only after it: the position of before is told
                progress.checkpoint[key] = queue.checkpoint
                self._checkpoints[queue] = (queue.checkpoint, now)
            self._tell_health(queue, key, progress)
            if not queue.waits() and queue.checkpoint <= self._checkpoints.get(queue, before)[0] and not told[queue]:
                self._busy.discard(queue)
                if queue not in self._queues:
                    self._checkpoints.pop(queue, None)
                    self._told_success.pop(queue, None)
        progress.deliveries = list(latest.values())
        return progress, told

    def _tell_health(self, queue: EndpointQueue, key: tuple[Tenant, str], progress: Progress) -> None:
        if (at := self._succeeded.pop(queue, None)) is not None:
            progress.succeeded[key] = self._told_success[queue] = at
        if queue in self._failing:
            progress.failing[key] = self._failing.pop(queue)

    def _take_back(self, progress: Progress, told: dict[EndpointQueue, list[tuple[Item, Delivery]]]) -> None:
        for queue, items in told.items():
            queue.not_recorded([item for item, _ in items])
            key = queue.key
            if key in progress.failing:
                self._failing.setdefault(queue, progress.failing[key])
            if key in progress.succeeded:
                self._succeeded.setdefault(queue, progress.succeeded[key])
            if key in progress.checkpoint:
                self._checkpoints[queue] = (0, 0.0)
            self._busy.add(queue)
