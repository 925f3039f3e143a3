"""Observations of a probe before any judgement: responses, and the contents of their documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
LONGEST_URL = 2_048
LONGEST_FOUND = 1_000
"""Maximum characters of a URL found in a document, which keeps reports small."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response. Header names are in lower case; `whole`: the body is not truncated."""

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()
    """Names of the cookies that it sets; none is ever sent back."""
    body: bytes = b""
    whole: bool = True

    @property
    def media_type(self) -> str:
        """The media type in lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_good(self) -> bool:
        """Return whether the request succeeded."""
        return 200 <= self.status < 300

    @property
    def is_page(self) -> bool:
        """Return whether the response is a web page, by its bytes or else by its media type."""
        start = self.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith(_HTML_STARTS) or (self.media_type in _HTML and not start.startswith((b"{", b"[")))

    @property
    def redirects(self) -> bool:
        """Return whether the response is a redirect."""
        return self.status in _REDIRECTS and bool(self.headers.get("location"))

    @property
    def leads_to(self) -> str | None:
        """Return the target of a redirect as an absolute http or https URL; None for other responses and invalid targets."""
        return joined(self.url, self.headers["location"]) if self.redirects else None


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """Contents of a page's JSON-LD: the fields of each product, and the currencies of its offers."""

    products: tuple[frozenset[str], ...] = ()
    currencies: frozenset[str] = frozenset()
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Contents of a web page. Long lists are truncated; `text_length` counts all visible characters."""

    title: str = ""
    metas: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    assets: tuple[str, ...] = ()
    """Addresses of its scripts, styles and pictures, as they are written."""
    links: tuple[str, ...] = ()
    """Absolute http and https addresses without fragment."""
    classes: frozenset[str] = frozenset()
    script_types: frozenset[str] = frozenset()
    text: str = ""
    text_length: int = 0
    asks_password: bool = False
    blocks: BlockFacts = BlockFacts()
    cut: bool = False
    """Whether the page was not read to its end."""


@dataclass(frozen=True, slots=True)
class SitemapFacts:
    """Contents of one sitemap: further sitemaps, the number of product pages, and some of these from first to last.

    `readable` is false if the document is not a sitemap.
    """

    sitemaps: tuple[str, ...] = ()
    product_pages: int = 0
    examples: tuple[str, ...] = ()
    whole: bool = True
    readable: bool = True


def origin_of(url: str) -> str:
    """Return scheme, host and port of an absolute URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def host_of(url: str) -> str:
    """Return the host of an absolute URL in lower case."""
    return (urlsplit(url).hostname or "").lower()


def is_usable(url: str) -> bool:
    """Return whether the text is an absolute http or https URL that can be requested."""
    return len(url) <= LONGEST_FOUND and url.isprintable() and _names_host(url)


def joined(base: str, target: str) -> str | None:
    """Return the absolute HTTP URL of a link on a page, without fragment; None for any other link."""
    try:
        url = urljoin(base, target.strip()).partition("#")[0]
    except ValueError:
        return None
    return url if len(url) <= LONGEST_URL and url.isprintable() and _names_host(url) else None


def _names_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
