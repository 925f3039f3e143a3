"""How a service divides its answer into pages, and where the next page is."""

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
"""`page` counts pages from `start` (1), `offset` counts records, `cursor` passes on what stands at `cursor_path` of the
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
    """Where a walk is: the number of the page from 1, and the records seen so far."""

    url: str
    number: int
    records: int


class Paging:
    """The paging that a source's settings describe."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.style = str(settings.get("style", "auto"))
        self.most = int(settings.get("max_pages", 100_000))
        self._settings = settings

    def first(self, url: str) -> str:
        """The URL of the first page."""
        values = self._size()
        if self.style == "page":
            values[self._param("page_param", "page")] = str(self._start())
        if self.style == "offset":
            values[self._param("offset_param", "offset")] = "0"
        return with_query(url, values) if values else url

    def following(self, url: str, place: Place, page: Page, document: Any) -> str | None:
        """The next page's URL, None after the last one. Raises BadData for a link that leads to another host."""
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
        """Whether pages are counted by us, so that only an empty page tells the end."""
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
    """Targets of rel=next in a Link header."""
    for target, parameters in _LINK.findall(header):
        if _REL_NEXT.search(parameters):
            yield target


def _plain(document: Any, path: str) -> str | None:
    """The text or number at a dotted path; a key that itself holds dots is tried first."""
    if isinstance(document, dict) and path in document:
        value = document[path]
    else:
        above, _, name = path.rpartition(".")
        holders = picked(document, above) if above else [document]
        value = holders[0].get(name) if holders and isinstance(holders[0], dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


def _same_origin(url: str, link: str) -> str:
    """The link's full URL. Raises BadData when it leads elsewhere, where credentials must not go."""
    target = urljoin(url, link)
    here, there = urlsplit(url), urlsplit(target)
    if (here.scheme, here.hostname, here.port) != (there.scheme, there.hostname, there.port):
        raise BadData("The service's link to its next page leads to another host; it is not followed.")
    return target
