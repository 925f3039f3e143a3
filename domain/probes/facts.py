"""Data that a probe reads: responses, and the contents of documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
MAX_LINK_CHARS = 2_048
"""Maximum number of characters of the URL of a link; longer links are ignored."""
MAX_FOUND_URL_CHARS = 1_000
"""Maximum number of characters of a page's link, or of a URL in a sitemap or robots.txt; longer URLs are ignored."""


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """One HTTP response to a probe.

    Attributes:
        headers: The headers; names are in lower case.
        cookies: The names of the cookies that the response sets. No cookie is sent back.
        is_complete: Whether `body` is complete, not truncated.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()
    body: bytes = b""
    is_complete: bool = True

    @property
    def media_type(self) -> str:
        """The media type in lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_success(self) -> bool:
        """True if the status is a success (2xx)."""
        return 200 <= self.status < 300

    @property
    def is_page(self) -> bool:
        """True if the response is a web page, according to its first bytes or media type."""
        start = self.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith(_HTML_STARTS) or (self.media_type in _HTML and not start.startswith((b"{", b"[")))

    @property
    def is_redirect(self) -> bool:
        """True if the response is a redirect."""
        return self.status in _REDIRECTS and bool(self.headers.get("location"))

    @property
    def redirect_target(self) -> str | None:
        """The target of a redirect as an absolute http or https URL.

        None if the response is not a redirect or the target is invalid.
        """
        return resolve_link(self.url, self.headers["location"]) if self.is_redirect else None


@dataclass(frozen=True, slots=True)
class JsonLdFacts:
    """Contents of the JSON-LD blocks of a page.

    Attributes:
        products: For each product, the names of the fields that it states.
        currencies: The currencies of offers, in lower case.
        malformed_count: The number of blocks that could not be parsed.
    """

    products: tuple[frozenset[str], ...] = ()
    currencies: frozenset[str] = frozenset()
    malformed_count: int = 0


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Contents of a web page; long lists are truncated.

    Attributes:
        meta_values: The values of meta elements by name in lower case.
        assets: The URLs of scripts, styles and images, as they are in the page.
        links: The absolute http and https URLs of links, without fragments.
        classes: The classes of the body element.
        script_types: The types of script elements.
        text: The beginning of the visible text.
        text_length: The number of characters of the complete visible text.
        has_password_field: Whether the page has a password field.
        json_ld: The contents of JSON-LD blocks.
        is_truncated: Whether the page was parsed only in part.
    """

    title: str = ""
    meta_values: Mapping[str, str] = field(default_factory=dict)
    assets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    script_types: frozenset[str] = frozenset()
    text: str = ""
    text_length: int = 0
    has_password_field: bool = False
    json_ld: JsonLdFacts = JsonLdFacts()
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class SitemapFacts:
    """Contents of one sitemap.

    Attributes:
        sitemaps: The URLs of further sitemaps.
        product_page_count: The number of product pages.
        product_page_examples: URLs of some product pages, from all parts of the sitemap.
        is_complete: Whether the sitemap was read completely.
        is_sitemap: Whether the document is a sitemap.
    """

    sitemaps: tuple[str, ...] = ()
    product_page_count: int = 0
    product_page_examples: tuple[str, ...] = ()
    is_complete: bool = True
    is_sitemap: bool = True


def extract_origin(url: str) -> str:
    """Return the scheme, host and port of an absolute URL in lower case."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def extract_host(url: str) -> str:
    """Return the host of an absolute URL in lower case."""
    return (urlsplit(url).hostname or "").lower()


def is_requestable_url(text: str) -> bool:
    """Return whether a text is an absolute http or https URL that can be requested."""
    return len(text) <= MAX_FOUND_URL_CHARS and text.isprintable() and _has_web_host(text)


def resolve_link(base: str, target: str) -> str | None:
    """Return a link of a page as an absolute http or https URL without fragment; None for any other link.

    Args:
        base: The URL of the page.
        target: The link as it is in the page.
    """
    try:
        url = urljoin(base, target.strip()).partition("#")[0]
    except ValueError:
        return None
    return url if len(url) <= MAX_LINK_CHARS and url.isprintable() and _has_web_host(url) else None


def _has_web_host(url: str) -> bool:
    """Return whether a URL has the scheme http or https, a host and a valid port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
