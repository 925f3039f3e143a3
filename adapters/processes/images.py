"""Images are decoded in processes of their own, one each: what a file does to them, it does to nobody else."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.processes.call_messages import Signature
from adapters.processes.calls import CallLimits, ProcessCalls
from domain.media.ports import ConvertedFile, ConvertedImage, ImageRefused
from ports.parsing import ParserEnded

CONVERT: Final = "convert"
"""The name of the function that writes the target and smaller images next to it.

It returns file name, width and height of each, and raises ImageRefused."""
_SIGNATURE: Final = Signature(tuple[str, str], list[tuple[str, int, int]])


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
            written = await self._calls.call(CONVERT, _SIGNATURE, (str(source), str(target)))
        except ParserEnded as ended:
            raise ImageRefused(f"The image cannot be decoded: {ended}.") from None
        return await asyncio.to_thread(_converted, target, written)

    async def close(self) -> None:
        await self._calls.close()


def _converted(target: Path, written: Sequence[tuple[str, int, int]]) -> ConvertedImage:
    """What the child wrote, smaller ones from the smallest on; whatever it answers, they are files beside the target."""
    files = []
    for name, width, height in written:
        path = target.with_name(Path(name).name)
        files.append(ConvertedFile(path, path.stat().st_size, width, height))
    content = hashlib.sha256(target.read_bytes()).hexdigest()
    return ConvertedImage(files[0], content, tuple(reversed(files[1:])))
