"""Parser of sitemaps (sitemaps.org), which are XML or text with one URL per line, and may be compressed by gzip."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from .errors import BadData

_CHUNK_BYTES = 32 * 1024
_MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_MAX_URLS = 60_000
_MAX_NAMES = 1_000
"""Maximum number of different names of elements and attributes, because the parser stores each name.

The parsing of a file with more names ends with a fault.
"""
_MAX_URL_CHARS = 2_048
_GZIP_SIGNATURE = b"\x1f\x8b"
_BLANK_BYTES = b"\xef\xbb\xbf \t\r\n"


@dataclass(slots=True)
class Sitemap:
    """URLs in a sitemap.

    Attributes:
        pages: URLs of pages.
        sitemaps: URLs of further sitemaps, if the file is a sitemap index.
        is_sitemap: Whether the file is a sitemap, judged by what was read before any fault.
        fault: Reason why the file was not read to its end, or an empty text.
    """

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    is_sitemap: bool = False
    fault: str = ""


def parse_sitemap(body: bytes, max_unpacked_bytes: int = _MAX_UNPACKED_BYTES) -> Sitemap:
    """Return the URLs in a sitemap. Faults of the file are returned, not raised.

    More than 60,000 URLs are a fault, and so are more than `max_unpacked_bytes` bytes in a file that is compressed by
    gzip. The URLs before a fault in XML are returned with the fault.
    """
    parser = _SitemapParser()
    try:
        begun = False
        for chunk in _iterate_chunks(body, max_unpacked_bytes):
            if not begun and (start := chunk.lstrip(_BLANK_BYTES)):
                begun = True
                if not start.startswith(b"<"):
                    return _parse_plain(b"".join(_iterate_chunks(body, max_unpacked_bytes)))
            parser.feed(chunk)
        parser.feed(b"", last=True)
    except BadData as error:
        parser.sitemap.fault = str(error)
    return parser.sitemap


def _parse_plain(text: bytes) -> Sitemap:
    lines = [line for line in map(str.strip, text.decode("utf-8-sig", errors="replace").splitlines()) if line]
    pages = [line[:_MAX_URL_CHARS] for line in lines if line.startswith(("http://", "https://"))]
    fault = "" if 0 < len(pages) <= _MAX_URLS else "the file is not a sitemap"
    return Sitemap(pages, is_sitemap=bool(pages) and len(pages) >= 0.9 * len(lines), fault=fault)


def _iterate_chunks(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the body in chunks, decompressed if necessary. Raises BadData if more than `max_bytes` are decompressed."""
    if not body.startswith(_GZIP_SIGNATURE):
        for at in range(0, len(body), _CHUNK_BYTES):
            yield body[at : at + _CHUNK_BYTES]
        return
    inflate, max_mib = zlib.decompressobj(31), max_bytes >> 20
    try:
        while body and not inflate.eof:
            chunk = inflate.decompress(body, _CHUNK_BYTES)
            body = inflate.unconsumed_tail
            max_bytes -= len(chunk)
            if max_bytes < 0:
                raise BadData(f"a sitemap unpacks to more than {max_mib} MiB")
            yield chunk
    except zlib.error:
        raise BadData("a gzipped sitemap is damaged") from None
    if not inflate.eof:
        raise BadData("a gzipped sitemap is incomplete")


class _SitemapParser:
    """Streaming parser that collects the URLs in a sitemap's XML."""

    def __init__(self) -> None:
        self.sitemap = Sitemap()
        self._open: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _reject_declaration
        self._parser.EntityDeclHandler = _reject_declaration

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        """Parse the next chunk of the XML. Raises BadData."""
        try:
            self._parser.Parse(chunk, last)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData("a sitemap is not valid XML") from None
        if len(self._parser.intern) > _MAX_NAMES:
            raise BadData("a sitemap is not valid XML")

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) > 16:
            raise BadData("a sitemap is nested too deeply")
        self._open.append(tag.rsplit(" ", 1)[-1].lower())
        self.sitemap.is_sitemap = self._open[0] in ("urlset", "sitemapindex")
        self._text = []

    def _characters(self, text: str) -> None:
        if self._open[-1:] == ["loc"] and len(self._text) < _MAX_URL_CHARS:
            self._text.append(text)

    def _end(self, _: str) -> None:
        if self._open[-2:] == ["url", "loc"]:
            self.sitemap.pages.append("".join(self._text).strip())
        elif self._open[-2:] == ["sitemap", "loc"]:
            self.sitemap.sitemaps.append("".join(self._text).strip())
        self._open.pop()
        self._text = []
        if len(self.sitemap.pages) + len(self.sitemap.sitemaps) > _MAX_URLS:
            raise BadData(f"a sitemap lists more than {_MAX_URLS:,} URLs")


def _reject_declaration(*_: object) -> None:
    raise BadData("a sitemap contains a DOCTYPE or entity declaration, which is not supported")
