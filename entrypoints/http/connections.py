"""HTTP connections based on Hypercorn, with limits for protocols, the number of connections, and the time of transfers.

Only HTTP/1.1 is served unless HTTP/2 is enabled. Upgrades (`Upgrade: h2c`, RFC 7540 §3.2) are ignored, because an
upgraded connection is a tunnel through a proxy, which then sees no further requests.
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
MAX_SEND_SECONDS = 30.0
"""Seconds that sending a chunk may take beyond the time its bytes need at MIN_READ_RATE; then the connection is aborted."""
MIN_READ_RATE = 4096
"""Minimum bytes per second that a client must read."""
SEND_BUFFER_BYTES = 65_536
"""Bytes that asyncio buffers, which are therefore sent without a time limit."""
MAX_HEADERS = 100
"""Maximum number of header fields of a request."""
FIRST_REQUEST_SECONDS = 0.25
"""Seconds within which a client that connected just before the listener closed must send its request."""
HTTP1_VERSIONS = frozenset({b"1.0", b"1.1"})
"""Supported versions of HTTP/1."""


class _RejectedRequest(Exception):
    """The request must be rejected with `status` and the connection closed, because the request is invalid."""

    def __init__(self, status: int) -> None:
        self.status = status


class Http1(H11Protocol):
    """HTTP/1.1 protocol that ignores Upgrade headers (RFC 9110 §7.8) and rejects ambiguous lengths (RFC 9112 §6.3)."""

    _is_rejected = False
    _has_upgrade_header = False

    async def handle(self, event: Event) -> None:
        """Process an incoming event. After a rejected request, all events are ignored."""
        if self._is_rejected:
            return
        try:
            await super().handle(event)
        except _RejectedRequest as refusal:
            self._is_rejected = True
            await self._send_error_response(refusal.status)
            await self.send(Closed())

    async def _check_protocol(self, event: h11.Request) -> None:
        if len(event.headers) > MAX_HEADERS:
            raise _RejectedRequest(431)
        names = {name for name, _ in event.headers}
        if event.http_version not in HTTP1_VERSIONS:
            raise _RejectedRequest(505)
        if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
            raise _RejectedRequest(400)
        self._has_upgrade_header = b"upgrade" in names

    async def _create_stream(self, request: h11.Request) -> None:
        if self._has_upgrade_header:
            headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
            request = h11.Request(
                method=request.method, headers=headers, target=request.target, http_version=request.http_version
            )
        await super()._create_stream(request)


class ClientConnection(TCPServer):
    """Connection of one client, which is aborted if the client reads too slowly."""

    def __init__(self, *args: Any, http2: bool) -> None:
        super().__init__(*args)
        self._http2 = http2

    async def run(self) -> None:
        """Serve the connection until it ends."""
        connected_socket = self.writer.get_extra_info("socket")
        try:
            client = parse_socket_addr(connected_socket.family, connected_socket.getpeername())
            server = parse_socket_addr(connected_socket.family, connected_socket.getsockname())
            async with TaskGroup(self.loop) as group:
                self._task_group = group
                state = ConnectionState(self.state)
                arguments = (
                    self.app,
                    self.config,
                    self.context,
                    group,
                    state,
                    False,
                    client,
                    server,
                    self.protocol_send,
                )
                self.protocol = ProtocolWrapper(*arguments)
                if not self._http2:
                    self.protocol.protocol = Http1(*arguments)
                await self.protocol.initiate()
                await self.idle_task.restart(group, self._idle_timeout)
                await self._read_data()
                await self.idle_task.stop()
        except OSError:
            return
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Send data; abort the connection if the client reads too slowly."""
        if (
            isinstance(event, RawData)
            and len(event.data) + self.writer.transport.get_write_buffer_size() > SEND_BUFFER_BYTES
        ):
            await self._send_within_limit(super().protocol_send(event), len(event.data))
        else:
            await super().protocol_send(event)

    async def _close(self) -> None:
        await self._send_within_limit(super()._close(), self.writer.transport.get_write_buffer_size())

    async def _send_within_limit(self, send: Awaitable[None], size: int) -> None:
        try:
            async with asyncio.timeout(MAX_SEND_SECONDS + size / MIN_READ_RATE):
                await send
        except TimeoutError:
            self.writer.transport.abort()


async def serve(
    app: Any,
    config: Config,
    stopped: Callable[[], Awaitable[None]],
    *,
    http2: bool = False,
    max_connections: int = sys.maxsize,
) -> None:
    """Serve the ASGI application `app` until `stopped` returns, then complete the requests in progress.

    Connections beyond `max_connections` are aborted.
    """
    loop, state = asyncio.get_running_loop(), LifespanState({})
    asgi_app, context = wrap_app(app, config.wsgi_max_body_size, "asgi"), WorkerContext(None)
    connections: set[asyncio.Task[None]] = set()

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(connections) >= max_connections:
            writer.transport.abort()
            return
        connections.add(task)
        task.add_done_callback(connections.discard)
        await ClientConnection(asgi_app, loop, config, context, state, reader, writer, http2=http2)

    lifespan = Lifespan(asgi_app, config, loop, state)
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
            LOG.info("listening", extra={"address": str(sock.getsockname()), "most_connections": max_connections})
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
"""Number of connections that the kernel holds until they are accepted."""


def create_listener(host: str, port: int) -> socket.socket:
    """Create the listening socket.

    The kernel closes connections of clients that read nothing for `MAX_SEND_SECONDS` (RFC 5482).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(MAX_SEND_SECONDS * 1000))
    return listener


def create_hypercorn_config(host: str, port: int) -> Config:
    """Create the listening socket, and return Hypercorn's configuration for it, without an access log."""
    # The pipeline logs requests.
    config = Config()
    config.bind = [f"fd://{create_listener(host, port).detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.graceful_timeout = 10
    config.h11_max_incomplete_size = 64 * 1024
    config.include_server_header = False
    config.backlog = BACKLOG
    config.keep_alive_max_requests = 100_000
    return config
