"""Rendering of HTML as PDF in child processes, so that a document cannot exhaust or read the process that serves requests."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.processes.calls import CallLimits, ProcessCalls
from adapters.processes.protocol import CallSignature
from domain.comparison.ports import PdfFailed
from ports.parsing import ParserFailed, ParserTerminated
from ports.workspaces import Workspaces

PRINT_FUNCTION = "print_pdf"
"""Name of the child's function that renders a document (`adapters.pdf`, which parents do not import)."""
CHECK_FUNCTION = "check_libraries"
_PRINT_SIGNATURE = CallSignature(tuple[str, dict[str, bytes], str], bytes)
_CHECK_SIGNATURE = CallSignature(tuple[()], bool)


@dataclass(frozen=True, slots=True)
class PrinterLimits(CallLimits):
    """Limits of the rendering of one document; the attributes are those of CallLimits."""

    cpu_seconds: int = 20
    max_seconds: float = 40.0
    max_result_bytes: int = 16 << 20


class ProcessPdfPrinter:
    """Renderer of PDF in child processes, an implementation of the port PdfPrinter (domain/comparison/ports.py).

    Args:
        command: Command that starts the fork server, which limits the memory of each child.
        workspaces: Creates the folders for temporary files of the children.
        limits: Limits of each document.
    """

    def __init__(self, command: Sequence[str], workspaces: Workspaces, limits: PrinterLimits | None = None) -> None:
        self._calls = ProcessCalls(command, max_calls=1, limits=limits or PrinterLimits())
        self._workspaces = workspaces
        self._is_available: bool | None = None
        self._checking = asyncio.Lock()

    async def is_available(self) -> bool:
        """Return whether the child processes start; only the first call starts one."""
        async with self._checking:
            if self._is_available is None:
                try:
                    self._is_available = await self._calls.call(CHECK_FUNCTION, _CHECK_SIGNATURE, ())
                except (ParserFailed, ParserTerminated):
                    self._is_available = False
        return bool(self._is_available)

    async def print_pdf(self, html: str, files: Mapping[str, bytes]) -> bytes:
        with self._workspaces.create_folder() as folder:
            try:
                pdf: bytes = await self._calls.call(PRINT_FUNCTION, _PRINT_SIGNATURE, (html, dict(files), str(folder)))
            except (ParserFailed, ParserTerminated) as error:
                raise PdfFailed(str(error)) from error
        return pdf

    async def close(self) -> None:
        """End the fork server and all child processes."""
        await self._calls.close()
