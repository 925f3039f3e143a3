"""Addresses of pictures: splitting of lists, validation, and addresses of file names below a base address."""

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
"""Endings and hosts of documents (group 1) and of videos."""
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
    """Return the percent-encoded address of a file below `base` (http or https), or None for an invalid file name.

    A valid name has one ending of a picture, video or document, and possibly folders before it and a query after it. Names
    that could lead elsewhere are invalid: absolute paths, `..` in any encoding, a leading host. Escapes (`%20`) are kept.
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
    """Return whether a part of a path stays in its folder, even if it is unescaped once or twice."""
    return all(
        read.strip() not in ("", ".", "..") and "/" not in read and "\\" not in read and read.isprintable()
        for read in (part, unquote(part), unquote(unquote(part)))
    )


def _refusal_of(url: str) -> ProblemKind | None:
    """Return the reason why an address cannot be fetched, or None."""
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
    """Return the addresses of a cell: one, or a list separated by `|`, commas, semicolons or line breaks.

    Only http and https are accepted. File names get their address below `base`, if given. Problems: unsafe_url, unreadable (a
    file name), too_long; at most one of each.
    """
    # Long lists are not cached: they differ for each item and would fill the memory.
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
        problem = _refusal_of(url)
        if problem == ProblemKind.UNREADABLE and base and (below := address_below(base, item)):
            url, problem = below, _refusal_of(below)
        if problem is None:
            urls[url] = None
        else:
            faults.setdefault(problem, Fault(problem, f"{quoted(item)} {_REASONS[problem]}."))
    return Parsed(tuple(urls), tuple(faults.values()))


def role_of(url: str, first: bool) -> str:
    """Return the role of an address: by its ending, else hero for the first picture and alternate for others."""
    other = _NO_PICTURE.search(url)
    if other is not None:
        return "document" if other[1] else "video"
    return "hero" if first else "alternate"


def list_text(cell: list[Any] | dict[str, Any]) -> str:
    """Return a JSON list of addresses, or of objects with one, as a text that `addresses` splits."""
    if isinstance(cell, dict):
        return next((str(cell[key]) for key in _MEMBERS if isinstance(cell.get(key), str)), "")
    return "|".join(list_text(item) if isinstance(item, dict | list) else str(item) for item in cell if item)


def media_list(urls: list[dict[str, Any]], hero: str | None) -> list[Media]:
    """Return pictures in order, with role and position; the hero is the given address, else the first picture."""
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
