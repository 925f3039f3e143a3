"""Parsing of image URLs: cells with lists are split, URLs are checked, and file names are appended to a base URL."""

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from domain.catalogue.data import Media
from domain.ingestion.values.text import ParseFault, ParseResult, clean_value, quote_text
from domain.kernel.problems import ProblemKind

_SPLIT = re.compile(
    r"(?i)\||[,;](?=\s*+(?:https?://|//))|,\s++|[\r\n\t]+|;\s++|(?<=\s)(?=https?://)|(?<=\.jpg)[,;](?=\S)"
    r"|(?<=\.png)[,;](?=\S)|(?<=\.jpeg)[,;](?=\S)|(?<=\.webp)[,;](?=\S)"
)
_QUOTED = re.compile(r"[\"']([^\"'\s]+)[\"']")
_BLANKS = re.compile(r"[ \t]+")
_EDGES = " ,;\"'[]" + "".join(filter(str.isspace, map(chr, range(0x3001))))
_SIMPLE_URL = re.compile(r"(?a)https?://[A-Za-z0-9][A-Za-z0-9.-]{0,252}/[\w./%?=&~+:!()-]{0,1700}")
_MAX_URL = 2048
_NON_IMAGE_URL = re.compile(
    r"(?i)(\.pdf(?:$|\?))|\.(?:mp4|mov|webm|m4v)(?:$|\?)|(?:youtube\.com|youtu\.be|vimeo\.com)/"
)
"""Pattern of URLs of PDF documents (group 1) and of videos, by extension or host."""
ROLES = frozenset(("hero", "alternate", "lifestyle", "detail", "dimension", "swatch", "video", "document"))
_MAX_CACHED_CHARS = 300
_URL_FIELDS = ("url", "src", "link", "href", "image", "original", "large", "url_zoom", "url_standard", "contentUrl")
_REASON_BY_PROBLEM = {
    ProblemKind.UNSAFE_URL: "is not a web address that can be fetched",
    ProblemKind.UNREADABLE: "is a file name, not a web address",
    ProblemKind.TOO_LONG: f"is longer than {_MAX_URL:,} characters",
}
_EXTENSION = re.compile(r"(?i)\.(?:jpe?g|png|webp|gif|tiff?|avif|bmp|svg|mp4|mov|webm|m4v|pdf)(?![^\W_])")
_BARE_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_PATH_CHARACTERS = "%!$&'()*+,;=@-._~/"


def append_file_name(base_url: str, file_name: str) -> str | None:
    """Append the name of a file to a base URL (http or https) and percent-encode it; None for an invalid name.

    A valid name ends in the extension of an image, video or document, and can have folders and a query. Names that could lead elsewhere
    (absolute paths, `..` in any encoding, a leading host) are invalid. Escapes such as `%20` are kept.
    """
    if not base_url.lower().startswith(("http://", "https://")):
        return None
    path, mark, query = file_name.strip().replace("\\", "/").removeprefix("./").partition("?")
    endings = [found.end() for found in _EXTENSION.finditer(path)]
    first, *others = path.split("/")
    if endings != [len(path)] or (others and "." in first) or not all(map(_stays_in_folder, (first, *others))):
        return None
    try:
        file = quote(_BARE_PERCENT.sub("%25", path), safe=_PATH_CHARACTERS)
        return (
            f"{base_url.rstrip('/')}/{file}{mark}{quote(_BARE_PERCENT.sub('%25', query), safe=f'{_PATH_CHARACTERS}:?')}"
        )
    except UnicodeEncodeError:
        return None


def _stays_in_folder(part: str) -> bool:
    """Return whether a part of a path cannot leave its folder, even if it is percent-decoded once or twice."""
    return all(
        decoded.strip() not in ("", ".", "..") and "/" not in decoded and "\\" not in decoded and decoded.isprintable()
        for decoded in (part, unquote(part), unquote(unquote(part)))
    )


def _find_url_problem(url: str) -> ProblemKind | None:
    """Return the kind of the problem with a URL that cannot be fetched, or None for a valid URL."""
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


def parse_image_urls(text: str, base_url: str | None = None) -> ParseResult[tuple[str, ...]]:
    """Parse one URL, or a list of URLs separated by `|`, commas, semicolons or line breaks.

    Only http and https are accepted. The result can have the faults unsafe_url, unreadable (a file name) and too_long, each at most once.

    Args:
        text: The cell.
        base_url: The URL to which file names are appended, or None.
    """
    # Long lists are not cached: they differ for each item and would fill the memory.
    return (_parse_url_list if len(text) <= _MAX_CACHED_CHARS else _parse_url_list.__wrapped__)(text, base_url)


@lru_cache(maxsize=16384)
def _parse_url_list(text: str, base_url: str | None) -> ParseResult[tuple[str, ...]]:
    if _SIMPLE_URL.fullmatch(text):
        return ParseResult((text,))
    if clean_value(text) is None:
        return ParseResult(())
    if text.lstrip().startswith(("[", "{")) and (quoted_urls := _QUOTED.findall(text)):
        text = "|".join(quoted_urls)
    urls: dict[str, None] = {}
    faults: dict[ProblemKind, ParseFault] = {}
    for part in _SPLIT.split(_BLANKS.sub(" ", text.strip())):
        item = part.strip(_EDGES)
        if not item:
            continue
        url = item.replace(" ", "%20")
        url = f"https:{url}" if url.startswith("//") else url
        problem = _find_url_problem(url)
        if problem == ProblemKind.UNREADABLE and base_url and (file_url := append_file_name(base_url, item)):
            url, problem = file_url, _find_url_problem(file_url)
        if problem is None:
            urls[url] = None
        else:
            faults.setdefault(problem, ParseFault(problem, f"{quote_text(item)} {_REASON_BY_PROBLEM[problem]}."))
    return ParseResult(tuple(urls), tuple(faults.values()))


def determine_media_role(url: str, is_first: bool) -> str:
    """Return the role of a media URL: `video` or `document` by the extension, else `hero` for the first image or `alternate`."""
    other = _NON_IMAGE_URL.search(url)
    if other is not None:
        return "document" if other[1] else "video"
    return "hero" if is_first else "alternate"


def convert_json_to_url_text(cell: list[Any] | dict[str, Any]) -> str:
    """Convert a JSON object with a URL, or a JSON list of such objects or URLs, to one text for `parse_image_urls`.

    The URLs in the text are separated by `|`.
    """
    if isinstance(cell, dict):
        return next((str(cell[key]) for key in _URL_FIELDS if isinstance(cell.get(key), str)), "")
    return "|".join(
        convert_json_to_url_text(item) if isinstance(item, dict | list) else str(item) for item in cell if item
    )


def build_media(images: list[dict[str, Any]], main_image_url: str | None) -> list[Media]:
    """Sort images by `order` with the main image first, and give each of them a role and a position from 1.

    Args:
        images: The images with `url`, and possibly `alt` (the alternative text) and `order` (a number).
        main_image_url: The URL of the main image, or None if it is the first one.
    """
    if any("order" in item for item in images):
        images = sorted(images, key=lambda item: item.get("order", 10_000))
    if main_image_url is not None:
        images = sorted(images, key=lambda item: item["url"] != main_image_url)
    out: list[Media] = []
    first = True
    for position, item in enumerate(images, start=1):
        role = determine_media_role(item["url"], first)
        first = first and role != "hero"
        media: Media = {"url": item["url"], "role": role, "position": position}
        if "alt" in item:
            media["alt"] = item["alt"]
        out.append(media)
    return out
