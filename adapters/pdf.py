"""Rendering of HTML as PDF by WeasyPrint, in a child process that may load nothing but the given files."""

import tempfile
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from weasyprint import HTML
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher, URLFetcherResponse

_MEDIA_TYPES: Final[Mapping[str, str]] = {".css": "text/css", ".woff2": "font/woff2", ".webp": "image/webp"}


class _GivenFiles(URLFetcher):  # type: ignore[misc]  # the package has no types
    """Fetcher of the given files. Every other URL is refused without a request: `http:`, `file:` and `data:` too."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(allowed_protocols=())
        self._files = files

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        if url not in self._files:
            raise ValueError("the document may load the given files only")
        media_type = _MEDIA_TYPES.get(PurePosixPath(url).suffix, "application/octet-stream")
        return URLFetcherResponse(url, self._files[url], {"Content-Type": media_type})


def print_pdf(html: str, files: dict[str, bytes], folder: str) -> bytes:
    """Render an HTML document as PDF.

    Args:
        html: The document.
        files: Stylesheets, fonts and pictures by absolute URL.
        folder: A folder for temporary files, such as fonts.
    """
    tempfile.tempdir = folder
    document = HTML(string=html, url_fetcher=_GivenFiles(files))
    pdf: bytes = document.write_pdf(font_config=FontConfiguration())
    return pdf


def check_libraries() -> bool:
    """Return True. A call succeeds only in a process that could import WeasyPrint and its libraries."""
    return True
