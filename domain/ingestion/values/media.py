"""Addresses of pictures: lists split, unsafe ones refused, each once."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from domain.catalogue.data import Media
from domain.ingestion.values.file_names import address_below
from domain.ingestion.values.parsed import Fault, quoted
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

_SPLIT: Final = re.compile(
    r"\||[,;](?=\s*+(?:https?://|//))|,\s++|[\r\n\t]+|;\s++|(?<=\s)(?=https?://)|(?<=\.jpg)[,;](?=\S)"
    r"|(?<=\.png)[,;](?=\S)|(?<=\.jpeg)[,;](?=\S)|(?<=\.webp)[,;](?=\S)",
    re.I,
)
_QUOTED: Final = re.compile(r"[\"']([^\"'\s]+)[\"']")
_BLANKS: Final = re.compile(r"[ \t]+")
_EDGES: Final = " ,;\"'[]" + "".join(filter(str.isspace, map(chr, range(0x3001))))
_ONE: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]{0,252}/[\w./%?=&~+:!()-]{0,1700}", re.A)
_MAX_URL: Final = 2048
_NO_PICTURE: Final = re.compile(
    r"(\.pdf(?:$|\?))|\.(?:mp4|mov|webm|m4v)(?:$|\?)|(?:youtube\.com|youtu\.be|vimeo\.com)/", re.I
)
"""Endings of documents, as a group, and of videos."""
ROLES: Final = frozenset(("hero", "alternate", "lifestyle", "detail", "dimension", "swatch", "video", "document"))
_KEPT: Final = 300
_MEMBERS: Final = ("url", "src", "link", "href", "image", "original", "large", "url_zoom", "url_standard", "contentUrl")
_REASONS: Final = {
    ProblemKind.UNSAFE_URL: "is no web address that may be fetched",
    ProblemKind.UNREADABLE: "is a file name, not a web address",
    ProblemKind.TOO_LONG: "is longer than an address may be",
}


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one cell in order, and what was wrong with the others."""

    urls: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()


def _judged(url: str) -> tuple[str | None, ProblemKind | None]:
    """The address when it can be fetched, else the kind of problem."""
    if url.startswith("//"):
        url = f"https:{url}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None, ProblemKind.UNSAFE_URL
    if not parts.scheme or (not parts.netloc and "." in parts.scheme):
        return None, ProblemKind.UNREADABLE
    if parts.scheme.lower() not in ("http", "https") or not host or parts.username is not None or port == 0:
        return None, ProblemKind.UNSAFE_URL
    return (url, None) if len(url) <= _MAX_URL else (None, ProblemKind.TOO_LONG)


def _below(base: str | None, name: str) -> str | None:
    return address_below(base, name) if base else None


def addresses(text: str, base: str | None = None) -> Addresses:
    """The addresses of a cell: one, or a list split at `|`, commas, semicolons and line breaks.

    Only http and https are taken. File names get the address that they have below `base`, when there is one. Problems:
    unsafe_url, unreadable (a bare file name), too_long; one of each a cell.
    """
    # Long lists are each item's own, and would fill the memory of who reads a large feed.
    return _addresses(text, base) if len(text) <= _KEPT else _split_up(text, base)


@lru_cache(maxsize=16384)
def _addresses(text: str, base: str | None) -> Addresses:
    return _split_up(text, base)


def _split_up(text: str, base: str | None) -> Addresses:
    if _ONE.fullmatch(text):
        return Addresses((text,))
    if stated(text) is None:
        return Addresses()
    if text.lstrip().startswith(("[", "{")) and (quoted_urls := _QUOTED.findall(text)):
        text = "|".join(quoted_urls)
    urls: dict[str, None] = {}
    faults: dict[ProblemKind, Fault] = {}
    for piece in _SPLIT.split(_BLANKS.sub(" ", text.strip())):
        item = piece.strip(_EDGES)
        if not item:
            continue
        url, problem = _judged(item.replace(" ", "%20"))
        if problem == ProblemKind.UNREADABLE and (below := _below(base, item)):
            url, problem = _judged(below)
        if url:
            urls[url] = None
        elif problem:
            faults.setdefault(problem, Fault(problem, f"{quoted(item)} {_REASONS[problem]}."))
    return Addresses(tuple(urls), tuple(faults.values()))


def role_of(url: str, first: bool) -> str:
    """The role of an address: what its ending proves, else hero for the first picture and alternate for the others."""
    other = _NO_PICTURE.search(url)
    if other is not None:
        return "document" if other[1] else "video"
    return "hero" if first else "alternate"


def list_text(cell: list[Any] | dict[str, Any]) -> str:
    """A JSON list of addresses, or of objects that hold one, as one text that `addresses` splits."""
    if isinstance(cell, dict):
        return next((str(cell[key]) for key in _MEMBERS if isinstance(cell.get(key), str)), "")
    return "|".join(list_text(item) if isinstance(item, dict | list) else str(item) for item in cell if item)


def media_list(urls: list[dict[str, Any]], hero: str | None) -> list[Media]:
    """Pictures in their order with role and position; the hero is the one named so, else the first."""
    if any("order" in item for item in urls):
        urls = sorted(urls, key=lambda item: item.get("order", 10_000))
    if hero is not None:
        urls = sorted(urls, key=lambda item: item["url"] != hero)
    out: list[Media] = []
    first = True
    for position, item in enumerate(urls, start=1):
        role = role_of(item["url"], first)
        first = first and role != "hero"
        media: Media = {"url": item["url"], "role": role, "position": position}
        if "alt" in item:
            media["alt"] = item["alt"]
        out.append(media)
    return out
