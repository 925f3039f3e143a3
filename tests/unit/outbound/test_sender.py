"""Posting to receivers that misbehave in every known way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from adapters.http.sender import HttpSender
from domain.webhooks.ports import PostResult

pytestmark = pytest.mark.asyncio
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
HEADERS = {"Content-Type": "application/json", "User-Agent": "Joinery/1", "webhook-id": "evt_1"}


@dataclass
class ScriptedReceiver:
    """Receiver of raw HTTP that calls `handler` for each request."""

    port: int = 0
    handler: Callable[[bytes, Writer], Awaitable[None]] | None = None
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Serve one connection."""
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                assert self.handler is not None
                await self.handler(self.requests[-1], writer)
        writer.close()

    @property
    def url(self) -> str:
        """The URL of the receiver."""
        return f"http://127.0.0.1:{self.port}/hooks?a=%20b"

    def respond_with(self, raw: bytes) -> None:
        """Send these bytes as the response to every request."""

        async def handle(_: bytes, writer: Writer) -> None:
            writer.write(raw)
            await writer.drain()

        self.handler = handle


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[ScriptedReceiver]:
    """Run a receiver."""
    scripted = ScriptedReceiver()
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    yield scripted
    server.close()


@pytest_asyncio.fixture
async def sender(receiver: ScriptedReceiver) -> AsyncIterator[HttpSender]:
    """Create a sender whose operator allows the receiver."""
    http_sender = HttpSender(allowed_hosts=frozenset({f"127.0.0.1:{receiver.port}"}))
    yield http_sender
    await http_sender.close()


async def send_post(sender: HttpSender, url: str, *, livemode: bool = False, seconds: float = 5.0) -> PostResult:
    """Send one POST request."""
    return await sender.post(url, b'{"a":1}', HEADERS, livemode=livemode, seconds=seconds)


async def test_a_request_has_a_result(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    receiver.respond_with(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello")
    assert await send_post(sender, receiver.url) == PostResult(None, 200, {"content-length": "5", "x-a": "b"}, b"hello")
    [request] = receiver.requests
    assert request.startswith(b"POST /hooks?a=%20b HTTP/1.1\r\n") and request.endswith(b'\r\n\r\n{"a":1}')
    names = {line.split(b":")[0].lower() for line in request.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]}
    assert names == {b"host", b"content-type", b"user-agent", b"webhook-id", b"content-length"}


async def test_connections_are_reused(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    receiver.respond_with(b"HTTP/1.1 204 No Content\r\n\r\n")
    for _ in range(5):
        assert (await send_post(sender, receiver.url)).status == 204
    assert receiver.connections == 1 and len(receiver.requests) == 5


async def test_a_closed_idle_connection_is_not_a_failure(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    async def handle(_: bytes, writer: Writer) -> None:
        if len(receiver.requests) != 2:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.close()

    receiver.handler = handle
    assert [(await send_post(sender, receiver.url)).status for _ in range(2)] == [200, 200]
    assert len(receiver.requests) == 3


async def test_a_receiver_that_closes_the_connection_is_a_failure(
    receiver: ScriptedReceiver, sender: HttpSender
) -> None:
    async def handle(_: bytes, writer: Writer) -> None:
        writer.close()

    receiver.handler = handle
    assert await send_post(sender, receiver.url) == PostResult("connect")


async def test_the_first_kilobyte_of_a_long_response_is_returned(
    receiver: ScriptedReceiver, sender: HttpSender
) -> None:
    receiver.respond_with(b"HTTP/1.1 500 No\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 200_000)
    sent = await send_post(sender, receiver.url)
    assert (sent.failure, sent.status, sent.body) == (None, 500, b"x" * 1024)


async def test_redirects_are_not_followed(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    receiver.respond_with(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n")
    assert (await send_post(sender, receiver.url)).status == 302
    assert len(receiver.requests) == 1


async def test_time_is_bounded_before_the_status(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    async def handle(_: bytes, writer: Writer) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 1000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

    receiver.handler = handle
    assert await send_post(sender, receiver.url, seconds=0.5) == PostResult("timeout")


async def test_a_slow_body_does_not_affect_the_status(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    async def handle(_: bytes, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nab")
        await writer.drain()
        await asyncio.sleep(5)

    receiver.handler = handle
    sent = await send_post(sender, receiver.url, seconds=0.5)
    assert (sent.failure, sent.status, sent.body) == (None, 200, b"ab")


async def test_an_invalid_response_is_a_failure(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    receiver.respond_with(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    assert await send_post(sender, receiver.url) == PostResult("connect")


async def test_unreachable_addresses_are_failures(receiver: ScriptedReceiver) -> None:
    restricted = HttpSender()
    for url in (receiver.url, "http://[::ffff:127.0.0.1]:8080/", "http://localhost:1/", "http://169.254.169.254/"):
        assert await send_post(restricted, url) == PostResult("refused_address"), url
    assert await send_post(restricted, "https://example.com:8443/", livemode=True) == PostResult("refused_address")
    assert await send_post(restricted, "ftp://example.com/") == PostResult("refused_address")
    assert (await send_post(restricted, "https://nowhere.invalid/", seconds=10)).failure in (
        "dns",
        "connect",
        "timeout",
    )
    await restricted.close()


async def test_a_receiver_that_does_not_answer_is_a_failure(receiver: ScriptedReceiver, sender: HttpSender) -> None:
    receiver.respond_with(b"not tls")
    assert await send_post(sender, receiver.url.replace("http:", "https:"), seconds=0.5) == PostResult("timeout")
    allowed = HttpSender(allowed_hosts=frozenset({"127.0.0.1:9"}))
    assert await send_post(allowed, "http://127.0.0.1:9/") == PostResult("connect")
    await allowed.close()
