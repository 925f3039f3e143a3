"""Reader of sitemaps (sitemaps.org), XML or one address a line, plain or gzipped; document types and entities are refused."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from .errors import BadData

_PIECE = 32 * 1024
_UNPACKED = 64 * 1024 * 1024
_MOST = 60_000
_MOST_NAMES = 1_000
"""Different names of elements and attributes, each of which the parser remembers."""
_LONGEST = 2_048
_GZIP = b"\x1f\x8b"
_BLANK = b"\xef\xbb\xbf \t\r\n"


@dataclass(slots=True)
class Sitemap:
    """Addresses in a sitemap: pages, or further sitemaps in an index.

    `known` states that the part read is a sitemap. `fault` states why it was not read, or not to its end.
    """

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    known: bool = False
    fault: str = ""


def read(body: bytes, unpacked: int = _UNPACKED) -> Sitemap:
    """Read a sitemap: at most some 60,000 addresses, and `unpacked` bytes of a gzipped one. Never raises."""
    parser = _SitemapParser()
    try:
        begun = False
        for piece in _pieces(body, unpacked):
            if not begun and (start := piece.lstrip(_BLANK)):
                begun = True
                if not start.startswith(b"<"):
                    return _plain(b"".join(_pieces(body, unpacked)))
            parser.feed(piece)
        parser.feed(b"", last=True)
    except BadData as error:
        parser.sitemap.fault = str(error)
    return parser.sitemap


def _plain(text: bytes) -> Sitemap:
    lines = [line for line in map(str.strip, text.decode("utf-8-sig", errors="replace").splitlines()) if line]
    pages = [line[:_LONGEST] for line in lines if line.startswith(("http://", "https://"))]
    fault = "" if 0 < len(pages) <= _MOST else "this is not a sitemap"
    return Sitemap(pages, known=bool(pages) and len(pages) >= 0.9 * len(lines), fault=fault)


def _pieces(body: bytes, left: int) -> Iterator[bytes]:
    """Yield the body in pieces, decompressed if it is gzipped. Raises BadData."""
    if not body.startswith(_GZIP):
        for at in range(0, len(body), _PIECE):
            yield body[at : at + _PIECE]
        return
    inflate, most = zlib.decompressobj(31), left >> 20
    try:
        while body and not inflate.eof:
            piece = inflate.decompress(body, _PIECE)
            body = inflate.unconsumed_tail
            left -= len(piece)
            if left < 0:
                raise BadData(f"a sitemap unpacks to more than {most} MiB")
            yield piece
    except zlib.error:
        raise BadData("a sitemap is packed, and damaged") from None
    if not inflate.eof:
        raise BadData("a sitemap is packed, and cut off")


class _SitemapParser:
    """Streaming parser that collects the addresses in a sitemap's XML."""

    def __init__(self) -> None:
        self.sitemap = Sitemap()
        self._open: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _refuse
        self._parser.EntityDeclHandler = _refuse

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Parse a piece of XML. Raises BadData."""
        try:
            self._parser.Parse(piece, last)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData("a sitemap is not valid XML") from None
        if len(self._parser.intern) > _MOST_NAMES:
            raise BadData("a sitemap is not valid XML")

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) > 16:
            raise BadData("a sitemap is nested too deeply")
        self._open.append(tag.rsplit(" ", 1)[-1].lower())
        self.sitemap.known = self._open[0] in ("urlset", "sitemapindex")
        self._text = []

    def _characters(self, text: str) -> None:
        if self._open[-1:] == ["loc"] and len(self._text) < _LONGEST:
            self._text.append(text)

    def _end(self, _: str) -> None:
        if self._open[-2:] == ["url", "loc"]:
            self.sitemap.pages.append("".join(self._text).strip())
        elif self._open[-2:] == ["sitemap", "loc"]:
            self.sitemap.sitemaps.append("".join(self._text).strip())
        self._open.pop()
        self._text = []
        if len(self.sitemap.pages) + len(self.sitemap.sitemaps) > _MOST:
            raise BadData(f"a sitemap lists more than {_MOST:,} addresses")


def _refuse(*_: object) -> None:
    raise BadData("a sitemap declares a document type or entities, which are not read")
