"""Addresses of pictures: lists split, unsafe ones refused, each once; file names get the address below a place that settings name."""

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from domain.catalogue.data import Media
from domain.ingestion.values.text import Fault, Parsed, quoted, stated
from domain.kernel.problems import ProblemKind

_SPLIT = re.compile(
    r"(?i)\||[,;](?=\s*+(?:https?://|//))|,\s++|[\r\n\t]+|;\s++|(?<=\s)(?=https?://)|(?<=\.jpg)[,;](?=\S)"
    r"|(?<=\.png)[,;](?=\S)|(?<=\.jpeg)[,;](?=\S)|(?<=\.webp)[,;](?=\S)"
)
_QUOTED = re.compile(r"[\"']([^\"'\s]+)[\"']")
_BLANKS = re.compile(r"[ \t]+")
_EDGES = " ,;\"'[]" + "".join(filter(str.isspace, map(chr, range(0x3001))))
_ONE = re.compile(r"(?a)https?://[A-Za-z0-9][A-Za-z0-9.-]{0,252}/[\w./%?=&~+:!()-]{0,1700}")
_MAX_URL = 2048
_NO_PICTURE = re.compile(r"(?i)(\.pdf(?:$|\?))|\.(?:mp4|mov|webm|m4v)(?:$|\?)|(?:youtube\.com|youtu\.be|vimeo\.com)/")
"""Endings of documents, as a group, and of videos."""
ROLES = frozenset(("hero", "alternate", "lifestyle", "detail", "dimension", "swatch", "video", "document"))
_KEPT = 300
_MEMBERS = ("url", "src", "link", "href", "image", "original", "large", "url_zoom", "url_standard", "contentUrl")
_REASONS = {
    ProblemKind.UNSAFE_URL: "is not a web address that can be fetched",
    ProblemKind.UNREADABLE: "is a file name, not a web address",
    ProblemKind.TOO_LONG: f"is longer than {_MAX_URL:,} characters",
}
_ENDING = re.compile(r"(?i)\.(?:jpe?g|png|webp|gif|tiff?|avif|bmp|svg|mp4|mov|webm|m4v|pdf)(?![^\W_])")
_BARE_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_OF_PATHS = "%!$&'()*+,;=@-._~/"


def address_below(base: str, name: str) -> str | None:
    """The address of a file below `base` (http or https), percent-encoded; None for what is no name of one file there.

    A name has one ending of a picture, film or document, and perhaps folders before it and a query behind it. What could lead
    elsewhere is no such name: an absolute path, `..` however written, what may begin with a host. Escapes (`%20`) stay.
    """
    if not base.lower().startswith(("http://", "https://")):
        return None
    path, mark, query = name.strip().replace("\\", "/").removeprefix("./").partition("?")
    endings = [found.end() for found in _ENDING.finditer(path)]
    first, *others = path.split("/")
    if endings != [len(path)] or (others and "." in first) or not all(map(_is_plain, (first, *others))):
        return None
    try:
        file = quote(_BARE_PERCENT.sub("%25", path), safe=_OF_PATHS)
        return f"{base.rstrip('/')}/{file}{mark}{quote(_BARE_PERCENT.sub('%25', query), safe=f'{_OF_PATHS}:?')}"
    except UnicodeEncodeError:
        return None


def _is_plain(part: str) -> bool:
    """Whether a part of a path names something in its folder, also for who unescapes it, once or twice."""
    return all(
        read.strip() not in ("", ".", "..") and "/" not in read and "\\" not in read and read.isprintable()
        for read in (part, unquote(part), unquote(unquote(part)))
    )


def _judged(url: str) -> ProblemKind | None:
    """Why an address cannot be fetched, None for one that can."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ProblemKind.UNSAFE_URL
    if not parts.scheme or (not parts.netloc and "." in parts.scheme):
        return ProblemKind.UNREADABLE
    if parts.scheme.lower() not in ("http", "https") or not host or parts.username is not None or port == 0:
        return ProblemKind.UNSAFE_URL
    return None if len(url) <= _MAX_URL else ProblemKind.TOO_LONG


def addresses(text: str, base: str | None = None) -> Parsed[tuple[str, ...]]:
    """Return the addresses of a cell: one, or a list split at `|`, commas, semicolons and line breaks.

    Only http and https are taken. File names get the address that they have below `base`, when there is one. Problems:
    unsafe_url, unreadable (a bare file name), too_long; one of each a cell.
    """
    # Long lists are each item's own, and would fill the memory of who reads a large feed.
    return (_split_up if len(text) <= _KEPT else _split_up.__wrapped__)(text, base)


@lru_cache(maxsize=16384)
def _split_up(text: str, base: str | None) -> Parsed[tuple[str, ...]]:
    if _ONE.fullmatch(text):
        return Parsed((text,))
    if stated(text) is None:
        return Parsed(())
    if text.lstrip().startswith(("[", "{")) and (quoted_urls := _QUOTED.findall(text)):
        text = "|".join(quoted_urls)
    urls: dict[str, None] = {}
    faults: dict[ProblemKind, Fault] = {}
    for piece in _SPLIT.split(_BLANKS.sub(" ", text.strip())):
        item = piece.strip(_EDGES)
        if not item:
            continue
        url = item.replace(" ", "%20")
        url = f"https:{url}" if url.startswith("//") else url
        problem = _judged(url)
        if problem == ProblemKind.UNREADABLE and base and (below := address_below(base, item)):
            url, problem = below, _judged(below)
        if problem is None:
            urls[url] = None
        else:
            faults.setdefault(problem, Fault(problem, f"{quoted(item)} {_REASONS[problem]}."))
    return Parsed(tuple(urls), tuple(faults.values()))


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
