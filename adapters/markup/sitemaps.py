"""Reads sitemaps (sitemaps.org) as a stream, packed or not; document types and entities are refused."""

import zlib
from xml.parsers import expat

from domain.probes.facts import LONGEST_URL, Response, SitemapFacts, is_usable
from domain.probes.product_pages import is_product_page, lists_products, spread

UNPACKED = 20 * 1024 * 1024
"""Bytes that a packed sitemap is unpacked to, at most."""
MOST = 50_000
"""Addresses of one sitemap (its protocol allows no more)."""
MOST_SITEMAPS = 1_000
"""Sitemaps of an index that are looked at."""
EXAMPLES = 200
_PIECE = 64 * 1024


def facts_of(response: Response) -> SitemapFacts:
    """What the sitemap lists, as far as it can be read."""
    data, whole = _unpacked(response.body)
    reader = _Reader()
    if data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        try:
            reader.read(data)
        except (expat.ExpatError, _Refused, LookupError, ValueError):
            whole = False
    else:
        _read_lines(reader, data)
    every = lists_products(response.url)
    found = [url for url in dict.fromkeys(reader.pages) if every or is_product_page(url)]
    return SitemapFacts(
        sitemaps=tuple(reader.sitemaps[:MOST_SITEMAPS]),
        product_pages=len(found),
        examples=tuple(spread(found, EXAMPLES)),
        whole=whole and response.whole and not reader.full and len(reader.sitemaps) <= MOST_SITEMAPS,
        readable=reader.known and not response.is_page,
    )


def _unpacked(body: bytes) -> tuple[bytes, bool]:
    """The bytes, unpacked if they are packed; and whether these are all."""
    if not body.startswith(b"\x1f\x8b"):
        return body, True
    inflate = zlib.decompressobj(31)
    try:
        data = inflate.decompress(body, UNPACKED)
    except zlib.error:
        return b"", False
    return data, inflate.eof and not inflate.unused_data


def _read_lines(reader: "_Reader", data: bytes) -> None:
    """A sitemap of plain text: an address a line."""
    lines = [line for line in (line.strip() for line in data.decode("utf-8-sig", "replace").splitlines()) if line]
    pages = [line for line in lines if is_usable(line)]
    reader.known = bool(pages) and len(pages) >= 0.9 * len(lines)
    if reader.known:
        reader.pages, reader.full = pages[:MOST], len(pages) > MOST


class _Refused(Exception):
    """The XML declares what no sitemap needs."""


class _Reader:
    """Collects what stands in `<loc>`, right below `<url>` or `<sitemap>`."""

    def __init__(self) -> None:
        self.sitemaps: list[str] = []
        self.pages: list[str] = []
        self.known = self.full = False
        self._open: list[str] = []
        self._loc: list[str] | None = None
        self._length = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def read(self, data: bytes) -> None:
        """Read until the end, or until there are enough."""
        for start in range(0, len(data), _PIECE):
            self._parser.Parse(data[start : start + _PIECE], False)
            if self.full or len(self._parser.intern) > 1_000:
                self.full = True
                return
        self._parser.Parse(b"", True)

    def _refuse(self, *_: object) -> None:
        raise _Refused

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        element = name.rpartition(" ")[2]
        if len(self._open) > 20:
            raise _Refused
        self._open.append(element)
        if len(self._open) == 1:
            self.known = element in ("urlset", "sitemapindex")
        if element == "loc" and len(self._open) == 3:
            self._loc, self._length = [], 0

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if element != "loc" or self._loc is None:
            return
        url = "".join(self._loc).strip()
        self._loc = None
        if is_usable(url):
            found = self.sitemaps if self._open[-1] == "sitemap" else self.pages
            found.append(url)
            self.full = len(found) >= MOST

    def _text(self, text: str) -> None:
        if self._loc is not None and self._length <= LONGEST_URL:
            self._loc.append(text)
            self._length += len(text)
