"""An application on memory adapters behind a real server, for browsers to walk through."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.http.fakes import World, running, settings

Prepare = Callable[[World], Awaitable[dict[str, str]]]


@dataclass
class Served:
    """A service at `address`; `told` is what was prepared. `do` runs a coroutine where the service runs."""

    address: str = ""
    told: dict[str, str] = field(default_factory=dict)
    world: Any = None
    loop: Any = None

    def do(self, work: Any) -> Any:
        """The coroutine's result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)


@contextmanager
def served(prepare: Prepare) -> Iterator[Served]:
    """A service that is up, with what `prepare` has put into it."""
    made, begun, over = Served(), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(made, prepare, begun, over)), daemon=True)
    thread.start()
    assert begun.wait(30)
    yield made
    over.set()
    thread.join(15)


async def _serve(made: Served, prepare: Prepare, begun: threading.Event, over: threading.Event) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made.address, made.loop = f"http://localhost:{port}", asyncio.get_running_loop()
    async with running(settings=settings(base_url=made.address)) as made.world:
        made.told = await prepare(made.world)
        config = Config()
        config.bind, config.accesslog, config.graceful_timeout = [f"127.0.0.1:{port}"], None, 1

        async def ended() -> None:
            while not over.is_set():
                await asyncio.sleep(0.05)

        serving = asyncio.create_task(serve(_started(made.world.app), config, shutdown_trigger=ended))  # type: ignore[arg-type]
        await asyncio.sleep(0.5)
        begun.set()
        await serving


def _started(app: Any) -> Any:
    """The application, which runs already."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    return asgi
