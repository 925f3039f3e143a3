"""Metrics of the leading scheduler for the whole service: waiting jobs, late ticks, the network log's lag."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from domain.changes.usecases.network import NetworkRelay
from domain.jobs.model import Backlog
from domain.jobs.ports import Dispatch
from domain.jobs.usecases.ticks import Ticks
from domain.kernel.clock import CLOCK
from domain.platform.instances import ROLES
from domain.platform.model import OperatingFigures
from domain.platform.ports import Instances, OperatingFiguresReader
from entrypoints.metrics import Metrics

EVERY = 15.0
"""Seconds between two reads of the backlog."""
FIGURES_EACH = 4
"""Backlog reads per read of the operating figures."""
LOG = logging.getLogger("joinery.metrics")


class Figure(NamedTuple):
    """Gauge of one operating figure, absent while the figure is None."""

    metric: str
    description: str
    value: Callable[[OperatingFigures], float | None]


FIGURES = (
    Figure(
        "joinery_sources_scheduled",
        "Streams of sources that are pulled on a schedule.",
        lambda figures: figures.sources_scheduled,
    ),
    Figure(
        "joinery_sources_stale",
        "Scheduled streams without a successful run for three intervals.",
        lambda figures: figures.sources_stale,
    ),
    Figure(
        "joinery_runs_last_success_seconds",
        "Time since the latest successful run of a scheduled source.",
        lambda figures: figures.last_success_age,
    ),
    Figure(
        "joinery_webhook_deliveries_waiting",
        "Open webhook deliveries, counted up to 50,000 per node.",
        lambda figures: figures.deliveries_waiting,
    ),
    Figure(
        "joinery_webhook_oldest_seconds",
        "Age of the oldest open webhook delivery.",
        lambda figures: figures.oldest_delivery_age,
    ),
    Figure(
        "joinery_webhook_endpoints_disabled",
        "Webhook endpoints that the service has disabled.",
        lambda figures: figures.endpoints_disabled,
    ),
    Figure("joinery_mail_outbox_waiting", "Mail to people waiting to be sent.", lambda figures: figures.mail_waiting),
    Figure(
        "joinery_mail_outbox_oldest_seconds",
        "Age of the oldest mail waiting to be sent.",
        lambda figures: figures.oldest_mail_age,
    ),
    Figure(
        "joinery_backup_age_seconds",
        "Time since `joinery backup` last finished; absent if it never did.",
        lambda figures: figures.backup_age,
    ),
    Figure(
        "joinery_model_cost_day_dollars",
        "Cost of models in the last 24 hours.",
        lambda figures: figures.model_cost_dollars,
    ),
)


class SchedulerMetrics(Metrics):
    """Metrics of a scheduler; `watch` is a duty of the leader, which alone exposes the values that it reads."""

    def __init__(
        self,
        dispatch: Dispatch,
        ticks: Ticks,
        network: NetworkRelay,
        instances: Instances | None = None,
        figures: OperatingFiguresReader | None = None,
    ) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._leads = False
        self._backlog: Sequence[Backlog] = ()
        self._instances, self._figures = instances, figures
        self._alive_by_role: Mapping[str, int] = {}
        self._current_figures: OperatingFigures | None = None
        for figure in FIGURES:
            self.gauges(figure.metric, figure.description, (), partial(self._figure_values, figure))
        self.gauges(
            "joinery_instances", "Running processes, by role.", ("role",),
            lambda: {(role,): count for role, count in self._alive_by_role.items()},
        )  # fmt: skip
        self.gauge("joinery_scheduler_leading", "Whether this scheduler leads.", lambda: float(self._leads))
        lane = ("lane",)
        self.gauges(
            "joinery_jobs_waiting", "Due jobs that no worker is executing, by kind of lane.", lane,
            lambda: {(row.lanes,): row.waiting for row in self._backlog},
        )  # fmt: skip
        self.gauges(
            "joinery_jobs_running", "Jobs that workers are executing.", lane,
            lambda: {(row.lanes,): row.held for row in self._backlog},
        )  # fmt: skip
        self.gauges(
            "joinery_jobs_oldest_seconds",
            "Time for which the oldest waiting job has been due.",
            lane,
            self._oldest_by_lane,
        )
        self.gauges(
            "joinery_tick_age_intervals", "Intervals since each tick last succeeded.", ("tick",),
            lambda: {(name,): age for name, age in ticks.ages().items()},
        )  # fmt: skip
        self.gauges(
            "joinery_network_relay_lag_seconds", "Time for which published events have waited to be copied.", (),
            lambda: {(): network.lag} if self._leads else {},
        )  # fmt: skip

    async def watch(self) -> None:
        """Read the backlog periodically until cancelled."""
        self._leads = True
        try:
            for turn in itertools.count():
                if turn % FIGURES_EACH == 0:
                    await self._read_figures()
                try:
                    self._backlog = await self._dispatch.backlog()
                except Exception as error:
                    self._backlog = ()
                    LOG.warning("job backlog not read: %s", error)
                await asyncio.sleep(EVERY)
        finally:
            self._leads, self._backlog, self._alive_by_role, self._current_figures = False, (), {}, None

    async def _read_figures(self) -> None:
        """Read the figures for alerts; those that cannot be read are absent."""
        self._alive_by_role, self._current_figures = {}, None
        try:
            if self._instances is not None:
                alive = Counter(instance.role for instance in await self._instances.list_alive())
                self._alive_by_role = {role: alive[role] for role in ROLES}
            if self._figures is not None:
                self._current_figures = await self._figures.read()
        except Exception as error:
            LOG.warning("operating figures not read: %s", error)

    def _figure_values(self, figure: Figure) -> dict[Sequence[str], float]:
        value = figure.value(self._current_figures) if self._current_figures is not None else None
        return {} if value is None else {(): value}

    def _oldest_by_lane(self) -> dict[Sequence[str], float]:
        now = CLOCK.now()
        return {
            (row.lanes,): max(0.0, (now - row.oldest).total_seconds()) if row.oldest is not None else 0.0
            for row in self._backlog
        }
