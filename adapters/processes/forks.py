"""Parent's side of the fork server, which is started on first use and restarted if gone: children, and calls to them."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from adapters.processes.fork_server import ENDED, FORK, KILL, ORDER, REPORT
from adapters.processes.protocol import (
    LENGTH,
    Call,
    CallbackRequest,
    CallbackResult,
    Raised,
    Returned,
    Signature,
    decode,
    encode,
    framed,
    to_parent,
)

_HANDED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV")
"""Environment variables of a child: no secret, no address of a store."""


LARGE = 256 << 10
"""Bytes of a message above which it is encoded or decoded in a thread."""


class ResultTooLarge(Exception):
    """Result of a child above the size limit."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length


class Fork:
    """Child of the fork server, and the parent's end of its socket.

    Attributes:
        ended: Future of the exit status (negative for a signal), None if the server is gone.

    """

    def __init__(self, server: "ForkServerProcess", number: int, connection: socket.socket) -> None:
        self._server, self._number = server, number
        self.connection = connection
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def kill(self) -> None:
        """Kill the child."""
        self._server.order(KILL, self._number)
        if self._streams is not None:
            self._streams[1].close()
        else:
            self.connection.close()

    async def call(
        self,
        name: str,
        signature: Signature,
        args: Sequence[Any],
        *,
        most: int,
        cpu: int = 0,
        call_back: Callable[..., Awaitable[Any]] | None = None,
    ) -> Raised | msgspec.Raw:
        """Return the encoded result of the function of that name, or what it raised.

        Args:
            name: The function, as the child knows it.
            signature: Its types.
            args: Its arguments; None for a function.
            most: Bytes that are taken of the result.
            cpu: Seconds of CPU time that the child has from now on; 0 for those it has.
            call_back: Is called for the function among the arguments.

        Raises:
            ResultTooLarge: The result has more than `most` bytes.
            ConnectionError: The child ended.
            EOFError: The child ended within its answer.
            msgspec.DecodeError: What the child says is no message.

        """
        call = Call(name, msgspec.Raw(await asyncio.to_thread(encode, args)), cpu)
        reply = await self._exchanged(call, most)
        while isinstance(reply, CallbackRequest):
            assert call_back is not None
            answer = await call_back(*decode(reply.arguments, type=signature.callback_arguments))
            reply = await self._exchanged(CallbackResult(msgspec.Raw(encode(answer))), most)
        return reply if isinstance(reply, Raised) else reply.value

    async def _exchanged(self, message: msgspec.Struct, most: int) -> CallbackRequest | Returned | Raised:
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self.connection, limit=1 << 20)
        reader, writer = self._streams
        writer.writelines(framed(message))
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(LENGTH))
        if length > most:
            raise ResultTooLarge(length)
        body = await reader.readexactly(length)
        reply: CallbackRequest | Returned | Raised = to_parent(body)
        return reply


class ForkServerProcess:
    """Running fork server."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._forks: dict[int, Fork] = {}
        self._last = 0
        self._reports = b""
        asyncio.get_running_loop().add_reader(control, self._report)

    @classmethod
    async def start(cls, command: Sequence[str]) -> "ForkServerProcess":
        """Start the command with the socket as its standard input."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno(), env=environment())
        ours.setblocking(False)
        return cls(process, ours)

    @property
    def is_alive(self) -> bool:
        """Readiness to take orders."""
        return self._control.fileno() >= 0 and self._process.returncode is None

    def fork(self) -> Fork:
        """Return a new child. Raises ConnectionError if the server is gone."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._last += 1
        fork = self._forks[self._last] = Fork(self, self._last, ours)
        with theirs:
            try:
                socket.send_fds(self._control, [ORDER.pack(FORK, self._last)], [theirs.fileno()])
            except OSError as error:
                ours.close()
                self._gone()
                raise ConnectionError("the fork server is gone") from error
        return fork

    def order(self, kind: bytes, number: int) -> None:
        """Send an order about a child, unless the child or the server is gone."""
        if number in self._forks and self.is_alive:
            try:
                self._control.send(ORDER.pack(kind, number))
            except OSError:
                self._gone()

    async def close(self) -> None:
        """End the server and its children."""
        self._gone()
        if self._process.returncode is None:
            try:
                async with asyncio.timeout(2):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    def _report(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        self._reports += data
        while len(self._reports) >= REPORT.size:
            report, self._reports = self._reports[: REPORT.size], self._reports[REPORT.size :]
            kind, number, status = REPORT.unpack(report)
            fork = self._forks.pop(number, None)
            if kind == ENDED and fork is not None and not fork.ended.done():
                fork.ended.set_result(status)

    def _gone(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        for fork in self._forks.values():
            if not fork.ended.done():
                fork.ended.set_result(None)
        self._forks.clear()


class ForkServerHandle:
    """Fork server that is started on first use, and restarted after it has ended."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: ForkServerProcess | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> ForkServerProcess:
        """Return the running server, started if necessary."""
        async with self._starting:
            if self._process is None or not self._process.is_alive:
                await self.close()
                self._process = await ForkServerProcess.start(self._command)
            return self._process

    async def fork(self) -> Fork:
        """Return a new child. Raises ConnectionError if the server exits meanwhile."""
        return (await self.start()).fork()

    async def close(self) -> None:
        """End the server and its children."""
        process, self._process = self._process, None
        if process is not None:
            await process.close()


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables that a child receives."""
    given = os.environ if given is None else given
    return {name: given[name] for name in _HANDED_ON if name in given}
