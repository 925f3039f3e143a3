"""The API process: the application on Hypercorn."""

import asyncio
import contextlib
import gc
import logging
import resource
import sys

from domain.changes.usecases.tailing import LogTailer
from entrypoints.api.app import create_app
from entrypoints.dependencies import Dependencies, Readiness
from entrypoints.http.connections import hypercorn_config
from entrypoints.http.connections import serve as serve_connections
from entrypoints.operators import operators_page
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals

LOG = logging.getLogger("joinery.http")
OTHER_FILES = 256
"""Open files other than client connections: database, uploads, plugins."""


def most_connections() -> int:
    """Return the maximum number of client connections that leaves enough open files for everything else."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if files == resource.RLIM_INFINITY else max(files - OTHER_FILES, files // 2)


async def serve(dependencies: Dependencies, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress are completed, waiting ones end immediately."""
    stopping = asyncio.Event()

    async def accepting() -> bool:
        return not stopping.is_set()

    dependencies[Readiness]["accepting"] = accepting
    app = create_app(dependencies)
    config = hypercorn_config(settings.host, settings.port)
    gc.collect()
    gc.freeze()  # objects of the process's lifetime, so the collector can skip them
    gc.set_threshold(20_000, 20, 50)
    with stopping_on_signals() as stop, contextlib.suppress(asyncio.CancelledError):

        async def stopped() -> None:
            await stop.wait()
            stopping.set()
            LOG.info("draining", extra={"seconds": settings.drain_seconds})
            await asyncio.sleep(
                settings.drain_seconds
            )  # load balancers see /readyz fail before connections are refused
            dependencies[LogTailer].close()

        async with operators_page(dependencies, settings.operators_port):
            await serve_connections(app, config, stopped, http2=settings.http2, most=most_connections())
