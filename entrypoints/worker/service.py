"""What a worker does: takes lanes out of the queue, or the database, and carries their jobs out."""

import gc

from adapters.arq.worker import ArqWorker, quiet
from domain.runs.queueing import EXECUTE
from entrypoints.container import Container
from entrypoints.settings import Settings
from entrypoints.worker.drain import Drain
from entrypoints.worker.polling import Polling
from entrypoints.worker.process import stopping_on_signals, through, work


async def run_worker(container: Container, settings: Settings) -> None:
    """Work until SIGTERM or SIGINT."""
    quiet()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    drain = Drain(container.dispatch(), {EXECUTE: container.run_execution()})
    database = Polling(container.dispatch(), container.signals()).serve
    source = through(ArqWorker(settings.redis_url).serve, database) if settings.redis_url else database
    with stopping_on_signals() as stop:
        await work(source, drain, lanes=settings.worker_lanes, stop=stop)
