"""Application on the real server and a real socket: behaviour that only raw bytes show."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from hypercorn.config import Config

from entrypoints.http import connections
from entrypoints.http.connections import serve
from tests.http import example_area
from tests.http.application import ApplicationHarness, run_application

pytestmark = pytest.mark.asyncio


class ServerConnection:
    """Client of a served application, with one connection per request."""

    def __init__(self, application: ApplicationHarness, port: int, secret: str, stop: asyncio.Event) -> None:
        self.application, self.port, self.secret, self.stopping = application, port, secret, stop

    async def send(self, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """Send a request that starts with these lines; return status, headers and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = f"{head}\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {self.secret}\r\n\r\n"
        writer.write(lines.encode() + body)
        raw = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        top, _, rest = raw.partition(b"\r\n\r\n")
        first, *named = top.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in named)}
        return int(first.split()[1]), headers, rest


@asynccontextmanager
async def serve_application(**settings: Any) -> AsyncIterator[ServerConnection]:
    """Run the application behind the server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, stop = Config(), asyncio.Event()
    config.bind, config.accesslog, config.errorlog = [f"127.0.0.1:{port}"], None, None
    async with run_application() as application:
        task = asyncio.create_task(serve(application.app, config, stop.wait, **settings))
        await asyncio.sleep(0.2)
        yield ServerConnection(application, port, (await application.create_key(application.orgs["Fjord"]))[1], stop)
        stop.set()
        await task


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[ServerConnection]:
    """Run the application behind the server."""
    async with serve_application() as connection:
        yield connection


async def exchange_bytes(port: int, sent: bytes, within: float = 3.0) -> bytes:
    """Send the bytes; return the response until the server closes the connection or is silent for `within` seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    got = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while True:
            async with asyncio.timeout(within):
                piece = await reader.read(65536)
            if not piece:
                got += b"<end>"
                break
            got += piece
    writer.close()
    return got


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize("fields", [UPGRADE, UPGRADE.replace(b"h2c", b"H2C"), WEBSOCKET, b"Upgrade: h2c\r\n"])
@pytest.mark.parametrize("path", [b"/v1/things", b"/healthz", b"/docs"])
async def test_no_request_changes_the_protocol(connection: ServerConnection, fields: bytes, path: bytes) -> None:
    head = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n"
    plain = await exchange_bytes(connection.port, head + b"Connection: close\r\n\r\n")
    got = await exchange_bytes(connection.port, head + fields + b"\r\n" + head + b"Connection: close\r\n\r\n")
    assert got.startswith(plain[:12]) and b" 101 " not in got and b"\0" not in got[:200]
    assert got.count(b"HTTP/1.1 " + plain[9:12]) == 2, "the next request on the connection is answered as HTTP/1.1"


async def test_no_request_has_hundreds_of_headers(connection: ServerConnection) -> None:
    many = b"".join(b"X-%d: 1\r\n" % number for number in range(200))
    assert (
        await exchange_bytes(connection.port, b"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + many + b"\r\n")
    ).startswith(b"HTTP/1.1 431 ")


async def test_http2_is_used_only_when_requested(connection: ServerConnection) -> None:
    assert (await exchange_bytes(connection.port, PREFACE)).startswith(b"HTTP/1.1 505 ")
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    async with serve_application(http2=True) as willing:
        assert (await exchange_bytes(willing.port, head + UPGRADE + b"\r\n", 0.5)).startswith(b"HTTP/1.1 101 ")
        assert (await exchange_bytes(willing.port, PREFACE, 0.5))[3:4] == b"\4"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 30\r\n", 400),
        (b"Content-Length: 4\r\nContent-Length: 5\r\n", 400),
        (b"Content-Length: 4, 5\r\n", 400),
        (b"Content-Length: +4\r\n", 400),
        (b"Content-Length: 0x4\r\n", 400),
        (b"Content-Length : 4\r\n", 400),
        (b"Transfer-Encoding : chunked\r\n", 400),
        (b"Transfer-Encoding: xchunked\r\n", 501),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"Host: y\r\n", 400),
        (b"X-A: a\0b\r\n", 400),
        (b"X-A: a\rContent-Length: 4\r\n", 400),
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"POST"])
async def test_ambiguous_body_lengths_are_refused(
    connection: ServerConnection, method: bytes, fields: bytes, status: int
) -> None:
    hidden = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    got = await exchange_bytes(
        connection.port, method + b" /v1/things HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n0\r\n\r\n" + hidden
    )
    assert got.startswith(b"HTTP/1.1 %d " % status), got
    assert got.count(b"HTTP/1.1") == 1 and got.endswith(b"<end>"), "what follows is not taken for a request"


async def test_chunks_in_http_1_0(connection: ServerConnection) -> None:
    got = await exchange_bytes(
        connection.port, b"POST /v1/things HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert got.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"POST", b"PATCH", b"DELETE", b"OPTIONS"])
@pytest.mark.parametrize("path", [b"/v1/things", b"/objects/x", b"/healthz", b"/docs", b"/nothing"])
async def test_an_unread_body_leaves_nothing_behind(connection: ServerConnection, method: bytes, path: bytes) -> None:
    """The sender receives the response, the connection closes, and no task remains."""
    before = len(asyncio.all_tasks())
    size = 3 << 20
    for _ in range(2):
        head = method + b" " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
        got = await exchange_bytes(connection.port, head.replace(b"Host", b"Connection: close\r\nHost") + b"x" * size)
        assert got.startswith(b"HTTP/1.1 ") and got.endswith(b"<end>"), got
        got = await exchange_bytes(connection.port, head + b"x" * (size // 2))
        assert got.startswith(b"HTTP/1.1 ") and got.endswith(b"<end>"), got
    async with asyncio.timeout(30):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.01)


async def test_connections_are_limited() -> None:
    async with serve_application(max_connections=3) as connection:
        ends = [await asyncio.open_connection("127.0.0.1", connection.port) for _ in range(3)]
        assert await exchange_bytes(connection.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") in (b"", b"<end>")
        ends[0][1].close()
        await asyncio.sleep(0.1)
        assert (await connection.send("GET /healthz HTTP/1.1"))[0] == 200


async def test_a_client_connected_before_shutdown_gets_a_response(connection: ServerConnection) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", connection.port)
    await asyncio.sleep(0.05)
    connection.stopping.set()
    await asyncio.sleep(0.05)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(5):
        assert (await reader.read()).startswith(b"HTTP/1.1 200"), "and the server ends the connection"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", connection.port)
    writer.close()


async def test_a_slow_reader_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_SEND_SECONDS", 0.3)
    monkeypatch.setattr(connections, "MIN_READ_RATE", 1 << 24)
    async with serve_application() as connection:
        before = len(asyncio.all_tasks())
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", connection.port))
            slow.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
            await asyncio.sleep(0.1)
            assert len(asyncio.all_tasks()) > before
            async with asyncio.timeout(20):
                while len(asyncio.all_tasks()) > before:
                    await asyncio.sleep(0.1)
                    with contextlib.suppress(OSError):
                        slow.recv(1, socket.MSG_DONTWAIT)


async def test_reads(connection: ServerConnection) -> None:
    status, headers, body = await connection.send("GET /v1/things?limit=2 HTTP/1.1")
    assert (status, len(json.loads(body)["data"])) == (200, 2)
    status, headers, body = await connection.send("HEAD /v1/things?limit=2 HTTP/1.1")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 100
    held = headers["etag"]
    status, _, body = await connection.send(f"GET /v1/things?limit=2 HTTP/1.1\r\nIf-None-Match: {held}")
    assert (status, body) == (304, b"")
    assert (await connection.send("HEAD /docs HTTP/1.1"))[2] == b""


async def test_writes(connection: ServerConnection) -> None:
    body = b'{"name": "oak"}'
    head = f"POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {len(body)}"
    status, headers, response = await connection.send(head, body)
    assert (status, json.loads(response)["name"]) == (201, "oak")
    assert headers["content-type"] == "application/json"
    assert (await connection.send(head, body))[1]["idempotent-replayed"] == "true"
    thing = example_area.add_thing(connection.application.orgs["Fjord"].id)
    status, headers, response = await connection.send(f"DELETE /v1/things/{thing.id} HTTP/1.1")
    assert (status, response) == (204, b"")
    assert "content-type" not in headers


async def test_chunked_bodies(connection: ServerConnection) -> None:
    head = (
        "POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked"
    )
    whole = b'f\r\n{"name": "oak"}\r\n0\r\n\r\n'
    assert (await connection.send(head, whole))[0] == 201
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    status, _, response = await connection.send(head, chunk * 40 + b"0\r\n\r\n")
    assert (status, json.loads(response)["code"]) == (413, "payload_too_large")


async def test_an_announced_size_is_refused_unread(connection: ServerConnection) -> None:
    head = (
        "POST /v1/things HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 99999999"
    )
    assert (await connection.send(head))[0] == 413


async def test_unusual_paths_are_handled(connection: ServerConnection) -> None:
    for target, status in (
        ("/v1/things/%2e%2e/x", 404),
        ("/v1/things/src_%C3%28aaaaaaaaaaaaaaaaaaaa", 404),
        ("/v1/things/special%2Fx", 404),
        ("/v1/things?colour=%ff", 400),
        ("/v1/things?" + "x" * 9000, 400),
    ):
        assert (await connection.send(f"GET {target} HTTP/1.1"))[0] == status, target
