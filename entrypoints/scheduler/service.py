"""What the leading scheduler does: wakes workers, queues due pulls, measures health, keeps tables small."""

from functools import partial

from adapters.arq.queue import ArqQueue
from adapters.postgres.leadership import leadership
from domain.jobs.usecases.leader import Duty, Leader
from domain.jobs.usecases.relay import Relay
from domain.jobs.usecases.ticks import Tick, Ticks
from domain.platform.usecases import PlatformService
from entrypoints.container import Container
from entrypoints.scheduler.probes import probes
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals


async def run_scheduler(container: Container, settings: Settings) -> None:
    """Lead, or wait to lead, until SIGTERM or SIGINT."""
    maintenance = container.maintenance()
    api = f"http://{settings.host}:{settings.port}"
    looks = probes(container.dispatch(), container.event_reader(), container.shards(), api)
    platform = PlatformService(container.platform_checks(), container.clock(), looks)
    runs = container.run_scheduler()
    idempotency = container.idempotency_maintenance()

    async def queue_due() -> None:
        await runs.queue_due()

    async def clean() -> None:
        await idempotency.purge_expired()
        await platform.purge_old()
        await maintenance.partitions()
        await maintenance.purge_request_logs()
        await maintenance.purge_deliveries()

    ticks = Ticks([Tick("due pulls", 15, queue_due), Tick("health", 60, platform.tick), Tick("upkeep", 3600, clean)])
    duties: list[Duty] = [ticks.run]
    if settings.redis_url:
        duties.append(Relay(container.dispatch(), ArqQueue(settings.redis_url), container.signals()).run)
    with stopping_on_signals() as stop:
        await Leader(partial(leadership, settings.database_url), duties).run(stop)
