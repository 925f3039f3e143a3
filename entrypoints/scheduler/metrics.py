"""Metrics of the whole service, exported by the leading scheduler: waiting jobs, late ticks, lag of the copies of published events."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from domain.changes.usecases.network import NetworkRelay
from domain.jobs.model import Backlog
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.ticks import TickRunner
from domain.kernel.clock import CLOCK
from domain.platform.instances import ROLES
from domain.platform.model import WorkloadMetrics
from domain.platform.ports import Instances, WorkloadMetricsReader
from entrypoints.metrics import Metrics

BACKLOG_INTERVAL_SECONDS = 15.0
"""Seconds between two reads of the job backlog."""
BACKLOG_READS_PER_WORKLOAD_READ = 4
"""Number of reads of the job backlog per read of the workload metrics."""
LOG = logging.getLogger("joinery.metrics")


class WorkloadGauge(NamedTuple):
    """Gauge of one workload metric of the whole service.

    Attributes:
        metric: The name under which the metric is exported.
        description: The description of the metric.
        read_value: Returns the value of the gauge; the gauge is not exported while this is None.
    """

    metric: str
    description: str
    read_value: Callable[[WorkloadMetrics], float | None]


WORKLOAD_GAUGES = (
    WorkloadGauge(
        "joinery_sources_scheduled",
        "Streams of sources that are pulled on a schedule.",
        lambda metrics: metrics.streams_scheduled,
    ),
    WorkloadGauge(
        "joinery_sources_stale",
        "Scheduled streams without a successful run for three intervals.",
        lambda metrics: metrics.streams_stale,
    ),
    WorkloadGauge(
        "joinery_runs_last_success_seconds",
        "Time since the most recent successful run of any scheduled source.",
        lambda metrics: metrics.last_success_age,
    ),
    WorkloadGauge(
        "joinery_webhook_deliveries_waiting",
        "Open webhook deliveries, counted up to 50,000 per node.",
        lambda metrics: metrics.deliveries_waiting,
    ),
    WorkloadGauge(
        "joinery_webhook_oldest_seconds",
        "Age of the oldest open webhook delivery.",
        lambda metrics: metrics.oldest_delivery_age,
    ),
    WorkloadGauge(
        "joinery_webhook_endpoints_disabled",
        "Webhook endpoints that the service has disabled.",
        lambda metrics: metrics.endpoints_disabled,
    ),
    WorkloadGauge(
        "joinery_mail_outbox_waiting", "Outgoing mail waiting to be sent.", lambda metrics: metrics.mail_waiting
    ),
    WorkloadGauge(
        "joinery_mail_outbox_oldest_seconds",
        "Age of the oldest mail waiting to be sent.",
        lambda metrics: metrics.oldest_mail_age,
    ),
    WorkloadGauge(
        "joinery_backup_age_seconds",
        "Time since the last completed `joinery backup`; absent if there is none.",
        lambda metrics: metrics.backup_age,
    ),
    WorkloadGauge(
        "joinery_model_cost_day_dollars",
        "Cost of language models in the last 24 hours.",
        lambda metrics: metrics.model_cost_dollars,
    ),
)


class SchedulerMetrics(Metrics):
    """Metrics of a scheduler. Only the leader runs `read_periodically` and exports metrics of the whole service."""

    def __init__(
        self,
        dispatch: JobDispatcher,
        ticks: TickRunner,
        network: NetworkRelay,
        instances: Instances | None = None,
        workload_metrics_reader: WorkloadMetricsReader | None = None,
    ) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._is_leader = False
        self._backlog: Sequence[Backlog] = ()
        self._instances, self._workload_metrics_reader = instances, workload_metrics_reader
        self._alive_by_role: Mapping[str, int] = {}
        self._workload_metrics: WorkloadMetrics | None = None
        for gauge in WORKLOAD_GAUGES:
            self.add_gauges(gauge.metric, gauge.description, (), partial(self._read_workload_gauge, gauge))
        self.add_gauges(
            "joinery_instances", "Running processes, by role.", ("role",),
            lambda: {(role,): count for role, count in self._alive_by_role.items()},
        )  # fmt: skip
        self.add_gauge(
            "joinery_scheduler_leading", "Whether this scheduler is the leader.", lambda: float(self._is_leader)
        )
        lane = ("lane",)
        self.add_gauges(
            "joinery_jobs_waiting", "Due jobs that no worker is executing, by kind of lane (jobs that run one after the other).", lane,
            lambda: {(row.lane_kind,): row.waiting_count for row in self._backlog},
        )  # fmt: skip
        self.add_gauges(
            "joinery_jobs_running", "Jobs that workers are executing.", lane,
            lambda: {(row.lane_kind,): row.running_count for row in self._backlog},
        )  # fmt: skip
        self.add_gauges(
            "joinery_jobs_oldest_seconds",
            "Age of the oldest waiting job.",
            lane,
            self._compute_oldest_ages,
        )
        self.add_gauges(
            "joinery_tick_age_intervals", "Time since each tick last succeeded, divided by the tick's interval.", ("tick",),
            lambda: {(name,): age for name, age in ticks.compute_relative_ages().items()},
        )  # fmt: skip
        self.add_gauges(
            "joinery_network_relay_lag_seconds", "Lag of the network log (copies of published events) behind the publishers' logs.", (),
            lambda: {(): network.lag} if self._is_leader else {},
        )  # fmt: skip

    async def read_periodically(self) -> None:
        """Read the job backlog and the workload metrics periodically, until cancelled."""
        self._is_leader = True
        try:
            for read_number in itertools.count():
                if read_number % BACKLOG_READS_PER_WORKLOAD_READ == 0:
                    await self._read_workload_metrics()
                try:
                    self._backlog = await self._dispatch.count_backlog()
                except Exception as error:
                    self._backlog = ()
                    LOG.warning("job backlog could not be read: %s", error)
                await asyncio.sleep(BACKLOG_INTERVAL_SECONDS)
        finally:
            self._is_leader, self._backlog, self._alive_by_role, self._workload_metrics = False, (), {}, None

    async def _read_workload_metrics(self) -> None:
        """Read the workload metrics and the running processes; if that fails, log a warning and export neither."""
        self._alive_by_role, self._workload_metrics = {}, None
        try:
            if self._instances is not None:
                alive = Counter(instance.role for instance in await self._instances.list_alive())
                self._alive_by_role = {role: alive[role] for role in ROLES}
            if self._workload_metrics_reader is not None:
                self._workload_metrics = await self._workload_metrics_reader.read()
        except Exception as error:
            LOG.warning("workload metrics could not be read: %s", error)

    def _read_workload_gauge(self, gauge: WorkloadGauge) -> dict[Sequence[str], float]:
        """Return the value of a gauge without labels under the key `()`; an empty mapping if the value is unknown."""
        value = gauge.read_value(self._workload_metrics) if self._workload_metrics is not None else None
        return {} if value is None else {(): value}

    def _compute_oldest_ages(self) -> dict[Sequence[str], float]:
        """Return the age in seconds of the oldest waiting job, by kind of lane."""
        now = CLOCK.now()
        return {
            (row.lane_kind,): max(0.0, (now - row.oldest_due_at).total_seconds())
            if row.oldest_due_at is not None
            else 0.0
            for row in self._backlog
        }
