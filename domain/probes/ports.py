"""Ports of probes: access to websites, and parsing of documents."""

from typing import Any, Protocol

from domain.probes.facts import PageFacts, ProbeResponse, SitemapFacts


class Unreachable(Exception):
    """Error for a request without a response; the message may be shown to people.

    Attributes:
        is_forbidden: Whether the URL must not be requested, for example because its host is private.
    """

    def __init__(self, message: str, *, is_forbidden: bool = False) -> None:
        self.is_forbidden = is_forbidden
        super().__init__(message)


class WebClient(Protocol):
    """Client for the public web that identifies itself, sends no cookies and follows no redirects."""

    async def get(self, url: str, *, accept: str, max_bytes: int, seconds: float) -> ProbeResponse:
        """Request a URL and return the response. Raises Unreachable.

        Args:
            url: The URL.
            accept: The value of the Accept header.
            max_bytes: The maximum number of bytes of the body to read; a longer body is truncated.
            seconds: The time limit; a body that is not complete by then is truncated.
        """
        ...


class RobotsRules(Protocol):
    """Rules of a robots.txt that apply to this service (RFC 9309)."""

    @property
    def crawl_delay_seconds(self) -> float | None:
        """The required pause between two requests in seconds, or None."""
        ...

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of sitemaps that the robots.txt lists."""
        ...

    async def is_allowed(self, url: str) -> bool:
        """Return whether the rules permit requesting the URL."""
        ...


class DocumentParser(Protocol):
    """Parser of fetched documents that runs outside the event loop.

    No document can make the parser raise an error, block or exhaust memory.
    """

    async def parse_robots(self, body: bytes) -> RobotsRules:
        """Return the rules of a robots.txt; an empty document permits all requests."""
        ...

    async def parse_page(self, response: ProbeResponse) -> PageFacts:
        """Return the contents of a web page."""
        ...

    async def parse_sitemap(self, response: ProbeResponse) -> SitemapFacts:
        """Return the contents of a sitemap in XML or plain text, possibly compressed with gzip."""
        ...

    async def parse_json(self, response: ProbeResponse) -> Any:
        """Return the JSON value of a response's body, or None if the body is not valid JSON."""
        ...
