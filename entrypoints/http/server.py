"""The API process: the application on Hypercorn."""

import asyncio
import contextlib
import gc
import resource
import socket
import sys
from typing import Final

from hypercorn.config import Config

from entrypoints.container import Container
from entrypoints.http.app import create_app
from entrypoints.http.connections import SEND_SECONDS
from entrypoints.http.connections import serve as serve_connections
from entrypoints.operators.service import operators_page
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals

BACKLOG: Final = 1024
OTHER_FILES: Final = 256
"""Open files that are no connections of clients: the database's, uploads, plugins."""


def listening(host: str, port: int) -> socket.socket:
    """The socket to serve on. A client that takes nothing for SEND_SECONDS is cut off by the kernel (RFC 5482)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_SECONDS * 1000))
    return made


def most_connections() -> int:
    """How many connections leave the process files enough for everything else."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if files == resource.RLIM_INFINITY else max(files - OTHER_FILES, files // 2)


def hypercorn_config(host: str, port: int) -> Config:
    """How the server is set: no access log of its own (requests are logged by the pipeline)."""
    config = Config()
    config.bind = [f"fd://{listening(host, port).detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.graceful_timeout = 10
    config.h11_max_incomplete_size = 64 * 1024
    config.include_server_header = False
    config.backlog = BACKLOG
    config.keep_alive_max_requests = 100_000
    return config


async def serve(container: Container, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests in hand are answered first, those that only wait at once."""
    dependencies = container.assembled()
    app = create_app(dependencies)
    config = hypercorn_config(settings.host, settings.port)
    gc.collect()
    gc.freeze()  # what lives as long as the process need not be looked at again and again
    gc.set_threshold(20_000, 20, 50)
    with stopping_on_signals() as stop, contextlib.suppress(asyncio.CancelledError):

        async def stopped() -> None:
            await stop.wait()
            dependencies.tailer.close()

        async with operators_page(dependencies, settings.operators_port):
            await serve_connections(app, config, stopped, http2=settings.http2, most=most_connections())
