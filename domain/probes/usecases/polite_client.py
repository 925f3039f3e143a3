"""HTTP client of one probe, which respects robots.txt and limits the number, size and rate of requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from urllib.parse import urlsplit

from domain.probes.facts import ProbeResponse, extract_host, extract_origin
from domain.probes.model import Robots, RobotsState
from domain.probes.ports import DocumentParser, RobotsRules, Unreachable, WebClient

_PAGES = "text/html, application/xhtml+xml, application/json;q=0.9, */*;q=0.8"
_MAX_NOTES = 30
_MAX_NOTE_CHARS = 500


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """Limits of one probe (docs/probes.md).

    A document that exceeds its maximum size or the time limit of a response is truncated.

    Attributes:
        requests: The maximum number of requests.
        bytes: The maximum number of bytes of all bodies together.
        seconds: The time limit for all requests.
        response_seconds: The time limit of one response.
        page_bytes: The maximum size of a page other than the landing page.
        listing_bytes: The maximum size of a product list, a data file or the landing page.
        sitemap_bytes: The maximum size of a sitemap.
        robots_bytes: The maximum size of a robots.txt.
        redirects: The maximum number of consecutive redirects.
        pause: The minimum time in seconds between two requests to one host; the crawl delay of robots.txt may be
            longer.
    """

    requests: int = 25
    bytes: int = 20 * 1024 * 1024
    seconds: float = 600.0
    response_seconds: float = 20.0
    page_bytes: int = 2 * 1024 * 1024
    listing_bytes: int = 4 * 1024 * 1024
    sitemap_bytes: int = 6 * 1024 * 1024
    robots_bytes: int = 512 * 1024
    redirects: int = 5
    pause: float = 0.5


class LimitReached(Exception):
    """Error that ends the requests of a probe at a limit of the probe or the site; the message states the limit."""


@dataclass(slots=True)
class _SiteRobots:
    """File robots.txt of a site: the parsed rules, and their summary for the report."""

    rules: RobotsRules
    summary: Robots


class PoliteClient:
    """HTTP client that sends one request at a time, and only requests that the site's robots.txt permits.

    Args:
        web_client: The client that sends the requests.
        documents: The parser for robots.txt.
        limits: The limits of the probe.
        sleep: Waits for a number of seconds.
        clock: Returns the time in seconds.

    Attributes:
        request_count: The number of requests so far.
        read_bytes: The number of bytes of all bodies so far.
    """

    def __init__(
        self,
        web_client: WebClient,
        documents: DocumentParser,
        limits: ProbeLimits,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._web_client, self._documents, self._limits = web_client, documents, limits
        self._sleep, self._clock = sleep, clock
        self._deadline = clock() + limits.seconds
        self._site_robots_by_origin: dict[str, _SiteRobots] = {}
        self._next_request_time_by_host: dict[str, float] = {}
        self._disallowed: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self.request_count = 0
        self.read_bytes = 0

    @property
    def disallowed_urls(self) -> tuple[str, ...]:
        """The URLs that were not requested because robots.txt forbids it."""
        return tuple(self._disallowed)

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences added by `add_note`, for the report."""
        return tuple(self._notes)

    def add_note(self, sentence: str) -> None:
        """Add a sentence to the notes of the report; ignore duplicates, and all sentences after the first _MAX_NOTES."""
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(sentence[:_MAX_NOTE_CHARS])

    async def get_robots(self, url: str) -> Robots:
        """Return the summary of the robots.txt of a URL's site.

        Raises:
            Unreachable: The site does not respond.
            LimitReached: A limit of the probe is reached.
        """
        return (await self._get_site_robots(url)).summary

    async def is_allowed(self, url: str) -> bool:
        """Return whether the site's robots.txt permits requesting the URL; record the URL if it is forbidden.

        Raises Unreachable, LimitReached.
        """
        site_robots = await self._get_site_robots(url)
        is_unreachable = site_robots.summary.state == RobotsState.UNREACHABLE
        if is_unreachable or not await site_robots.rules.is_allowed(url):
            if len(self._disallowed) < _MAX_NOTES:
                self._disallowed.setdefault(url[:_MAX_NOTE_CHARS])
            return False
        return True

    async def get(self, url: str, *, accept: str = _PAGES, max_bytes: int | None = None) -> ProbeResponse | None:
        """Request a URL and follow redirects, up to the limit; return None if robots.txt forbids one of the URLs.

        Args:
            url: The URL.
            accept: The value of the Accept header.
            max_bytes: The maximum number of bytes of the body, or None for the limit of a page.

        Raises:
            Unreachable: There is no response, or a redirect is invalid.
            LimitReached: A limit of the probe is reached.
        """
        requested_urls = {url}
        for _ in range(self._limits.redirects + 1):
            if not await self.is_allowed(url):
                return None
            site_robots = await self._get_site_robots(url)
            response = await self._send_request(url, site_robots, accept, max_bytes or self._limits.page_bytes)
            following = response.redirect_target
            if following is None and response.is_redirect:
                raise Unreachable("The redirect has no valid target.")
            if following is None:
                return response
            if urlsplit(url).scheme == "https" and urlsplit(following).scheme == "http":
                raise Unreachable("The redirect leads from https to http.")
            if following in requested_urls:
                raise Unreachable("The redirects form a loop.")
            requested_urls.add(following)
            url = following
        raise Unreachable(f"The URL redirects more than {self._limits.redirects} times and was not read.")

    async def try_get(self, url: str, *, accept: str = _PAGES, max_bytes: int | None = None) -> ProbeResponse | None:
        """Request a URL like `get`, but return None and add a note if it is unreachable. Raises LimitReached."""
        try:
            return await self.get(url, accept=accept, max_bytes=max_bytes)
        except Unreachable as error:
            self.add_note(f"{url}: {error}")
            return None

    async def _get_site_robots(self, url: str) -> _SiteRobots:
        """Return the robots.txt of the URL's site; request it unless it is already loaded."""
        origin = extract_origin(url)
        if origin not in self._site_robots_by_origin:
            self._site_robots_by_origin[origin] = await self._load_site_robots(origin)
        return self._site_robots_by_origin[origin]

    async def _load_site_robots(self, origin: str) -> _SiteRobots:
        """Request the robots.txt of an origin; return its rules and their summary.

        Status 4xx permits all requests; 5xx and 429 permit none (RFC 9309 §2.3.1).
        """
        no_rules = await self._documents.parse_robots(b"")
        site_robots = _SiteRobots(no_rules, Robots(RobotsState.MISSING))
        response = await self._get_robots_txt(origin, site_robots)
        if response.status == 429 or response.status >= 500:
            site_robots.summary = Robots(RobotsState.UNREACHABLE)
            self.add_note(
                f"{origin}/robots.txt responds with status {response.status}, so no page of the site may be requested."
            )
        elif response.is_success and not response.is_page:
            site_robots.rules = await self._documents.parse_robots(response.body)
            site_robots.summary = await _summarise_rules(site_robots.rules, origin)
        elif response.status >= 400 and response.status not in (404, 410):
            self.add_note(f"{origin}/robots.txt responds with status {response.status}, so it restricts no page.")
        elif response.is_success:
            self.add_note(f"{origin}/robots.txt is a web page without rules.")
        self._schedule_next_request(origin, site_robots)
        return site_robots

    async def _get_robots_txt(self, origin: str, site_robots: _SiteRobots) -> ProbeResponse:
        """Request the robots.txt of an origin and follow redirects."""
        url, response = f"{origin}/robots.txt", None
        for _ in range(self._limits.redirects + 1):
            response = await self._send_request(url, site_robots, "text/plain, */*;q=0.5", self._limits.robots_bytes)
            following = response.redirect_target
            if following is None:
                return response
            url = following
        assert response is not None
        return ProbeResponse(url, 404)  # more than five redirects count as no rules (RFC 9309 §2.3.1.2)

    async def _send_request(self, url: str, site_robots: _SiteRobots, accept: str, max_bytes: int) -> ProbeResponse:
        """Wait until a request to the host is permitted, and send one request. Raises Unreachable, LimitReached."""
        limits = self._limits
        if self.request_count >= limits.requests:
            raise LimitReached(f"The website check stopped after {limits.requests} requests, the maximum.")
        remaining_bytes = limits.bytes - self.read_bytes
        if remaining_bytes <= 0:
            raise LimitReached(f"The website check stopped after {limits.bytes // (1024 * 1024)} MiB, the maximum.")
        await self._wait_for_host(extract_host(url))
        self.request_count += 1
        seconds = min(limits.response_seconds, max(1.0, self._deadline - self._clock()))
        try:
            response = await self._web_client.get(
                url, accept=accept, max_bytes=min(max_bytes, remaining_bytes), seconds=seconds
            )
        finally:
            self._schedule_next_request(url, site_robots)
        self.read_bytes += len(response.body)
        return response

    async def _wait_for_host(self, host: str) -> None:
        """Wait until another request to the host is permitted. Raises LimitReached if this is after the time limit."""
        now = self._clock()
        wait = max(0.0, self._next_request_time_by_host.get(host, now) - now)
        if now + wait >= self._deadline:
            raise LimitReached(f"The website check reached its time limit of {self._limits.seconds:.0f} seconds.")
        if wait > 0:
            await self._sleep(wait)

    def _schedule_next_request(self, url: str, site_robots: _SiteRobots) -> None:
        """Set the time from which another request to the URL's host is permitted."""
        delay = max(self._limits.pause, site_robots.summary.crawl_delay_seconds or 0.0)
        self._next_request_time_by_host[extract_host(url)] = self._clock() + delay


async def _summarise_rules(rules: RobotsRules, origin: str) -> Robots:
    """Return the summary of the rules of a robots.txt.

    The state is DISALLOW_ALL if neither the home page nor typical other pages may be requested.
    """
    state = RobotsState.DISALLOW_ALL
    for path in ("/", "/products", "/any/other-page"):
        if await rules.is_allowed(f"{origin}{path}"):
            state = RobotsState.PARSED
    return Robots(state, rules.crawl_delay_seconds, rules.sitemaps)
