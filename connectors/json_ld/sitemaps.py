"""Reads sitemaps (sitemaps.org), plain or packed by gzip, piece by piece while others go first."""

import asyncio
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from connectors.sdk.errors import BadData

_PIECE = 32 * 1024
_UNPACKED = 64 * 1024 * 1024
_MOST = 60_000
_LONGEST = 2_048
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Sitemap:
    """The addresses in a sitemap: pages, or in an index further sitemaps."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


async def parsed(body: bytes) -> Sitemap:
    """The addresses in a sitemap, XML or one a line. Raises BadData for what is none, and for one of more than 60,000."""
    look = _Look()
    begun = False
    for piece in _pieces(body):
        if not begun and piece.strip(b"\xef\xbb\xbf \t\r\n"):
            begun = True
            if not piece.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
                return await _plain(body)
        look.take(piece)
        await asyncio.sleep(0)
    return look.end()


async def _plain(body: bytes) -> Sitemap:
    found = Sitemap()
    for number, line in enumerate(b"".join(_pieces(body)).decode("utf-8", errors="replace").splitlines()):
        if line.strip().startswith(("http://", "https://")):
            found.pages.append(line.strip()[:_LONGEST])
        if not number % 1_000:
            await asyncio.sleep(0)
    if not found.pages or len(found.pages) > _MOST:
        raise BadData("this is no sitemap")
    return found


def _pieces(body: bytes) -> Iterator[bytes]:
    """The body in pieces, unpacked where it is packed."""
    if not body.startswith(_GZIP):
        for at in range(0, len(body), _PIECE):
            yield body[at : at + _PIECE]
        return
    inflate, left = zlib.decompressobj(31), _UNPACKED
    data = body
    try:
        while data and not inflate.eof:
            piece = inflate.decompress(data, _PIECE)
            data = inflate.unconsumed_tail
            left -= len(piece)
            if left < 0:
                raise BadData("a sitemap unpacks to more than 64 MiB")
            yield piece
    except zlib.error:
        raise BadData("a sitemap is packed, and damaged") from None
    if not inflate.eof:
        raise BadData("a sitemap is packed, and cut off")


class _Look:
    """Watches a sitemap's XML pass by for addresses."""

    def __init__(self) -> None:
        self._found = Sitemap()
        self._open: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _refuse
        self._parser.EntityDeclHandler = _refuse

    def take(self, piece: bytes, *, last: bool = False) -> None:
        """Take in a piece. Raises BadData."""
        try:
            self._parser.Parse(piece, last)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData("a sitemap is no valid XML") from None

    def end(self) -> Sitemap:
        """All that was found. Raises BadData where the XML is cut off."""
        self.take(b"", last=True)
        return self._found

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) > 16:
            raise BadData("a sitemap is nested too deeply")
        self._open.append(tag.rsplit(" ", 1)[-1].lower())
        self._text = []

    def _characters(self, text: str) -> None:
        if self._open[-1:] == ["loc"] and len(self._text) < _LONGEST:
            self._text.append(text)

    def _end(self, _: str) -> None:
        if self._open[-2:] == ["url", "loc"]:
            self._found.pages.append("".join(self._text).strip())
        elif self._open[-2:] == ["sitemap", "loc"]:
            self._found.sitemaps.append("".join(self._text).strip())
        self._open.pop()
        self._text = []
        if len(self._found.pages) + len(self._found.sitemaps) > _MOST:
            raise BadData(f"a sitemap lists more than {_MOST:,} addresses")


def _refuse(*_: object) -> None:
    raise BadData("a sitemap declares a document type or entities, which are not read")
