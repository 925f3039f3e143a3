"""What the leading scheduler shows of all: jobs that wait, ticks that lag, the network's logs. The others show that they wait to lead."""

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
"""Seconds between two looks at what waits."""
FIGURES_EACH = 4
"""Reads of the backlog for each read of the operating figures."""
LOG = logging.getLogger("joinery.metrics")


class Figure(NamedTuple):
    """A gauge of one operating figure, which is absent while the figure is None."""

    metric: str
    description: str
    value: Callable[[OperatingFigures], float | None]


FIGURES = (
    Figure(
        "joinery_sources_scheduled",
        "Streams of sources that are pulled on a schedule.",
        lambda of: of.sources_scheduled,
    ),
    Figure(
        "joinery_sources_stale",
        "Scheduled streams without a successful run for three intervals.",
        lambda of: of.sources_stale,
    ),
    Figure(
        "joinery_runs_last_success_seconds",
        "Time since the latest successful run of a scheduled source.",
        lambda of: of.last_success_age,
    ),
    Figure(
        "joinery_webhook_deliveries_waiting",
        "Open webhook deliveries, counted up to 50,000 per node.",
        lambda of: of.deliveries_waiting,
    ),
    Figure(
        "joinery_webhook_oldest_seconds",
        "Age of the oldest open webhook delivery.",
        lambda of: of.oldest_delivery_age,
    ),
    Figure(
        "joinery_webhook_endpoints_disabled",
        "Webhook endpoints that the service has disabled.",
        lambda of: of.endpoints_disabled,
    ),
    Figure("joinery_mail_outbox_waiting", "Mail to people waiting to be sent.", lambda of: of.mail_waiting),
    Figure(
        "joinery_mail_outbox_oldest_seconds",
        "Age of the oldest mail waiting to be sent.",
        lambda of: of.oldest_mail_age,
    ),
    Figure(
        "joinery_backup_age_seconds",
        "Time since `joinery backup` last finished; absent if it never did.",
        lambda of: of.backup_age,
    ),
    Figure("joinery_model_cost_day_dollars", "Cost of models in the last 24 hours.", lambda of: of.model_cost_dollars),
)


class SchedulerMetrics(Metrics):
    """`watch` is a duty of the leader; what only it knows is shown while it leads."""

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
        self._living: Mapping[str, int] = {}
        self._found: OperatingFigures | None = None
        for figure in FIGURES:
            self.gauges(figure.metric, figure.description, (), partial(self._shown, figure))
        self.gauges(
            "joinery_instances", "Running processes, by role.", ("role",),
            lambda: {(role,): count for role, count in self._living.items()},
        )  # fmt: skip
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
            for turn in itertools.count():
                if turn % FIGURES_EACH == 0:
                    await self._read_figures()
                try:
                    self._backlog = await self._dispatch.backlog()
                except Exception as error:
                    self._backlog = ()
                    LOG.warning("waiting jobs could not be counted: %s", error)
                await asyncio.sleep(EVERY)
        finally:
            self._leads, self._backlog, self._living, self._found = False, (), {}, None

    async def _read_figures(self) -> None:
        """Read the figures that alerts are based on; those that cannot be read are absent."""
        self._living, self._found = {}, None
        try:
            if self._instances is not None:
                alive = Counter(one.role for one in await self._instances.list_alive())
                self._living = {role: alive[role] for role in ROLES}
            if self._figures is not None:
                self._found = await self._figures.read()
        except Exception as error:
            LOG.warning("operating figures could not be read: %s", error)

    def _shown(self, figure: Figure) -> dict[Sequence[str], float]:
        value = figure.value(self._found) if self._found is not None else None
        return {} if value is None else {(): value}

    def _oldest(self) -> dict[Sequence[str], float]:
        now = CLOCK.now()
        return {
            (one.lanes,): max(0.0, (now - one.oldest).total_seconds()) if one.oldest is not None else 0.0
            for one in self._backlog
        }
