"""Parent's side of the fork server: starts the server, forks children, and calls functions in children."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from adapters.processes.fork_server import COMMAND_STRUCT, ENDED, FORK, KILL, REPORT_STRUCT
from adapters.processes.protocol import (
    PREFIX_BYTES,
    Call,
    CallbackRequest,
    CallbackResult,
    CallSignature,
    Raised,
    Returned,
    decode,
    decode_for_parent,
    encode,
    frame_message,
)

_INHERITED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV")
"""Names of the environment variables that a child process inherits; none contains a secret or an address of a store."""


MIN_THREADED_BYTES = 256 << 10
"""Size of a message in bytes above which the message is decoded in a thread."""


class ResultTooLarge(Exception):
    """Error of a child's result that exceeds the size limit; `length` is the result's size in bytes."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length


class ForkedChild:
    """Child process of the fork server, as the parent sees it.

    Attributes:
        connection: The parent's end of the socket between parent and child.
        exit_status: Future of the child's exit status (negative for a signal); its result is None if the fork server has
            ended.
    """

    def __init__(self, server: "ForkServerProcess", number: int, connection: socket.socket) -> None:
        self._server, self._number = server, number
        self.connection = connection
        self.exit_status: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def kill(self) -> None:
        """Kill the child process and close the connection to it."""
        self._server.send_command(KILL, self._number)
        if self._streams is not None:
            self._streams[1].close()
        else:
            self.connection.close()

    async def call(
        self,
        name: str,
        signature: CallSignature,
        args: Sequence[Any],
        *,
        max_result_bytes: int,
        cpu_seconds: int = 0,
        callback: Callable[..., Awaitable[Any]] | None = None,
    ) -> Raised | msgspec.Raw:
        """Call a function in the child; return the encoded result, or the exception that the function raised.

        Args:
            name: Name of the function.
            signature: Types of the function's parameters and result.
            args: Arguments of the function, with None in place of a callback.
            max_result_bytes: Maximum size of the result in bytes.
            cpu_seconds: Seconds of CPU time that the child may use from now on; 0 leaves the limit unchanged.
            callback: Callback that the function receives as an argument.

        Raises:
            ResultTooLarge: If the result has more than `max_result_bytes` bytes.
            ConnectionError: If the child has ended.
            EOFError: If the child ends during the response.
            msgspec.DecodeError: If the child's response is not a valid message.
        """
        call = Call(name, msgspec.Raw(await asyncio.to_thread(encode, args)), cpu_seconds)
        reply = await self._exchange(call, max_result_bytes)
        while isinstance(reply, CallbackRequest):
            assert callback is not None
            result = await callback(*decode(reply.arguments, type=signature.callback_arguments))
            reply = await self._exchange(CallbackResult(msgspec.Raw(encode(result))), max_result_bytes)
        return reply if isinstance(reply, Raised) else reply.value

    async def _exchange(self, message: msgspec.Struct, max_bytes: int) -> CallbackRequest | Returned | Raised:
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self.connection, limit=1 << 20)
        reader, writer = self._streams
        writer.writelines(frame_message(message))
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(PREFIX_BYTES))
        if length > max_bytes:
            raise ResultTooLarge(length)
        body = await reader.readexactly(length)
        reply: CallbackRequest | Returned | Raised = decode_for_parent(body)
        return reply


class ForkServerProcess:
    """Fork server process, which the parent controls through a socket."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._forks: dict[int, ForkedChild] = {}
        self._last_number = 0
        self._reports = b""
        asyncio.get_running_loop().add_reader(control, self._read_reports)

    @classmethod
    async def start(cls, command: Sequence[str]) -> "ForkServerProcess":
        """Start a fork server by a command, with one end of the control socket as its standard input."""
        parent_end, server_end = socket.socketpair()
        with server_end:
            process = await asyncio.create_subprocess_exec(*command, stdin=server_end.fileno(), env=build_environment())
        parent_end.setblocking(False)
        return cls(process, parent_end)

    @property
    def is_alive(self) -> bool:
        """True if the fork server accepts commands."""
        return self._control.fileno() >= 0 and self._process.returncode is None

    def fork(self) -> ForkedChild:
        """Fork a child process. Raises ConnectionError if the fork server has ended."""
        parent_end, child_end = socket.socketpair()
        parent_end.setblocking(False)
        self._last_number += 1
        fork = self._forks[self._last_number] = ForkedChild(self, self._last_number, parent_end)
        with child_end:
            try:
                socket.send_fds(self._control, [COMMAND_STRUCT.pack(FORK, self._last_number)], [child_end.fileno()])
            except OSError as error:
                parent_end.close()
                self._mark_ended()
                raise ConnectionError("the fork server exited") from error
        return fork

    def send_command(self, kind: bytes, number: int) -> None:
        """Send a command about the child with this number; do nothing if the child or the fork server has ended.

        `kind` is the command, such as KILL.
        """
        if number in self._forks and self.is_alive:
            try:
                self._control.send(COMMAND_STRUCT.pack(kind, number))
            except OSError:
                self._mark_ended()

    async def close(self) -> None:
        """End the fork server and its children."""
        self._mark_ended()
        if self._process.returncode is None:
            try:
                async with asyncio.timeout(2):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    def _read_reports(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._mark_ended()
            return
        self._reports += data
        while len(self._reports) >= REPORT_STRUCT.size:
            report, self._reports = self._reports[: REPORT_STRUCT.size], self._reports[REPORT_STRUCT.size :]
            kind, number, status = REPORT_STRUCT.unpack(report)
            fork = self._forks.pop(number, None)
            if kind == ENDED and fork is not None and not fork.exit_status.done():
                fork.exit_status.set_result(status)

    def _mark_ended(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        for fork in self._forks.values():
            if not fork.exit_status.done():
                fork.exit_status.set_result(None)
        self._forks.clear()


class ForkServerHandle:
    """Handle of a fork server. The server is started on first use, and again after it has ended."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: ForkServerProcess | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> ForkServerProcess:
        """Start the fork server if it is not running; return it."""
        async with self._starting:
            if self._process is None or not self._process.is_alive:
                await self.close()
                self._process = await ForkServerProcess.start(self._command)
            return self._process

    async def fork(self) -> ForkedChild:
        """Fork a child process. Raises ConnectionError if the fork server ends meanwhile."""
        return (await self.start()).fork()

    async def close(self) -> None:
        """End the fork server and its children."""
        process, self._process = self._process, None
        if process is not None:
            await process.close()


def build_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for a child process, selected from `variables` or from those of this process."""
    variables = os.environ if variables is None else variables
    return {name: variables[name] for name in _INHERITED_VARIABLES if name in variables}
