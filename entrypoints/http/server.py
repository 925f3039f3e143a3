"""The API process: the application on Hypercorn."""

import asyncio
import contextlib
import gc
import socket
from typing import Final

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config

from adapters.files.objects import FileObjects
from entrypoints.container import Container
from entrypoints.http.app import Parts, create_app
from entrypoints.http.fast_path import SEND_SECONDS
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals

BACKLOG: Final = 1024


def parts_of(container: Container, settings: Settings) -> Parts:
    """What the application is made of, out of the container."""
    pool, objects = container.pool(), container.objects()

    async def database() -> bool:
        async with pool.system() as link:
            await link.cursor.execute("SELECT 1")
        return True

    return Parts(
        use=container.use_cases(),
        uow=container.uow(),
        access=container.access(),
        limits=container.limits(),
        clock=container.clock(),
        request_logs=container.request_log_sink(),
        secret=settings.secret.encode(),
        vault=container.vault(),
        base_url=settings.base_url,
        docs_url=settings.docs_url,
        objects=objects if isinstance(objects, FileObjects) else None,
        waiting=lambda: pool.waiting,
        readiness={"database": database},
        trusted_proxies=settings.trusted_proxies,
        metrics_port=settings.metrics_port,
    )


def listening(host: str, port: int) -> socket.socket:
    """The socket to serve on. A client that takes nothing for SEND_SECONDS is cut off by the kernel (RFC 5482)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_SECONDS * 1000))
    return made


def hypercorn_config(host: str, port: int) -> Config:
    """How the server is set: HTTP/1.1 and h2c, no access log of its own (requests are logged by the pipeline)."""
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
    app = create_app(parts_of(container, settings))
    config = hypercorn_config(settings.host, settings.port)
    gc.collect()
    gc.freeze()  # what lives as long as the process need not be looked at again and again
    gc.set_threshold(20_000, 20, 50)
    with stopping_on_signals() as stop, contextlib.suppress(asyncio.CancelledError):

        async def stopped() -> None:
            await stop.wait()
            container.tailer().close()

        await hypercorn_serve(app, config, shutdown_trigger=stopped)
