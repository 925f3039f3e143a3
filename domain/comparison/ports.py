"""Ports of comparisons: rendering as PDF, and deletion of expired links."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol


class PdfFailed(Exception):
    """Error for a document that was not rendered, because it exceeded the limits of time, memory or size."""


class PdfPrinter(Protocol):
    """Rendering of HTML as PDF, in a separate process with limits on time and memory."""

    async def is_available(self) -> bool:
        """Return whether documents can be rendered: False if a library is not installed on this machine."""
        ...

    async def print_pdf(self, html: str, files: Mapping[str, bytes]) -> bytes:
        """Render an HTML document as PDF. Raises PdfFailed.

        Args:
            html: The document.
            files: Stylesheets, fonts and pictures by URL. The document can load nothing else.
        """
        ...


class ComparisonUpkeep(Protocol):
    """Links of all tenants, for the scheduler."""

    async def delete_expired(self, now: datetime) -> None:
        """Delete the links that have expired."""
        ...
