"""Function calls in forked processes, one process per call, so that hostile input cannot affect other calls."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adapters.processes.forks import Fork, ForkServerHandle, ResultTooLarge
from adapters.processes.protocol import Raised, Signature, decode
from domain.media.ports import ConvertedFile, ConvertedImage, ImageRefused
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
    types `raises`, whose arguments are texts, are raised unchanged; any other exception of the function becomes ParserEnded.
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
        async with self._room:
            try:
                fork = await self._server.fork()
            except ConnectionError as error:
                raise ParserFailed(str(error)) from error
            try:
                async with asyncio.timeout(self._limits.wall):
                    return await self._result(fork, name, signature, list(args))
            except TimeoutError:
                raise ParserEnded("it takes too long") from None
            finally:
                fork.kill()

    async def close(self) -> None:
        """End every process."""
        await self._server.close()

    async def _result(self, fork: Fork, name: str, signature: Signature, args: list[Any]) -> Any:
        limits, callback = self._limits, None
        if signature.callback is not None:
            callback, args[signature.callback] = args[signature.callback], None

        async def call_back(*asked: Any) -> Any:
            return await asyncio.to_thread(callback, *asked)  # type: ignore[arg-type]  # asked of a function with one

        try:
            reply = await fork.call(name, signature, args, most=limits.answer, cpu=limits.cpu, call_back=call_back)
            if isinstance(reply, Raised):
                raise self._error(reply)
            return await asyncio.to_thread(decode, reply, type=signature.result)
        except ResultTooLarge:
            raise ParserEnded("its result is too large") from None
        except (ConnectionError, EOFError):
            if await fork.ended is None:
                raise ParserFailed("the fork server exited, and its children with it") from None
            raise ParserEnded("it takes too much time or memory") from None
        except msgspec.DecodeError:
            raise ParserEnded("its result cannot be decoded") from None

    def _error(self, raised: Raised) -> Exception:
        if raised.kind in self._raises:
            return self._raises[raised.kind](*decode(raised.arguments, type=tuple[str, ...]))
        if raised.kind == "OSError":
            return ParserFailed("a system call failed")
        if raised.kind == "MemoryError":
            return ParserEnded("it takes too much memory")
        return ParserEnded(f"it causes {raised.kind}")


def name_of(function: Callable[..., Any]) -> str:
    """Return the name by which both sides identify a function."""
    return f"{function.__module__}.{function.__qualname__}"


def functions_by_name(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return what a fork server of calls serves."""
    return {name_of(function): function for function in functions}


@cache
def _signature(function: Callable[..., Any]) -> Signature:
    return Signature.of(function)


CONVERT = "convert"
"""The name of the function that writes the target and smaller images next to it.

It returns file name, width and height of each, and raises ImageRefused."""
_CONVERT = Signature(tuple[str, str], list[tuple[str, int, int]])


@dataclass(frozen=True, slots=True)
class ConverterLimits(CallLimits):
    """The limits of one image."""

    cpu: int = 20
    wall: float = 60.0
    answer: int = 16 << 10


class ProcessImages:
    """ImageConverter: at most `most` at a time; `command` runs the fork server, which bounds each child's memory."""

    def __init__(self, command: Sequence[str], *, most: int, limits: ConverterLimits | None = None) -> None:
        self._calls = ProcessCalls(command, most=most, limits=limits or ConverterLimits(), raises=(ImageRefused,))

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        try:
            written = await self._calls.call(CONVERT, _CONVERT, (str(source), str(target)))
        except ParserEnded as ended:
            raise ImageRefused(f"The image cannot be decoded: {ended}.") from None
        return await asyncio.to_thread(_converted, target, written)

    async def close(self) -> None:
        await self._calls.close()


def _converted(target: Path, written: Sequence[tuple[str, int, int]]) -> ConvertedImage:
    """Return the child's files, from the smallest to the largest, all next to the target, whatever names it returns."""
    files = []
    for name, width, height in written:
        path = target.with_name(Path(name).name)
        files.append(ConvertedFile(path, path.stat().st_size, width, height))
    content = hashlib.sha256(target.read_bytes()).hexdigest()
    return ConvertedImage(files[0], content, tuple(reversed(files[1:])))
