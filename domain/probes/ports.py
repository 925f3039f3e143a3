"""Web access of a probe, and parsing of documents."""

from typing import Any, Protocol

from domain.probes.facts import PageFacts, Response, SitemapFacts


class Unreachable(Exception):
    """No response. `refused`: the address must not be requested; the message may be shown."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(message)


class Web(Protocol):
    """Client for the public web with an honest user agent, without cookies and redirects."""

    async def get(self, url: str, *, accept: str, most: int, seconds: float) -> Response:
        """Request the URL and read at most the first `most` bytes of the body. Raises Unreachable.

        `seconds` is the total time limit; a body that is late or breaks off is truncated.
        """
        ...


class Rules(Protocol):
    """The rules of a robots.txt that apply to this service (RFC 9309)."""

    @property
    def crawl_delay(self) -> float | None:
        """Seconds between two requests, or None."""
        ...

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that it names."""
        ...

    async def allows(self, url: str) -> bool:
        """Return whether the URL may be requested."""
        ...


class Documents(Protocol):
    """Parser of fetched documents outside the event loop; no document can make it raise, hang or exhaust memory."""

    async def rules(self, body: bytes) -> Rules:
        """Parse a robots.txt; an empty one allows everything."""
        ...

    async def page(self, response: Response) -> PageFacts:
        """Extract the facts of a web page."""
        ...

    async def sitemap(self, response: Response) -> SitemapFacts:
        """Parse a sitemap: XML, text, or either compressed with gzip."""
        ...

    async def value(self, response: Response) -> Any:
        """Return the JSON value of the body, or None for invalid JSON."""
        ...
