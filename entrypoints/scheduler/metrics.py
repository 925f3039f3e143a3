"""What the leading scheduler shows of all: jobs that wait, ticks that lag, the network's logs. The others show that they wait to lead."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from domain.changes.usecases.network import NetworkRelay
from domain.jobs.model import Backlog
from domain.jobs.usecases.ticks import Ticks
from entrypoints.metrics import Metrics
from ports.jobs import Dispatch

EVERY: Final = 15.0
"""Seconds between two looks at what waits."""
LOG: Final = logging.getLogger("joinery.metrics")


class SchedulerMetrics(Metrics):
    """`watch` is a duty of the leader; what only it knows is shown while it leads."""

    def __init__(self, dispatch: Dispatch, ticks: Ticks, network: NetworkRelay) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._leads = False
        self._backlog: Sequence[Backlog] = ()
        self.gauge("joinery_scheduler_leading", "Whether this scheduler leads.", lambda: float(self._leads))
        lane = ("lane",)
        self.gauges(
            "joinery_jobs_waiting", "Jobs that are due and that no worker has in hand, by kind of lane.", lane,
            lambda: {(one.lanes,): one.waiting for one in self._backlog},
        )  # fmt: skip
        self.gauges(
            "joinery_jobs_running", "Jobs that workers have in hand.", lane,
            lambda: {(one.lanes,): one.held for one in self._backlog},
        )  # fmt: skip
        self.gauges(
            "joinery_jobs_oldest_seconds", "How long the oldest of the waiting jobs has been due.", lane, self._oldest
        )
        self.gauges(
            "joinery_tick_age_intervals", "For how many of its intervals each tick has not ended well.", ("tick",),
            lambda: {(name,): age for name, age in ticks.ages().items()},
        )  # fmt: skip
        self.gauges(
            "joinery_network_relay_lag_seconds", "For how long published events have waited to be copied.", (),
            lambda: {(): network.lag} if self._leads else {},
        )  # fmt: skip

    async def watch(self) -> None:
        """Look at what waits, again and again, until cancelled."""
        self._leads = True
        try:
            while True:
                try:
                    self._backlog = await self._dispatch.backlog()
                except Exception as error:
                    self._backlog = ()
                    LOG.warning("waiting jobs could not be counted: %s", error)
                await asyncio.sleep(EVERY)
        finally:
            self._leads, self._backlog = False, ()

    def _oldest(self) -> dict[Sequence[str], float]:
        now = datetime.now(UTC)
        return {
            (one.lanes,): max(0.0, (now - one.oldest).total_seconds()) if one.oldest is not None else 0.0
            for one in self._backlog
        }
