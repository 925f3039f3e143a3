"""The worker: executes jobs lane by lane (a lane is a group of jobs that run one after the other), and delivers webhooks."""

import asyncio
import gc
from functools import partial

from adapters.api_json.cursors import FeedCursorSigner
from adapters.arq.worker import ArqLaneSource, limit_arq_logging
from adapters.files.workspaces import FileWorkspaces
from domain.changes.usecases.log_tailer import LogTailer
from domain.ingestion.ports import FeedReaderFactory
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.job_observer import JobObserver
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.jobs.usecases.polling import DatabaseLaneSource
from domain.jobs.usecases.worker import FailoverLaneSource, Worker
from domain.runs.run_queue import RUN_KINDS
from domain.runs.usecases.outcome import RunMetricsHandler
from domain.webhooks.ports import DeliveryDatabase, DeliveryDatabases
from domain.webhooks.usecases.attempts import AttemptSender, DeliveryObserver
from domain.webhooks.usecases.deliverer import Deliverer, DeliveryCoordinator
from entrypoints.areas import webhooks
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies
from entrypoints.metrics import add_process_metrics, expose_metrics
from entrypoints.operations.operation import create_handlers
from entrypoints.settings import Settings, get_release_version
from entrypoints.stop_signals import catch_stop_signals
from entrypoints.worker.metrics import WorkerMetrics
from ports.telemetry import Tracing, WorkMetrics
from ports.unit_of_work import UnitOfWork

WARM_UP_DELAY_SECONDS = 2.0
"""Seconds after the start of job execution until the worker prepares the factory of feed readers."""


async def run_worker(dependencies: Dependencies, settings: Settings, duties: frozenset[str]) -> None:
    """Run a worker until SIGTERM or SIGINT.

    Args:
        dependencies: The dependency container.
        settings: The settings.
        duties: `runs` to execute jobs, `webhooks` to deliver webhooks, or both.
    """
    limit_arq_logging()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    metrics = WorkerMetrics()
    add_process_metrics(metrics, dependencies)
    port = settings.monitoring.worker_port if "runs" in duties else settings.monitoring.webhooks_port
    with catch_stop_signals() as stop:
        async with expose_metrics(metrics, dependencies, port), asyncio.TaskGroup() as group:
            for duty in sorted(duties):
                group.create_task(_RUN_BY_DUTY[duty](dependencies, settings, metrics, stop))


async def _execute_jobs(
    dependencies: Dependencies, settings: Settings, metrics: WorkMetrics, stop: asyncio.Event
) -> None:
    """Execute jobs of all kinds until `stop` is set."""
    await asyncio.to_thread(dependencies[FileWorkspaces].delete_orphans)
    warm_up = asyncio.create_task(_prepare_feed_readers(dependencies), name="warming readers")
    handlers = create_handlers(AREAS, dependencies)
    handlers |= {kind: RunMetricsHandler(handlers[kind], dependencies[UnitOfWork], metrics) for kind in RUN_KINDS}
    drain = LaneProcessor(
        dependencies[JobDispatcher], handlers, observer=JobObserver(metrics, dependencies.find_optional(Tracing))
    )
    database = dependencies[DatabaseLaneSource]
    source = FailoverLaneSource(ArqLaneSource(settings.redis_url), database) if settings.redis_url else database
    try:
        await Worker(source, drain, max_lanes=settings.worker_lanes).run(stop)
    finally:
        warm_up.cancel()
        await asyncio.gather(warm_up, return_exceptions=True)


async def _prepare_feed_readers(dependencies: Dependencies) -> None:
    """Wait WARM_UP_DELAY_SECONDS, then start the parent process of feed readers to speed up the first reader."""
    await asyncio.sleep(WARM_UP_DELAY_SECONDS)
    await dependencies[FeedReaderFactory].prepare()


async def _deliver_webhooks(
    dependencies: Dependencies, _settings: Settings, metrics: WorkMetrics, stop: asyncio.Event
) -> None:
    """Deliver events to webhook endpoints until `stop` is set."""
    tail_task = asyncio.create_task(dependencies[LogTailer].run(), name="log tailer")
    try:
        await DeliveryCoordinator(
            dependencies[DeliveryDatabases], partial(create_deliverer, dependencies, metrics=metrics)
        ).run(stop)
    finally:
        tail_task.cancel()
        await asyncio.gather(tail_task, return_exceptions=True)


_RUN_BY_DUTY = {"runs": _execute_jobs, "webhooks": _deliver_webhooks}


def create_deliverer(
    dependencies: Dependencies, database: DeliveryDatabase, metrics: WorkMetrics | None = None
) -> Deliverer:
    """Create the component that delivers the webhooks of one database. The log tailer of this process must be running.

    Args:
        dependencies: The dependencies of this process.
        database: The database with the webhook endpoints and their deliveries.
        metrics: The metrics of this process, in which attempts are counted; None to count none.
    """
    tailer, log = dependencies[LogTailer], database.store
    posting = partial(
        AttemptSender,
        events=tailer.log_reader,
        store=log,
        cursors=dependencies[FeedCursorSigner],
        user_agent=f"Joinery/{get_release_version()}",
        observer=DeliveryObserver(log, metrics, dependencies.find_optional(Tracing)),
    )
    service = dependencies.call(webhooks.create_webhook_service)
    create = partial(Deliverer, store=log, shards=database.shards, sender=dependencies.call(posting), service=service)
    return dependencies.call(create)
