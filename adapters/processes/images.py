"""Images are decoded in processes of their own, one each: what a file does to them, it does to nobody else."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.processes.forks import Fork, ForkServerProcess
from adapters.processes.image_child import LONGEST
from ports.images import ConvertedFile, ConvertedImage, ImageRefused


@dataclass(frozen=True, slots=True)
class ConverterLimits:
    """Seconds of processor time, and of any time, that one image may take."""

    cpu: int = 20
    wall: float = 60.0


class ConverterFailed(Exception):
    """The converter met an error of its own, such as a full disk."""


class ProcessImages:
    """ImageConverter: at most `most` at a time; `command` runs the fork server, which bounds each child's memory."""

    def __init__(self, command: Sequence[str], *, most: int, limits: ConverterLimits | None = None) -> None:
        self._command, self._limits = command, limits or ConverterLimits()
        self._room = asyncio.Semaphore(most)
        self._server: ForkServerProcess | None = None
        self._starting = asyncio.Lock()

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        async with self._room:
            answer = await self._asked({"source": str(source), "target": str(target), "cpu": self._limits.cpu})
        if "refused" in answer:
            raise ImageRefused(answer["refused"])
        if "failed" in answer:
            raise ConverterFailed(answer["failed"])
        return await asyncio.to_thread(_converted, target, answer["written"])

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _asked(self, order: dict[str, Any]) -> dict[str, Any]:
        fork = (await self._started()).fork()
        try:
            async with asyncio.timeout(self._limits.wall):
                return await _answered(fork, order)
        except TimeoutError:
            raise ImageRefused("Decoding the image takes too long.") from None
        finally:
            fork.kill()

    async def _started(self) -> ForkServerProcess:
        async with self._starting:
            if self._server is None or not self._server.alive:
                if self._server is not None:
                    await self._server.close()
                self._server = await ForkServerProcess.start(self._command)
            return self._server


async def _answered(fork: Fork, order: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection(sock=fork.connection, limit=LONGEST)
    try:
        writer.write(json.dumps(order).encode() + b"\n")
        await writer.drain()
        line = await reader.readline()
    except (ConnectionError, ValueError):
        line = b""
    finally:
        writer.close()
    if line.endswith(b"\n"):
        answer: dict[str, Any] = json.loads(line)
        return answer
    if await fork.ended is None:
        raise ConverterFailed("the fork server is gone, and its children with it")
    return {"refused": "Decoding the image came to a sudden end: it takes too much time or memory."}


def _converted(target: Path, written: Sequence[tuple[str, int, int]]) -> ConvertedImage:
    """What the child wrote, smaller ones from the smallest on; whatever it answers, they are files beside the target."""
    files = []
    for name, width, height in written:
        path = target.with_name(Path(name).name)
        files.append(ConvertedFile(path, path.stat().st_size, width, height))
    content = hashlib.sha256(target.read_bytes()).hexdigest()
    return ConvertedImage(files[0], content, tuple(reversed(files[1:])))
