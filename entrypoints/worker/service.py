"""What a worker does: takes lanes out of the queue, or the database, and carries their jobs out."""

import asyncio
import gc
from functools import partial

from adapters.arq.worker import ArqWorker, quiet
from domain.jobs.usecases.draining import Drain
from domain.jobs.usecases.observing import JobObserver
from domain.jobs.usecases.polling import Polling
from domain.jobs.usecases.worker import Failover, Worker
from domain.runs.queueing import RUN_KINDS
from domain.runs.usecases.outcome import CountedRuns
from domain.webhooks.ports import DeliveryPlace
from domain.webhooks.usecases.deliverer import Deliverer, Serving
from domain.webhooks.usecases.posting import DeliveryObserver, Posting
from entrypoints.areas import webhooks
from entrypoints.areas.registry import AREAS
from entrypoints.container import Container
from entrypoints.factories import product_version
from entrypoints.metrics import exposed, with_surroundings
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals
from entrypoints.worker.metrics import WorkerMetrics
from ports.telemetry import WorkMetrics

WARM_AFTER = 2.0
"""Seconds after its start that a worker makes readers ready, unless a file comes before."""


async def run_worker(container: Container, settings: Settings, duties: frozenset[str]) -> None:
    """Do the duties (`runs`, `webhooks`) until SIGTERM or SIGINT."""
    quiet()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    dependencies, metrics = container.assembled(), WorkerMetrics()
    with_surroundings(metrics, dependencies)
    port = settings.watching.worker if "runs" in duties else settings.watching.webhooks
    with stopping_on_signals() as stop:
        async with exposed(metrics, dependencies, port), asyncio.TaskGroup() as group:
            for duty in sorted(duties):
                group.create_task(_DUTIES[duty](container, settings, metrics, stop))


async def _run_runs(container: Container, settings: Settings, metrics: WorkMetrics, stop: asyncio.Event) -> None:
    dependencies = container.assembled()
    await asyncio.to_thread(container.workspaces().sweep)
    warming = asyncio.create_task(_warm(container), name="warming readers")
    handlers = {kind: handler for area in AREAS for kind, handler in area.jobs(dependencies).items()}
    handlers |= {kind: CountedRuns(handlers[kind], dependencies.uow, metrics) for kind in RUN_KINDS}
    drain = Drain(dependencies.dispatch, handlers, observer=JobObserver(metrics, dependencies.tracing))
    database = Polling(dependencies.dispatch, dependencies.signals)
    source = Failover(ArqWorker(settings.redis_url), database) if settings.redis_url else database
    try:
        await Worker(source, drain, lanes=settings.worker_lanes).run(stop)
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)


async def _warm(container: Container) -> None:
    """Have readers ready, once everything else that starts beside this has done so."""
    await asyncio.sleep(WARM_AFTER)
    await container.feed_readers().warm()


async def _deliver(container: Container, _settings: Settings, metrics: WorkMetrics, stop: asyncio.Event) -> None:
    tailing = asyncio.create_task(container.tailer().run(), name="tailing the log")
    try:
        await Serving(container.assembled().delivery_places, partial(deliverer_of, container, metrics=metrics)).run(
            stop
        )
    finally:
        tailing.cancel()
        await asyncio.gather(tailing, return_exceptions=True)


_DUTIES = {"runs": _run_runs, "webhooks": _deliver}


def deliverer_of(container: Container, place: DeliveryPlace, metrics: WorkMetrics | None = None) -> Deliverer:
    """The process's deliverer of a place; its log tailer must be run beside it."""
    given = container.assembled()
    posting = Posting(
        given.tailer.log,
        place.log,
        given.sender,
        container.payloads(),
        given.vault,
        given.feed_cursors,
        given.clock,
        f"Joinery/{product_version()}",
        observer=DeliveryObserver(place.log, metrics, given.tracing),
    )
    service = webhooks.service(given)
    return Deliverer(given.tailer, place.log, place.shards, posting, service, given.uow, given.signals, given.clock)
