"""Renderer of PDF in memory, which keeps the documents."""

from collections.abc import Mapping

from domain.comparison.ports import PdfFailed


class MemoryPrinter:
    """Renderer that returns the HTML itself."""

    def __init__(self) -> None:
        self.is_installed = True
        self.fails = False
        self.documents: list[tuple[str, Mapping[str, bytes]]] = []

    async def is_available(self) -> bool:
        return self.is_installed

    async def print_pdf(self, html: str, files: Mapping[str, bytes]) -> bytes:
        if self.fails:
            raise PdfFailed("the parser took too long")
        self.documents.append((html, files))
        return b"%PDF-" + html.encode()
