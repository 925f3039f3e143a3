"""Computation of the URLs of pages, in the paging style that the source's settings select."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from connectors.sdk.credentials import set_query_parameters
from connectors.sdk.errors import BadData
from connectors.sdk.fetching import FetchedPage
from connectors.sdk.readers.json_records import select_records

_PARAMETER_NAME = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_.$\\[\\]-]{1,100}$",
    "x-words": "1 to 100 letters, digits and the characters _ . $ [ ] -",
}
_COUNT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": 10_000}

PAGING_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "style": {"enum": ["auto", "none", "page", "offset", "cursor", "next_link", "link_header"]},
        "page_param": _PARAMETER_NAME,
        "offset_param": _PARAMETER_NAME,
        "cursor_param": _PARAMETER_NAME,
        "size_param": _PARAMETER_NAME,
        "size": _COUNT_SCHEMA,
        "start": {"type": "integer", "minimum": 0, "maximum": 1},
        "cursor_path": _PARAMETER_NAME,
        "next_path": _PARAMETER_NAME,
        "max_pages": {"type": "integer", "minimum": 1, "maximum": 100_000},
    },
    "additionalProperties": False,
}
"""JSON Schema of the setting `paging`.

The style `page` numbers pages from `start`, which is 1 by default. `offset` counts records. `cursor` sends the value at
`cursor_path` of the response. `next_link` follows the URL at `next_path`, and `link_header` follows the Link header
with rel=next (RFC 8288). `none` requests one page only. The default `auto` follows a Link header or, without one, a
link at a usual path of the response, such as `next` or `links.next`.
"""

_USUAL_NEXT_PATHS = (
    "next",
    "links.next",
    "_links.next.href",
    "paging.next",
    "pagination.next",
    "meta.next",
    "@odata.nextLink",
)
_LINK_VALUE = re.compile(r"<([^>]*)>([^<]*)")
_REL_NEXT = re.compile(r""";\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Position in a list of pages: URL and number of the current page (from 1), and number of records so far."""

    url: str
    number: int
    records: int


class PagingStyle:
    """Builder of the URLs of pages, in the paging style that the source's settings select.

    `max_pages` is the maximum number of pages; ApiPager omits further ones and notes this in the snapshot.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.style = str(settings.get("style", "auto"))
        self.max_pages = int(settings.get("max_pages", 100_000))
        self._settings = settings

    def build_first_url(self, url: str) -> str:
        """Return the URL of the first page: the source's `url` with the parameters of the paging style."""
        values = self._size_parameter()
        if self.style == "page":
            values[self._parameter_name("page_param", "page")] = str(self._first_number())
        if self.style == "offset":
            values[self._parameter_name("offset_param", "offset")] = "0"
        return set_query_parameters(url, values) if values else url

    def find_next_url(self, url: str, position: PagePosition, page: FetchedPage, document: Any) -> str | None:
        """Return the URL of the next page; None after the last page. Raises BadData for a link to another origin.

        Args:
            url: URL of the source.
            position: Position of the current page.
            page: Response with the current page.
            document: Decoded body of the response.
        """
        if self.style == "page":
            number = self._first_number() + position.number
            return set_query_parameters(
                url, {**self._size_parameter(), self._parameter_name("page_param", "page"): str(number)}
            )
        if self.style == "offset":
            return set_query_parameters(
                url, {**self._size_parameter(), self._parameter_name("offset_param", "offset"): str(position.records)}
            )
        if self.style == "cursor":
            cursor = _find_value(document, str(self._settings.get("cursor_path", "next_cursor")))
            return (
                set_query_parameters(
                    url, {**self._size_parameter(), self._parameter_name("cursor_param", "cursor"): cursor}
                )
                if cursor
                else None
            )
        link = self._find_link(page, document)
        return _resolve_link(position.url, link) if link else None

    @property
    def is_numbered(self) -> bool:
        """True if requests number pages or records, so that only an empty page marks the end of the list."""
        return self.style in {"page", "offset"}

    def _find_link(self, page: FetchedPage, document: Any) -> str | None:
        if self.style == "next_link":
            return _find_value(document, str(self._settings.get("next_path", "next")))
        if self.style == "none":
            return None
        link = next(_iterate_next_links(page.headers.get("Link") or ""), None)
        return _find_usual_link(document) if link is None and self.style == "auto" else link

    def _size_parameter(self) -> dict[str, str]:
        name, size = self._settings.get("size_param"), self._settings.get("size")
        if size is None:
            return {}
        return {str(name or "limit"): str(size)}

    def _parameter_name(self, key: str, usual: str) -> str:
        return str(self._settings.get(key, usual))

    def _first_number(self) -> int:
        return int(self._settings.get("start", 1))


def _find_usual_link(document: Any) -> str | None:
    links = (_find_value(document, path) for path in _USUAL_NEXT_PATHS)
    return next((link for link in links if link and link.startswith(("http://", "https://", "/", "?"))), None)


def _iterate_next_links(header: str) -> Iterator[str]:
    """Yield the targets of the links with rel=next in a Link header."""
    for target, parameters in _LINK_VALUE.findall(header):
        if _REL_NEXT.search(parameters):
            yield target


def _find_value(document: Any, path: str) -> str | None:
    """Return the text or number at a dotted path as text, or None; a key that equals the whole path has priority."""
    if isinstance(document, dict) and path in document:
        value = document[path]
    else:
        parent, _, name = path.rpartition(".")
        holders = select_records(document, parent) if parent else [document]
        value = holders[0].get(name) if holders and isinstance(holders[0], dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


def _resolve_link(url: str, link: str) -> str:
    """Return the absolute URL of a link on the page at `url`. Raises BadData for a link to another origin."""
    # Credentials must not be sent to another origin.
    target = urljoin(url, link)
    source, destination = urlsplit(url), urlsplit(target)
    if (source.scheme, source.hostname, source.port) != (destination.scheme, destination.hostname, destination.port):
        raise BadData("The service's link to its next page leads to another host; it is not followed.")
    return target
