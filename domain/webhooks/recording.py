"""Tells the store what delivering came to, many deliveries in one transaction."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.webhooks.lane import Item, Lane
from domain.webhooks.model import Delivery
from ports.webhooks import DeliveryLog, Progress

PERIOD: Final = 0.03
"""Seconds between two transactions while there is something to tell."""
AGE: Final = 0.5
"""Seconds after which an open delivery is told though nothing has come of it yet."""
ROUTED_EVERY: Final = 0.5
SUCCESS_EVERY: Final = timedelta(seconds=5)
MOST_BEHIND: Final = 2_000
"""Outcomes that may wait for the store; beyond it nothing is sent."""
_RETRY: Final = 1.0

LOG: Final = logging.getLogger("joinery.webhooks")


class Recorder:
    """One a process. Idle, it asks nothing of anybody."""

    def __init__(self, log: DeliveryLog) -> None:
        self._log = log
        self._lanes: set[Lane] = set()
        self._busy: set[Lane] = set()
        self._routed: dict[Lane, tuple[int, float]] = {}
        self._succeeded: dict[Lane, datetime] = {}
        self._failing: dict[Lane, datetime | None] = {}
        self._told_success: dict[Lane, datetime] = {}
        self._news = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._behind = 0
        self._stalled = False

    @property
    def keeps_up(self) -> bool:
        """Whether more may be sent; who hears no is told when it is over (`run`)."""
        self._stalled = self._stalled or self._behind >= MOST_BEHIND
        return self._behind < MOST_BEHIND

    def mind(self, lane: Lane) -> None:
        """From now on the lane is looked at."""
        self._lanes.add(lane)
        self._routed[lane] = (lane.subscriber.routed, 0.0)
        self.wake(lane)

    def leave(self, lane: Lane) -> None:
        """What is left to tell of it is told once more, then it is forgotten."""
        self._lanes.discard(lane)
        self.wake(lane)

    def forget(self) -> None:
        """Others tell from now on."""
        for lane in self._lanes | self._busy:
            lane.lost = True
        self._lanes.clear()
        for kept in (self._busy, self._routed, self._succeeded, self._failing, self._told_success):
            kept.clear()
        self._behind = 0

    def wake(self, lane: Lane) -> None:
        """Something about the lane may be to be told."""
        if not lane.lost:
            self._busy.add(lane)
            self._news.set()

    def heard(self, lane: Lane, *, succeeded: bool, at: datetime) -> None:
        """An attempt has ended."""
        endpoint = lane.subscriber.endpoint
        self._behind += 1
        if succeeded:
            lane.failures = 0
            told = self._told_success.get(lane)
            if told is None or at - told >= SUCCESS_EVERY or endpoint.failing_since is not None:
                self._succeeded[lane] = at
        else:
            lane.failures += 1
        if succeeded == (endpoint.failing_since is not None):
            since = None if succeeded else at
            lane.subscriber = replace(lane.subscriber, endpoint=replace(endpoint, failing_since=since))
            self._failing[lane] = since
        self.wake(lane)

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
            for lane, items in told.items():
                lane.recorded(items)

    def _collect(self, now: float, *, everything: bool) -> tuple[Progress, dict[Lane, list[tuple[Item, Delivery]]]]:
        progress, told = Progress(), {}
        latest: dict[str, tuple[Tenant, Delivery]] = {}
        for lane in list(self._busy):
            key = lane.key
            before = self._routed.get(lane, (0, 0.0))
            items = lane.unrecorded(now + 1 if everything else now - AGE)
            told[lane] = [(item, replace(item.delivery)) for item in items]
            for _, as_told in told[lane]:
                newest = latest.get(as_told.id)
                if newest is None or as_told.made >= newest[1].made:
                    latest[as_told.id] = (key[0], as_told)
            if lane.routed > before[0] and (everything or now - before[1] >= ROUTED_EVERY):
                # what this very transaction stores is safe only after it: the position of before is told
                progress.routed[key] = lane.routed
                self._routed[lane] = (lane.routed, now)
            self._tell_health(lane, key, progress)
            if not lane.waits() and lane.routed <= self._routed.get(lane, before)[0] and not told[lane]:
                self._busy.discard(lane)
                if lane not in self._lanes:
                    self._routed.pop(lane, None)
                    self._told_success.pop(lane, None)
        progress.deliveries = list(latest.values())
        return progress, told

    def _tell_health(self, lane: Lane, key: tuple[Tenant, str], progress: Progress) -> None:
        if (at := self._succeeded.pop(lane, None)) is not None:
            progress.succeeded[key] = self._told_success[lane] = at
        if lane in self._failing:
            progress.failing[key] = self._failing.pop(lane)

    def _take_back(self, progress: Progress, told: dict[Lane, list[tuple[Item, Delivery]]]) -> None:
        for lane, items in told.items():
            lane.not_recorded([item for item, _ in items])
            key = lane.key
            if key in progress.failing:
                self._failing.setdefault(lane, progress.failing[key])
            if key in progress.succeeded:
                self._succeeded.setdefault(lane, progress.succeeded[key])
            if key in progress.routed:
                self._routed[lane] = (0, 0.0)
            self._busy.add(lane)
