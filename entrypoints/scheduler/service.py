"""What the leading scheduler does: wakes workers, fills the network's logs, and ticks for every area."""

from functools import partial

from adapters.arq.queue import ArqQueue
from adapters.postgres.locks import leadership
from domain.changes.usecases.network import NetworkRelay
from domain.jobs.usecases.relay import Relay
from domain.jobs.usecases.ticks import Duty, Leader, Ticks
from entrypoints.areas.registry import AREAS
from entrypoints.container import Container
from entrypoints.metrics import exposed, with_surroundings
from entrypoints.scheduler.metrics import SchedulerMetrics
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals


async def run_scheduler(container: Container, settings: Settings) -> None:
    """Lead, or wait to lead, until SIGTERM or SIGINT."""
    dependencies = container.assembled()
    guard = container.purge_guard()
    ticks = Ticks([tick for area in AREAS for tick in area.ticks(dependencies)], may_purge=guard.claim)
    network = NetworkRelay(container.network_log(), dependencies.signals)
    metrics = SchedulerMetrics(dependencies.dispatch, ticks, network, dependencies.instances, dependencies.figures)
    metrics.gauge(
        "joinery_purges_refused",
        "Whether purges are refused because the database's clock has jumped.",
        lambda: float(guard.refuses),
    )
    with_surroundings(metrics, dependencies)
    duties: list[Duty] = [ticks.run, network.run, metrics.watch]
    if settings.redis_url:
        duties.append(Relay(dependencies.dispatch, ArqQueue(settings.redis_url), dependencies.signals).run)
    async with exposed(metrics, dependencies, settings.watching.scheduler):
        with stopping_on_signals() as stop:
            await Leader(partial(leadership, settings.database_url), duties).run(stop)
