"""Paging of a service's response, and the address of the next page."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from connectors.sdk.credentials import with_query
from connectors.sdk.errors import BadData
from connectors.sdk.pulling import Page
from connectors.sdk.readers.json_records import picked

_NAME = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_.$\\[\\]-]{1,100}$",
    "x-words": "1 to 100 letters, digits and the signs _ . $ [ ] -",
}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 10_000}

PAGING: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "style": {"enum": ["auto", "none", "page", "offset", "cursor", "next_link", "link_header"]},
        "page_param": _NAME,
        "offset_param": _NAME,
        "cursor_param": _NAME,
        "size_param": _NAME,
        "size": _COUNT,
        "start": {"type": "integer", "minimum": 0, "maximum": 1},
        "cursor_path": _NAME,
        "next_path": _NAME,
        "max_pages": {"type": "integer", "minimum": 1, "maximum": 100_000},
    },
    "additionalProperties": False,
}
"""`page` counts pages from `start` (1), `offset` counts records, `cursor` passes on the value at `cursor_path` of the
answer, `next_link` follows the URL at `next_path`, `link_header` the Link header's rel=next (RFC 8288). `auto`, the
default, follows a Link header or a usual next link where there is one."""

_USUAL_LINKS = (
    "next",
    "links.next",
    "_links.next.href",
    "paging.next",
    "pagination.next",
    "meta.next",
    "@odata.nextLink",
)
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_REL_NEXT = re.compile(r""";\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Position in a list of pages: the number of the page from 1, and the records so far."""

    url: str
    number: int
    records: int


class Paging:
    """Paging that a source's settings describe."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.style = str(settings.get("style", "auto"))
        self.most = int(settings.get("max_pages", 100_000))
        self._settings = settings

    def first(self, url: str) -> str:
        """Return the URL of the first page."""
        values = self._size()
        if self.style == "page":
            values[self._param("page_param", "page")] = str(self._start())
        if self.style == "offset":
            values[self._param("offset_param", "offset")] = "0"
        return with_query(url, values) if values else url

    def following(self, url: str, place: Place, page: Page, document: Any) -> str | None:
        """Return the next page's URL, or None after the last one. Raises BadData for a link to another origin."""
        if self.style == "page":
            number = self._start() + place.number
            return with_query(url, {**self._size(), self._param("page_param", "page"): str(number)})
        if self.style == "offset":
            return with_query(url, {**self._size(), self._param("offset_param", "offset"): str(place.records)})
        if self.style == "cursor":
            cursor = _plain(document, str(self._settings.get("cursor_path", "next_cursor")))
            return with_query(url, {**self._size(), self._param("cursor_param", "cursor"): cursor}) if cursor else None
        link = self._link(page, document)
        return _same_origin(place.url, link) if link else None

    @property
    def counts(self) -> bool:
        """Numbering of pages by the client, so that only an empty page marks the end."""
        return self.style in {"page", "offset"}

    def _link(self, page: Page, document: Any) -> str | None:
        if self.style == "next_link":
            return _plain(document, str(self._settings.get("next_path", "next")))
        if self.style == "none":
            return None
        link = next(_links(page.headers.get("Link") or ""), None)
        return _usual_link(document) if link is None and self.style == "auto" else link

    def _size(self) -> dict[str, str]:
        name, size = self._settings.get("size_param"), self._settings.get("size")
        if size is None:
            return {}
        return {str(name or "limit"): str(size)}

    def _param(self, key: str, usual: str) -> str:
        return str(self._settings.get(key, usual))

    def _start(self) -> int:
        return int(self._settings.get("start", 1))


def _usual_link(document: Any) -> str | None:
    links = (_plain(document, path) for path in _USUAL_LINKS)
    return next((link for link in links if link and link.startswith(("http://", "https://", "/", "?"))), None)


def _links(header: str) -> Iterator[str]:
    """Yield the targets of rel=next in a Link header."""
    for target, parameters in _LINK.findall(header):
        if _REL_NEXT.search(parameters):
            yield target


def _plain(document: Any, path: str) -> str | None:
    """Return the text or number at a dotted path; a key that itself contains dots takes precedence."""
    if isinstance(document, dict) and path in document:
        value = document[path]
    else:
        parent, _, name = path.rpartition(".")
        holders = picked(document, parent) if parent else [document]
        value = holders[0].get(name) if holders and isinstance(holders[0], dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


def _same_origin(url: str, link: str) -> str:
    """Return the link's full URL. Raises BadData if it leads to another origin, where credentials must not go."""
    target = urljoin(url, link)
    source, destination = urlsplit(url), urlsplit(target)
    if (source.scheme, source.hostname, source.port) != (destination.scheme, destination.hostname, destination.port):
        raise BadData("The service's link to its next page leads to another host; it is not followed.")
    return target
