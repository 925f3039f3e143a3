"""The parent's side: the fork server, started on first use and again when it is gone, its children, and calls to them."""

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
"""What of the environment a child gets: no secret, no address of a store."""


LARGE = 256 << 10
"""Bytes of a message that is encoded or decoded beside the event loop."""


class ResultTooLarge(Exception):
    """A child announces more bytes than are taken."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length


class Fork:
    """A child of the fork server, and this side of its socket.

    Attributes:
        ended: Becomes its exit status (negative for a signal), None when the server is gone.

    """

    def __init__(self, server: "ForkServerProcess", number: int, connection: socket.socket) -> None:
        self._server, self._number = server, number
        self.connection = connection
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def kill(self) -> None:
        """End it, whatever it does."""
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
    """One running fork server."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._forks: dict[int, Fork] = {}
        self._last = 0
        self._reports = b""
        asyncio.get_running_loop().add_reader(control, self._report)

    @classmethod
    async def start(cls, command: Sequence[str]) -> "ForkServerProcess":
        """Start the command; its standard input is the socket."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno(), env=environment())
        ours.setblocking(False)
        return cls(process, ours)

    @property
    def is_alive(self) -> bool:
        """Whether it takes orders."""
        return self._control.fileno() >= 0 and self._process.returncode is None

    def fork(self) -> Fork:
        """A fresh child. Raises ConnectionError when the server is gone."""
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

    def order(self, what: bytes, number: int) -> None:
        """Tell the server something about a child, if it is there to be told."""
        if number in self._forks and self.is_alive:
            try:
                self._control.send(ORDER.pack(what, number))
            except OSError:
                self._gone()

    async def close(self) -> None:
        """End it and its children."""
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
            got = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if not got:
            self._gone()
            return
        self._reports += got
        while len(self._reports) >= REPORT.size:
            report, self._reports = self._reports[: REPORT.size], self._reports[REPORT.size :]
            what, number, status = REPORT.unpack(report)
            fork = self._forks.pop(number, None)
            if what == ENDED and fork is not None and not fork.ended.done():
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
    """A fork server that is started on first use, and again after it has ended."""

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
    """What of this process's environment a child gets."""
    given = os.environ if given is None else given
    return {name: given[name] for name in _HANDED_ON if name in given}
