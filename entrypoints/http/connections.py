"""Connections on Hypercorn's classes, with limits that its settings lack: protocols, number, slow readers.

Only HTTP/1.1 is served unless HTTP/2 is enabled: a protocol change (`Upgrade: h2c`, RFC 7540 §3.2) would open a
tunnel through a proxy, which then sees no further requests.
"""

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import h11
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr, wrap_app

LOG = logging.getLogger("joinery.http")
SEND_SECONDS = 30.0
"""Seconds that a chunk may take to send, in addition to the time of its bytes at LEAST; then the connection is aborted."""
LEAST = 4096
"""Minimum bytes per second that a client must read."""
SMALL = 65_536
"""Bytes that are sent at once however slow the client is: asyncio buffers this many."""
MOST_HEADERS = 100
"""Maximum header fields of a request."""
FIRST_REQUEST_SECONDS = 0.25
"""Seconds that a client that connected just before the listener closed has for its request."""
VERSIONS = frozenset({b"1.0", b"1.1"})


class _Refusal(Exception):
    """A request with an ambiguous end, or of another protocol."""

    def __init__(self, status: int) -> None:
        self.status = status


class Http1(H11Protocol):
    """HTTP/1.1 only: Upgrade is ignored (RFC 9110 §7.8), ambiguous lengths are rejected (RFC 9112 §6.3)."""

    _refused = False
    _upgrading = False

    async def handle(self, event: Event) -> None:
        """Process an incoming event; after a rejection, ignore all further ones."""
        if self._refused:
            return
        try:
            await super().handle(event)
        except _Refusal as refusal:
            self._refused = True
            await self._send_error_response(refusal.status)
            await self.send(Closed())

    async def _check_protocol(self, event: h11.Request) -> None:
        if len(event.headers) > MOST_HEADERS:
            raise _Refusal(431)
        names = {name for name, _ in event.headers}
        if event.http_version not in VERSIONS:
            raise _Refusal(505)
        if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
            raise _Refusal(400)
        self._upgrading = b"upgrade" in names

    async def _create_stream(self, request: h11.Request) -> None:
        if self._upgrading:
            headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
            request = h11.Request(
                method=request.method, headers=headers, target=request.target, http_version=request.http_version
            )
        await super()._create_stream(request)


class Connection(TCPServer):
    """Connection of one client."""

    def __init__(self, *args: Any, http2: bool) -> None:
        super().__init__(*args)
        self._http2 = http2

    async def run(self) -> None:
        """Serve the connection until it ends."""
        socket = self.writer.get_extra_info("socket")
        try:
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            async with TaskGroup(self.loop) as group:
                self._task_group = group
                state = ConnectionState(self.state)
                parts = (self.app, self.config, self.context, group, state, False, client, server, self.protocol_send)
                self.protocol = ProtocolWrapper(*parts)
                if not self._http2:
                    self.protocol.protocol = Http1(*parts)
                await self.protocol.initiate()
                await self.idle_task.restart(group, self._idle_timeout)
                await self._read_data()
                await self.idle_task.stop()
        except OSError:
            return
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Send data; abort the connection of a client that reads it too slowly."""
        if isinstance(event, RawData) and len(event.data) + self.writer.transport.get_write_buffer_size() > SMALL:
            await self._send_within_limit(super().protocol_send(event), len(event.data))
        else:
            await super().protocol_send(event)

    async def _close(self) -> None:
        await self._send_within_limit(super()._close(), self.writer.transport.get_write_buffer_size())

    async def _send_within_limit(self, sending: Awaitable[None], size: int) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS + size / LEAST):
                await sending
        except TimeoutError:
            self.writer.transport.abort()


async def serve(
    app: Any, config: Config, stopped: Callable[[], Awaitable[None]], *, http2: bool = False, most: int = sys.maxsize
) -> None:
    """Serve at most `most` connections until `stopped` returns; requests in progress are completed first."""
    loop, state = asyncio.get_running_loop(), LifespanState({})
    wrapped, context = wrap_app(app, config.wsgi_max_body_size, "asgi"), WorkerContext(None)
    connections: set[asyncio.Task[None]] = set()

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(connections) >= most:
            writer.transport.abort()
            return
        connections.add(task)
        task.add_done_callback(connections.discard)
        await Connection(wrapped, loop, config, context, state, reader, writer, http2=http2)

    lifespan = Lifespan(wrapped, config, loop, state)
    lifespan_task = asyncio.create_task(lifespan.handle_lifespan(), name="lifespan")
    await lifespan.wait_for_startup()
    if lifespan_task.done():
        lifespan_task.result()
    servers = [
        await asyncio.start_server(handle_connection, sock=sock, backlog=config.backlog)
        for sock in config.create_sockets().insecure_sockets
    ]
    for server in servers:
        for sock in server.sockets:
            LOG.info("listening", extra={"address": str(sock.getsockname()), "most_connections": most})
    try:
        await stopped()
    finally:
        for server in servers:
            server.close()
        if connections:
            await asyncio.sleep(FIRST_REQUEST_SECONDS)
        await context.terminated.set()  # ends idle connections
        if connections:
            await asyncio.wait(connections, timeout=config.graceful_timeout)
        await lifespan.wait_for_shutdown()
        lifespan_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await lifespan_task


BACKLOG = 1024


def listening(host: str, port: int) -> socket.socket:
    """Create the listening socket; the kernel drops clients that read nothing for SEND_SECONDS (RFC 5482)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_SECONDS * 1000))
    return listener


def hypercorn_config(host: str, port: int) -> Config:
    """Return Hypercorn's configuration, without access log: the pipeline logs requests."""
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
