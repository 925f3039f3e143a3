"""Function calls in forked processes, one process per call, so that hostile input cannot affect other calls."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from adapters.processes.call_messages import (
    Call,
    CallbackRequest,
    CallbackResult,
    Raised,
    Returned,
    Signature,
    decode,
    to_parent,
)
from adapters.processes.forks import Fork, ForkServerHandle
from adapters.processes.messages import LENGTH, encode, framed
from ports.parsing import ParserEnded, ParserFailed

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of one call: seconds of CPU time, elapsed seconds, and bytes of the result."""

    cpu: int = 10
    wall: float = 30.0
    answer: int = 128 << 20


class ProcessCalls:
    """ParserRunner (ports/parsing.py) that makes at most `most` calls at a time; further calls wait.

    `command` runs the fork server, which has the functions by `name_of` and limits each child's memory. Exceptions of the
    types `raises` are raised unchanged; any other exception of the function becomes ParserEnded.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        most: int,
        limits: CallLimits | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> None:
        self._server, self._limits = ForkServerHandle(command), limits or CallLimits()
        self._raises: Mapping[str, type[Exception]] = {one.__name__: one for one in raises}
        self._room = asyncio.Semaphore(most)

    async def __call__(self, function: Callable[..., R], /, *args: Any) -> R:
        result: R = await self.call(name_of(function), _signature(function), args)
        return result

    async def call(self, name: str, signature: Signature, args: Sequence[Any]) -> Any:
        """Call the function of that name. Raises ParserEnded, ParserFailed, and what the function may raise."""
        sent, callback = list(args), _no_callback
        if signature.callback is not None:
            callback, sent[signature.callback] = sent[signature.callback], None
        async with self._room:
            call = Call(name, self._limits.cpu, msgspec.Raw(await asyncio.to_thread(encode, sent)))
            try:
                fork = await self._server.fork()
            except ConnectionError as error:
                raise ParserFailed(str(error)) from error
            try:
                async with asyncio.timeout(self._limits.wall):
                    return await self._result(fork, call, signature, callback)
            except TimeoutError:
                raise ParserEnded("it takes too long") from None
            finally:
                fork.kill()

    async def close(self) -> None:
        """End every process."""
        await self._server.close()

    async def _result(self, fork: Fork, call: Call, signature: Signature, callback: Callable[..., Any]) -> Any:
        streams = await asyncio.open_connection(sock=fork.connection, limit=1 << 20)
        try:
            reply = await self._exchanged(*streams, call)
            while isinstance(reply, CallbackRequest):
                asked = decode(reply.arguments, type=signature.callback_arguments)
                answer = await asyncio.to_thread(callback, *asked)
                reply = await self._exchanged(*streams, CallbackResult(msgspec.Raw(encode(answer))))
            if isinstance(reply, Raised):
                raise self._error(reply)
            return await asyncio.to_thread(decode, reply.value, type=signature.result)
        except (ConnectionError, asyncio.IncompleteReadError):
            if await fork.ended is None:
                raise ParserFailed("the fork server exited, and its children with it") from None
            raise ParserEnded("it takes too much time or memory") from None
        except msgspec.DecodeError:
            raise ParserEnded("its result cannot be decoded") from None
        finally:
            streams[1].close()

    async def _exchanged(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: msgspec.Struct
    ) -> CallbackRequest | Returned | Raised:
        writer.writelines(framed(message))
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(LENGTH))
        if length > self._limits.answer:
            raise ParserEnded("its result is too large")
        reply: CallbackRequest | Returned | Raised = to_parent(await reader.readexactly(length))
        return reply

    def _error(self, raised: Raised) -> Exception:
        if raised.kind in self._raises:
            return self._raises[raised.kind](*raised.arguments)
        if raised.kind == "OSError":
            return ParserFailed("a system call failed")
        if raised.kind == "MemoryError":
            return ParserEnded("it takes too much memory")
        return ParserEnded(f"it causes {raised.kind}")


def name_of(function: Callable[..., Any]) -> str:
    """Return the name by which both sides identify a function."""
    return f"{function.__module__}.{function.__qualname__}"


@cache
def _signature(function: Callable[..., Any]) -> Signature:
    return Signature.of(function)


def _no_callback(*_: object) -> None:
    """Replace the callback of a function without one."""
