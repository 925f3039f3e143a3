"""The worker: takes lanes from the queue or the database and executes their jobs."""

import asyncio
import gc
from functools import partial

from adapters.arq.worker import ArqWorker, quiet
from adapters.files.workspaces import FileWorkspaces
from adapters.wire.cursors import FeedCursors
from domain.changes.usecases.tailing import LogTailer
from domain.ingestion.ports import FeedReaders
from domain.jobs.ports import Dispatch
from domain.jobs.usecases.draining import Drain
from domain.jobs.usecases.observing import JobObserver
from domain.jobs.usecases.polling import Polling
from domain.jobs.usecases.worker import Failover, Worker
from domain.runs.queueing import RUN_KINDS
from domain.runs.usecases.outcome import CountedRuns
from domain.webhooks.ports import DeliveryPlace, DeliveryPlaces
from domain.webhooks.usecases.deliverer import Deliverer, Serving
from domain.webhooks.usecases.posting import DeliveryObserver, Posting
from entrypoints.areas import webhooks
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies
from entrypoints.factories import product_version
from entrypoints.metrics import exposed, with_surroundings
from entrypoints.operations.operation import handlers_of
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals
from entrypoints.worker.metrics import WorkerMetrics
from ports.telemetry import Tracing, WorkMetrics
from ports.unit_of_work import UnitOfWork

WARM_AFTER = 2.0
"""Seconds after its start when a worker warms up feed readers, unless a file arrives earlier."""


async def run_worker(dependencies: Dependencies, settings: Settings, duties: frozenset[str]) -> None:
    """Perform the duties (`runs`, `webhooks`) until SIGTERM or SIGINT."""
    quiet()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    metrics = WorkerMetrics()
    with_surroundings(metrics, dependencies)
    port = settings.watching.worker if "runs" in duties else settings.watching.webhooks
    with stopping_on_signals() as stop:
        async with exposed(metrics, dependencies, port), asyncio.TaskGroup() as group:
            for duty in sorted(duties):
                group.create_task(_DUTIES[duty](dependencies, settings, metrics, stop))


async def _run_runs(dependencies: Dependencies, settings: Settings, metrics: WorkMetrics, stop: asyncio.Event) -> None:
    await asyncio.to_thread(dependencies[FileWorkspaces].sweep)
    warm_up = asyncio.create_task(_warm_readers(dependencies), name="warming readers")
    handlers = handlers_of(AREAS, dependencies)
    handlers |= {kind: CountedRuns(handlers[kind], dependencies[UnitOfWork], metrics) for kind in RUN_KINDS}
    drain = Drain(dependencies[Dispatch], handlers, observer=JobObserver(metrics, dependencies.find(Tracing)))
    database = dependencies[Polling]
    source = Failover(ArqWorker(settings.redis_url), database) if settings.redis_url else database
    try:
        await Worker(source, drain, lanes=settings.worker_lanes).run(stop)
    finally:
        warm_up.cancel()
        await asyncio.gather(warm_up, return_exceptions=True)


async def _warm_readers(dependencies: Dependencies) -> None:
    """Warm up feed readers after the start of everything else."""
    await asyncio.sleep(WARM_AFTER)
    await dependencies[FeedReaders].warm()


async def _deliver(dependencies: Dependencies, _settings: Settings, metrics: WorkMetrics, stop: asyncio.Event) -> None:
    tail_task = asyncio.create_task(dependencies[LogTailer].run(), name="tailing the log")
    try:
        await Serving(dependencies[DeliveryPlaces], partial(deliverer_of, dependencies, metrics=metrics)).run(stop)
    finally:
        tail_task.cancel()
        await asyncio.gather(tail_task, return_exceptions=True)


_DUTIES = {"runs": _run_runs, "webhooks": _deliver}


def deliverer_of(dependencies: Dependencies, place: DeliveryPlace, metrics: WorkMetrics | None = None) -> Deliverer:
    """Create the deliverer of a place; the process's log tailer must run."""
    tailer, log = dependencies[LogTailer], place.log
    posting = partial(
        Posting,
        events=tailer.log,
        log=log,
        cursors=dependencies[FeedCursors],
        agent=f"Joinery/{product_version()}",
        observer=DeliveryObserver(log, metrics, dependencies.find(Tracing)),
    )
    service = dependencies.call(webhooks.service)
    create = partial(Deliverer, log=log, shards=place.shards, posting=dependencies.call(posting), service=service)
    return dependencies.call(create)
