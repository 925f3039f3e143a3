"""The console on a server of its own in a thread, on memory adapters, with something on every page."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from adapters.files.workspaces import FileWorkspaces
from tests.http.fakes import running, settings
from tests.support.console import Seeded, seeded
from tests.support.readers import in_process
from tests.support.services import Outside

TITLES = (
    "Oak dining table",
    "Walnut lounge chair with a rather long name that has to break somewhere",
    "Linen sofa",
    "Brass lamp",
)


@dataclass
class Served:
    """Where it is served, the cookie of an owner, and what is shown."""

    address: str
    cookie: str
    empty: str
    """The cookie of somebody whose organisation has nothing."""
    made: Seeded

    def context(self, browser: Any, cookie: str | None = None, **more: Any) -> Any:
        """A browser in which somebody is signed in."""
        made = browser.new_context(reduced_motion="reduce", **more)
        made.add_cookies([{"name": "joinery", "value": cookie or self.cookie, "url": self.address}])
        return made


@contextmanager
def served() -> Iterator[Served]:
    """The console, until the context ends."""
    told: list[Served] = []
    begun, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(told, begun, over)), daemon=True)
    thread.start()
    assert begun.wait(30) and told
    yield told[0]
    over.set()
    thread.join(10)


async def _serve(told: list[Served], begun: threading.Event, over: threading.Event) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, outside = f"http://127.0.0.1:{port}", Outside()
    given = {
        "connectors": outside.connectors,
        "objects": outside.objects,
        "feed_readers": in_process(outside.connectors),
    }
    async with running(settings=settings(base_url=address), workspaces=FileWorkspaces(), **given) as world:
        made = await seeded(world, TITLES)
        owner, newcomer = await world.browser(), await world.browser("Oak")
        config = Config()
        config.bind, config.accesslog = [f"127.0.0.1:{port}"], None
        serving = asyncio.create_task(
            serve(_without_lifespan(world.app), config, shutdown_trigger=lambda: _until(over))
        )  # type: ignore[arg-type]
        for _ in range(200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        told.append(Served(address, next(iter(owner.cookies.values())), next(iter(newcomer.cookies.values())), made))
        begun.set()
        await serving


async def _until(over: threading.Event) -> None:
    while not over.is_set():
        await asyncio.sleep(0.1)


def _without_lifespan(app: Any) -> Any:
    """The application as it runs already: it is not started once more."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    return asgi
