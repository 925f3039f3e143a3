"""Recognises an address that is a file of products itself: CSV, XLSX, XML, JSON (docs/probes.md#files)."""

import csv
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from domain.probes.facts import Response
from domain.probes.listings import NOTHING, Listing, fields_of, records_in

HEAD: Final = 256 * 1024
"""Bytes of a file that are looked at."""
_GOOGLE: Final = "http://base.google.com/ns/1.0"
_DELIMITERS: Final = ",;\t|"
_ROWS: Final = 20
_NO_TABLES: Final = (
    b"%PDF",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"Rar!",
    b"7z\xbc\xaf",
    b"\xd0\xcf\x11\xe0",
    b"wOF",
)
_NO_TABLE_TYPES: Final = (
    "image/",
    "video/",
    "audio/",
    "font/",
    "text/css",
    "text/javascript",
    "application/javascript",
)
_SITEMAPS: Final = ("<urlset", "<sitemapindex")


@dataclass(frozen=True, slots=True)
class File:
    """A file and the `config.format` of a source that reads it; None: no source reads it as it is, `remedy` says why."""

    format: str | None
    listing: Listing = NOTHING
    remedy: str = ""


def recognised(response: Response) -> File | None:
    """What file the answer is, by its bytes; None for a page, a sitemap, or anything that holds no records."""
    head = response.body[:HEAD]
    if response.is_page or not head.strip() or not response.is_good:
        return None
    if head.startswith(_NO_TABLES) or response.media_type.startswith(_NO_TABLE_TYPES):
        return None
    if head.startswith(b"PK\x03\x04"):
        workbook = b"xl/" in head or b"[Content_Types].xml" in head or _ends(response, ".xlsx")
        return File("xlsx") if workbook else File(None, remedy="It is a zip archive: publish the file inside it.")
    if head.startswith(b"\x1f\x8b"):
        return File(None, remedy="It is packed with gzip: publish the file unpacked.")
    text = head.decode("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    start = text.lstrip()
    if start.startswith("<"):
        return _xml(start)
    if start.startswith(("{", "[")):
        return _json(response, start)
    return _delimited(response, text)


def is_sitemap(response: Response) -> bool:
    """Whether the answer is a sitemap by its first element."""
    return any(element in response.body[:2048].decode("utf-8", "replace").lower() for element in _SITEMAPS)


def _ends(response: Response, *names: str) -> bool:
    return urlsplit(response.url).path.lower().endswith(names)


def _xml(text: str) -> File | None:
    start = text[:8192]
    if any(element in start.lower() for element in _SITEMAPS):
        return None
    return File("google_merchant" if _GOOGLE in start else "xml")


def _json(response: Response, text: str) -> File | None:
    first, _, rest = text.partition("\n")
    if rest.lstrip().startswith("{") and (value := _value(first)) is not None:
        return File("jsonl", Listing(None, None, fields_of([value])))
    if not response.whole or len(response.body) > HEAD:
        return File("json")
    records = records_in(_value(text))
    return File("json", Listing(len(records), len(records), fields_of(records))) if records else None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _delimited(response: Response, text: str) -> File | None:
    """A table, if its first lines fall into the same number of columns, at least two, by one of the usual delimiters."""
    lines = text.splitlines()
    whole = response.whole and len(response.body) <= HEAD
    if "\0" in text or len(lines) < 2:
        return None
    for delimiter in sorted(_DELIMITERS, key=lines[0].count, reverse=True)[:2]:
        try:
            rows = [row for row in csv.reader(lines[: _ROWS + 1], delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        alike = sum(len(row) == width for row in rows[1:-1] or rows[1:])
        if width > 1 and alike >= 0.8 * len(rows[1:-1] or rows[1:]):
            heads = tuple(name.strip()[:60] for name in rows[0] if name.strip())[:100]
            count = sum(1 for line in lines[1:] if line.strip()) if whole else None
            return File("tsv" if delimiter == "\t" else "csv", Listing(count, count, heads))
    return None
