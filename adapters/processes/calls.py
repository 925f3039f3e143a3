"""Calls of functions in forked processes, one process a call, so that hostile input harms no other call."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from adapters.processes.call_messages import Answer, Ask, Call, Raised, Returned, Signature, decode, to_parent
from adapters.processes.forks import Fork, ForkServerHandle
from adapters.processes.messages import LENGTH, encode, framed
from ports.parsing import ParserEnded, ParserFailed

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Seconds of processor time, seconds of any time, and bytes of an answer that one call may take."""

    cpu: int = 10
    wall: float = 30.0
    answer: int = 128 << 20


class ProcessCalls:
    """ports.parsing.ParserRunner: at most `most` calls at a time, the others wait.

    `command` runs the fork server, which knows the functions by `name_of` and bounds each child's memory. Exceptions of
    `raises` are raised as they are; any other of the function is a ParserEnded.
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
            while isinstance(reply, Ask):
                asked = decode(reply.arguments, type=signature.asked)
                answer = await asyncio.to_thread(callback, *asked)
                reply = await self._exchanged(*streams, Answer(msgspec.Raw(encode(answer))))
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
    ) -> Ask | Returned | Raised:
        writer.writelines(framed(message))
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(LENGTH))
        if length > self._limits.answer:
            raise ParserEnded("its result is too large")
        reply: Ask | Returned | Raised = to_parent(await reader.readexactly(length))
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
    """Return the name by which both sides know a function."""
    return f"{function.__module__}.{function.__qualname__}"


@cache
def _signature(function: Callable[..., Any]) -> Signature:
    return Signature.of(function)


def _no_callback(*_: object) -> None:
    """Stand in for a callback of a function that takes none."""
