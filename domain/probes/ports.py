"""What a probe asks of the web: one answer at a time, and what the documents in them say."""

from typing import Any, Protocol

from domain.probes.facts import PageFacts, Response, SitemapFacts


class Unreachable(Exception):
    """There was no answer. `refused`: the address is none that may be asked; the message may be shown."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(message)


class Web(Protocol):
    """The public web, asked as who we are. No cookie is kept and no redirect followed."""

    async def get(self, url: str, *, accept: str, most: int, seconds: float) -> Response:
        """Ask for the URL; of a body only the first `most` bytes are taken. Raises Unreachable.

        `seconds` bounds it all; a body that is not there by then, or breaks off, is cut.
        """
        ...


class Rules(Protocol):
    """A robots.txt, as it concerns us (RFC 9309)."""

    @property
    def crawl_delay(self) -> float | None:
        """Seconds between two requests, or None."""
        ...

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that it names."""
        ...

    async def allows(self, url: str) -> bool:
        """Whether the URL may be asked for."""
        ...


class Documents(Protocol):
    """Reads what was fetched, beside the event loop; nothing in a document makes it raise, hang or grow."""

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
