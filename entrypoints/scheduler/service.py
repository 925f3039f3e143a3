"""The leading scheduler: notifies workers of due jobs, copies published events, and runs the ticks of all areas."""

from functools import partial

from adapters.arq.queue import ArqQueue
from adapters.postgres.locks import hold_leadership
from adapters.postgres.maintenance import PostgresPurgeGuard
from domain.changes.usecases.network import NetworkRelay
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.relay import Relay
from domain.jobs.usecases.ticks import Leader, LeaderTask, TickRunner
from domain.platform.ports import Instances, WorkloadMetricsReader
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies
from entrypoints.metrics import add_process_metrics, expose_metrics
from entrypoints.scheduler.metrics import SchedulerMetrics
from entrypoints.settings import Settings
from entrypoints.stop_signals import catch_stop_signals
from ports.signals import Signals


async def run_scheduler(dependencies: Dependencies, settings: Settings) -> None:
    """Run a scheduler until SIGTERM or SIGINT: wait to become the leader, then perform the leader's duties."""
    guard = dependencies[PostgresPurgeGuard]
    ticks = TickRunner(
        [tick for area in AREAS for tick in dependencies.call(area.create_ticks)], may_purge=guard.begin_purge
    )
    network = dependencies[NetworkRelay]
    metrics = SchedulerMetrics(
        dependencies[JobDispatcher], ticks, network, dependencies[Instances], dependencies[WorkloadMetricsReader]
    )
    metrics.add_gauge(
        "joinery_purges_refused",
        "Whether purges are refused because the database's clock has jumped.",
        lambda: float(guard.is_refusing),
    )
    add_process_metrics(metrics, dependencies)
    duties: list[LeaderTask] = [ticks.run, network.run, metrics.read_periodically]
    if settings.redis_url:
        duties.append(Relay(dependencies[JobDispatcher], ArqQueue(settings.redis_url), dependencies[Signals]).run)
    async with expose_metrics(metrics, dependencies, settings.monitoring.scheduler_port):
        with catch_stop_signals() as stop:
            await Leader(partial(hold_leadership, settings.database_url), duties).run(stop)
