"""The API process, which serves the application with Hypercorn."""

import asyncio
import contextlib
import gc
import logging
import resource
import sys

from domain.changes.usecases.log_tailer import LogTailer
from entrypoints.api.app import create_app
from entrypoints.dependencies import Dependencies, ReadinessChecks
from entrypoints.http.connections import create_hypercorn_config
from entrypoints.http.connections import serve as serve_connections
from entrypoints.operators_page import serve_operators_page
from entrypoints.settings import Settings
from entrypoints.stop_signals import catch_stop_signals

LOG = logging.getLogger("joinery.http")
RESERVED_FILE_COUNT = 256
"""Number of open files that are reserved for database connections, uploads and plugins."""


def compute_max_connections() -> int:
    """Return the maximum number of client connections: the process's limit of open files minus RESERVED_FILE_COUNT."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if files == resource.RLIM_INFINITY else max(files - RESERVED_FILE_COUNT, files // 2)


async def serve(dependencies: Dependencies, settings: Settings) -> None:
    """Serve the API until SIGTERM or SIGINT. Then complete open requests, and end long polls and streams."""
    stopping = asyncio.Event()

    async def is_accepting() -> bool:
        return not stopping.is_set()

    dependencies[ReadinessChecks]["accepting"] = is_accepting
    app = create_app(dependencies)
    config = create_hypercorn_config(settings.host, settings.port)
    gc.collect()
    gc.freeze()  # objects of the process's lifetime, so the collector can skip them
    gc.set_threshold(20_000, 20, 50)
    with catch_stop_signals() as stop, contextlib.suppress(asyncio.CancelledError):

        async def wait_for_stop() -> None:
            await stop.wait()
            stopping.set()
            LOG.info("draining", extra={"seconds": settings.drain_seconds})
            await asyncio.sleep(
                settings.drain_seconds
            )  # load balancers see /readyz fail before connections are refused
            dependencies[LogTailer].close()

        async with serve_operators_page(dependencies, settings.operators_port):
            await serve_connections(
                app, config, wait_for_stop, http2=settings.http2, max_connections=compute_max_connections()
            )
