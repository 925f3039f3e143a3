"""The leading scheduler: wakes workers, fills the network logs, and runs the ticks of all areas."""

from functools import partial

from adapters.arq.queue import ArqQueue
from adapters.postgres.locks import leadership
from adapters.postgres.maintenance import PostgresPurgeGuard
from domain.changes.usecases.network import NetworkRelay
from domain.jobs.ports import Dispatch
from domain.jobs.usecases.relay import Relay
from domain.jobs.usecases.ticks import Duty, Leader, Ticks
from domain.platform.ports import Instances, OperatingFiguresReader
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies
from entrypoints.metrics import exposed, with_surroundings
from entrypoints.scheduler.metrics import SchedulerMetrics
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals
from ports.signals import Signals


async def run_scheduler(dependencies: Dependencies, settings: Settings) -> None:
    """Lead, or wait to lead, until SIGTERM or SIGINT."""
    guard = dependencies[PostgresPurgeGuard]
    ticks = Ticks([tick for area in AREAS for tick in dependencies.call(area.ticks)], may_purge=guard.claim)
    network = dependencies[NetworkRelay]
    metrics = SchedulerMetrics(
        dependencies[Dispatch], ticks, network, dependencies[Instances], dependencies[OperatingFiguresReader]
    )
    metrics.gauge(
        "joinery_purges_refused",
        "Whether purges are refused because the database's clock has jumped.",
        lambda: float(guard.refuses),
    )
    with_surroundings(metrics, dependencies)
    duties: list[Duty] = [ticks.run, network.run, metrics.watch]
    if settings.redis_url:
        duties.append(Relay(dependencies[Dispatch], ArqQueue(settings.redis_url), dependencies[Signals]).run)
    async with exposed(metrics, dependencies, settings.watching.scheduler):
        with stopping_on_signals() as stop:
            await Leader(partial(leadership, settings.database_url), duties).run(stop)
