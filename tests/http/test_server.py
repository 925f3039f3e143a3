"""The application on the real server, over a real socket: what only bytes on the wire can show."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.http import toys
from tests.http.fakes import World, running

pytestmark = pytest.mark.asyncio


class Wire:
    """One connection at a time to a served world."""

    def __init__(self, world: World, port: int, secret: str) -> None:
        self.world, self.port, self.secret = world, port, secret

    async def send(self, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """Send a request given by its first lines; answers status, headers and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = f"{head}\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {self.secret}\r\n\r\n"
        writer.write(lines.encode() + body)
        raw = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        top, _, rest = raw.partition(b"\r\n\r\n")
        first, *named = top.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in named)}
        return int(first.split()[1]), headers, rest


@pytest_asyncio.fixture
async def wire() -> AsyncIterator[Wire]:
    """A world behind Hypercorn."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, stop = Config(), asyncio.Event()
    config.bind, config.accesslog, config.errorlog = [f"127.0.0.1:{port}"], None, None
    async with running() as world:
        serving: Any = serve(world.app, config, shutdown_trigger=stop.wait)
        task = asyncio.create_task(serving)
        await asyncio.sleep(0.2)
        yield Wire(world, port, (await world.key(world.orgs["Fjord"]))[1])
        stop.set()
        await task


async def test_reads(wire: Wire) -> None:
    status, headers, body = await wire.send("GET /v1/things?limit=2 HTTP/1.1")
    assert (status, len(json.loads(body)["data"])) == (200, 2)
    status, headers, body = await wire.send("HEAD /v1/things?limit=2 HTTP/1.1")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 100
    held = headers["etag"]
    status, _, body = await wire.send(f"GET /v1/things?limit=2 HTTP/1.1\r\nIf-None-Match: {held}")
    assert (status, body) == (304, b"")
    assert (await wire.send("HEAD /docs HTTP/1.1"))[2] == b""


async def test_writes(wire: Wire) -> None:
    body = b'{"name": "oak"}'
    head = f"POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {len(body)}"
    status, headers, answer = await wire.send(head, body)
    assert (status, json.loads(answer)["name"]) == (201, "oak")
    assert headers["content-type"] == "application/json"
    assert (await wire.send(head, body))[1]["idempotent-replayed"] == "true"
    thing = toys.keep(wire.world.orgs["Fjord"].id)
    status, headers, answer = await wire.send(f"DELETE /v1/things/{thing.id} HTTP/1.1")
    assert (status, answer) == (204, b"")
    assert "content-type" not in headers


async def test_chunked_bodies(wire: Wire) -> None:
    head = (
        "POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked"
    )
    whole = b'f\r\n{"name": "oak"}\r\n0\r\n\r\n'
    assert (await wire.send(head, whole))[0] == 201
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    status, _, answer = await wire.send(head, chunk * 40 + b"0\r\n\r\n")
    assert (status, json.loads(answer)["code"]) == (413, "payload_too_large")


async def test_an_announced_size_is_refused_unread(wire: Wire) -> None:
    head = (
        "POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 99999999"
    )
    assert (await wire.send(head))[0] == 413


async def test_odd_paths(wire: Wire) -> None:
    for target, status in (
        ("/v1/things/%2e%2e/x", 404),
        ("/v1/things/src_%C3%28aaaaaaaaaaaaaaaaaaaa", 404),
        ("/v1/things/special%2Fx", 404),
        ("/v1/things?colour=%ff", 400),
        ("/v1/things?" + "x" * 9000, 400),
    ):
        assert (await wire.send(f"GET {target} HTTP/1.1"))[0] == status, target
