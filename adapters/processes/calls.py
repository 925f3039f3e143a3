"""Function calls in child processes, one process per call, so that untrusted input cannot affect other calls."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adapters.processes.forks import ForkedChild, ForkServerHandle, ResultTooLarge
from adapters.processes.protocol import CallSignature, Raised, decode
from domain.media.ports import ConvertedFile, ConvertedImage, ImageRefused
from ports.parsing import ParserFailed, ParserTerminated

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one call.

    Attributes:
        cpu_seconds: Maximum CPU time in seconds.
        max_seconds: Maximum elapsed time in seconds.
        max_result_bytes: Maximum size of the encoded result in bytes.
    """

    cpu_seconds: int = 10
    max_seconds: float = 30.0
    max_result_bytes: int = 128 << 20


class ProcessCalls:
    """Caller of functions in child processes, an implementation of the port ParserRunner (ports/parsing.py).

    Args:
        command: Command that starts the fork server, which provides the functions by name and limits memory.
        max_calls: Maximum number of concurrent calls; further calls wait.
        limits: Limits of each call.
        raises: Types of exceptions of a function that are raised unchanged; their arguments must be texts. All other
            exceptions become ParserTerminated.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        max_calls: int,
        limits: CallLimits | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> None:
        self._server, self._limits = ForkServerHandle(command), limits or CallLimits()
        self._raises: Mapping[str, type[Exception]] = {one.__name__: one for one in raises}
        self._concurrency = asyncio.Semaphore(max_calls)

    async def __call__(self, function: Callable[..., R], /, *args: Any) -> R:
        result: R = await self.call(build_function_name(function), _read_signature(function), args)
        return result

    async def call(self, name: str, signature: CallSignature, args: Sequence[Any]) -> Any:
        """Call the named function in a new child process.

        Raises ParserTerminated, ParserFailed, and the exceptions that were passed to the constructor as `raises`.
        """
        async with self._concurrency:
            try:
                fork = await self._server.fork()
            except ConnectionError as error:
                raise ParserFailed(str(error)) from error
            try:
                async with asyncio.timeout(self._limits.max_seconds):
                    return await self._call_in_child(fork, name, signature, list(args))
            except TimeoutError:
                raise ParserTerminated("the parser took too long") from None
            finally:
                fork.kill()

    async def close(self) -> None:
        """End the fork server and all child processes."""
        await self._server.close()

    async def _call_in_child(self, fork: ForkedChild, name: str, signature: CallSignature, args: list[Any]) -> Any:
        limits, callback = self._limits, None
        if signature.callback_index is not None:
            callback, args[signature.callback_index] = args[signature.callback_index], None

        async def call_back(*arguments: Any) -> Any:
            return await asyncio.to_thread(callback, *arguments)  # type: ignore[arg-type]  # called for a function with a callback only

        try:
            reply = await fork.call(
                name,
                signature,
                args,
                max_result_bytes=limits.max_result_bytes,
                cpu_seconds=limits.cpu_seconds,
                callback=call_back,
            )
            if isinstance(reply, Raised):
                raise self._convert_error(reply)
            return await asyncio.to_thread(decode, reply, type=signature.result)
        except ResultTooLarge:
            raise ParserTerminated("the parser's result is too large") from None
        except (ConnectionError, EOFError):
            if await fork.exit_status is None:
                raise ParserFailed("the fork server exited, and its children with it") from None
            raise ParserTerminated("the parser exceeded the time or memory limit") from None
        except msgspec.DecodeError:
            raise ParserTerminated("the parser's result cannot be decoded") from None

    def _convert_error(self, raised: Raised) -> Exception:
        if raised.kind in self._raises:
            return self._raises[raised.kind](*decode(raised.arguments, type=tuple[str, ...]))
        if raised.kind == "OSError":
            return ParserFailed("a system call of the parser failed")
        if raised.kind == "MemoryError":
            return ParserTerminated("the parser exceeded the memory limit")
        return ParserTerminated(f"the parser raised {raised.kind}")


def build_function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function in messages between parent and child: its module and its qualified name."""
    return f"{function.__module__}.{function.__qualname__}"


def map_functions_by_name(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return functions by name (`build_function_name`), for a fork server to which ProcessCalls sends calls."""
    return {build_function_name(function): function for function in functions}


@cache
def _read_signature(function: Callable[..., Any]) -> CallSignature:
    return CallSignature.from_function(function)


CONVERT_FUNCTION = "convert"
"""Name of the child's function that converts an image file to a target file and to smaller files in the same folder.

The function returns the name, width and height of each file, and raises ImageRefused.
"""
_CONVERT_SIGNATURE = CallSignature(tuple[str, str], list[tuple[str, int, int]])


@dataclass(frozen=True, slots=True)
class ConverterLimits(CallLimits):
    """Limits of the conversion of one image; the attributes are those of CallLimits."""

    cpu_seconds: int = 20
    max_seconds: float = 60.0
    max_result_bytes: int = 16 << 10


class ProcessImageConverter:
    """Converter of images in child processes, an implementation of the port ImageConverter (domain/media/ports.py).

    Args:
        command: Command that starts the fork server, which limits the memory of each child.
        max_conversions: Maximum number of concurrent conversions; further ones wait.
        limits: Limits of each conversion.
    """

    def __init__(self, command: Sequence[str], *, max_conversions: int, limits: ConverterLimits | None = None) -> None:
        self._calls = ProcessCalls(
            command, max_calls=max_conversions, limits=limits or ConverterLimits(), raises=(ImageRefused,)
        )

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        try:
            files = await self._calls.call(CONVERT_FUNCTION, _CONVERT_SIGNATURE, (str(source), str(target)))
        except ParserTerminated as error:
            raise ImageRefused(f"The image cannot be decoded: {error}.") from None
        return await asyncio.to_thread(_build_converted_image, target, files)

    async def close(self) -> None:
        await self._calls.close()


def _build_converted_image(target: Path, reported: Sequence[tuple[str, int, int]]) -> ConvertedImage:
    """Return the converted image from the files that the child reports, which must be in the folder of the target."""
    files = []
    for name, width, height in reported:
        path = target.with_name(Path(name).name)
        files.append(ConvertedFile(path, path.stat().st_size, width, height))
    content = hashlib.sha256(target.read_bytes()).hexdigest()
    return ConvertedImage(files[0], content, tuple(reversed(files[1:])))
