"""Application behind a real server, for tests with browsers."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.http.application import ApplicationHarness, create_settings, run_application

Prepare = Callable[[ApplicationHarness], Awaitable[Mapping[str, Any]]]
SecondApp = Callable[[ApplicationHarness, int], Any]
"""Function that creates another application for the given port."""


@dataclass
class LiveService:
    """Service at `address`, another application at `second_address`, and the prepared data."""

    address: str = ""
    second_address: str = ""
    prepared: Mapping[str, Any] = field(default_factory=dict)
    application: Any = None
    loop: Any = None

    def run(self, work: Any) -> Any:
        """Run a coroutine in the service's event loop; return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)


@contextmanager
def run_service(prepare: Prepare, second: SecondApp | None = None, **given: Any) -> Iterator[LiveService]:
    """Run a service with the data of `prepare`; `given` are dependencies."""
    made, begun, over = LiveService(), threading.Event(), threading.Event()
    work = _serve_applications(made, prepare, second, given, begun, over)
    thread = threading.Thread(target=lambda: asyncio.run(work), daemon=True)
    thread.start()
    assert begun.wait(60)
    yield made
    over.set()
    thread.join(15)


async def _serve_applications(
    made: LiveService,
    prepare: Prepare,
    second: SecondApp | None,
    given: Any,
    begun: threading.Event,
    over: threading.Event,
) -> None:
    port, other = _free_port(), _free_port()
    # A host name, because passkeys are not valid for IP addresses.
    made.address, made.second_address, made.loop = (
        f"http://localhost:{port}",
        f"http://127.0.0.1:{other}",
        asyncio.get_running_loop(),
    )
    async with run_application(settings=create_settings(base_url=made.address), **given) as made.application:
        made.prepared = await prepare(made.application)
        serving = [asyncio.create_task(_serve_until(made.application.app, port, over))]
        if second is not None:
            serving.append(asyncio.create_task(_serve_until(second(made.application, other), other, over)))
        for each in (port, other)[: len(serving)]:
            await _wait_for_port(each)
        begun.set()
        await asyncio.gather(*serving)


async def _serve_until(app: Any, port: int, over: threading.Event) -> None:
    config = Config()
    config.bind, config.accesslog, config.graceful_timeout = [f"127.0.0.1:{port}"], None, 1

    async def ended() -> None:
        while not over.is_set():
            await asyncio.sleep(0.05)

    await serve(_skip_lifespan(app), config, shutdown_trigger=ended)


async def _wait_for_port(port: int) -> None:
    """Wait until the port accepts connections."""
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _skip_lifespan(app: Any) -> Any:
    """Wrap an application that has already started."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    return asgi
