"""Web requests of one probe within its limits of number, size and pace."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from urllib.parse import urlsplit

from domain.probes.facts import Response, host_of, origin_of
from domain.probes.model import Robots, RobotsState
from domain.probes.ports import Documents, Rules, Unreachable, Web

_PAGES = "text/html, application/xhtml+xml, application/json;q=0.9, */*;q=0.8"
_MOST_TOLD = 30
_LONGEST_TOLD = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a probe's requests to a site (decisions: 25 pages, 20 MiB) and their pace, in seconds and bytes."""

    requests: int = 25
    bytes: int = 20 * 1024 * 1024
    seconds: float = 600.0
    answer_seconds: float = 20.0
    page_bytes: int = 2 * 1024 * 1024
    listing_bytes: int = 4 * 1024 * 1024
    sitemap_bytes: int = 6 * 1024 * 1024
    robots_bytes: int = 512 * 1024
    redirects: int = 5
    pause: float = 0.5
    """Seconds between two requests to one host, where robots.txt asks for no more."""


class Spent(Exception):
    """A limit of the probe is reached; the message names it."""


@dataclass(slots=True)
class _Site:
    """The rules of an origin."""

    rules: Rules
    robots: Robots


class Visit:
    """Sequential requests, each only if robots.txt of its site allows it."""

    def __init__(
        self,
        web: Web,
        documents: Documents,
        limits: Limits,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._web, self._documents, self._limits = web, documents, limits
        self._sleep, self._clock = sleep, clock
        self._until = clock() + limits.seconds
        self._sites: dict[str, _Site] = {}
        self._free_at: dict[str, float] = {}
        """When each host may be asked again."""
        self._disallowed: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self.requests = 0
        self.read = 0

    @property
    def disallowed(self) -> tuple[str, ...]:
        """URLs that were not requested because robots.txt forbids them."""
        return tuple(self._disallowed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further notes of the report."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Add a note, unless it exists."""
        if len(self._notes) < _MOST_TOLD:
            self._notes.setdefault(text[:_LONGEST_TOLD])

    async def robots(self, url: str) -> Robots:
        """Return the robots.txt rules of the URL's site. Raises Unreachable for a site that does not respond, Spent."""
        return (await self._site(url)).robots

    async def allows(self, url: str) -> bool:
        """Return whether the URL's site allows the request; record forbidden URLs. Raises Unreachable, Spent."""
        site = await self._site(url)
        if site.robots.state == RobotsState.UNREACHABLE or not await site.rules.allows(url):
            if len(self._disallowed) < _MOST_TOLD:
                self._disallowed.setdefault(url[:_LONGEST_TOLD])
            return False
        return True

    async def get(self, url: str, *, accept: str = _PAGES, most: int | None = None) -> Response | None:
        """Request a URL and follow up to five redirects; return None if one of the URLs is forbidden.

        Raises Unreachable, Spent.
        """
        seen = {url}
        for _ in range(self._limits.redirects + 1):
            if not await self.allows(url):
                return None
            site = await self._site(url)
            response = await self._request(url, site, accept, most or self._limits.page_bytes)
            following = response.leads_to
            if following is None and response.redirects:
                raise Unreachable("The redirect leads nowhere that is asked.")
            if following is None:
                return response
            if urlsplit(url).scheme == "https" and urlsplit(following).scheme == "http":
                raise Unreachable("The redirect leads from https to http.")
            if following in seen:
                raise Unreachable("The redirects lead in circles.")
            seen.add(following)
            url = following
        raise Unreachable(f"There are more than {self._limits.redirects} redirects.")

    async def try_get(self, url: str, *, accept: str = _PAGES, most: int | None = None) -> Response | None:
        """Request a URL like `get`; note an unreachable address and return None. Raises Spent."""
        try:
            return await self.get(url, accept=accept, most=most)
        except Unreachable as error:
            self.note(f"{url}: {error}")
            return None

    async def _site(self, url: str) -> _Site:
        origin = origin_of(url)
        if origin not in self._sites:
            self._sites[origin] = await self._load_rules(origin)
        return self._sites[origin]

    async def _load_rules(self, origin: str) -> _Site:
        """Read the site's robots.txt (RFC 9309 §2.3.1): 4xx allows everything, 5xx and 429 nothing."""
        nothing = await self._documents.rules(b"")
        site = _Site(nothing, Robots(RobotsState.MISSING))
        response = await self._robots_txt(origin, site)
        if response.status == 429 or response.status >= 500:
            site.robots = Robots(RobotsState.UNREACHABLE)
            self.note(f"{origin}/robots.txt answers {response.status}, so that nothing of that site may be read.")
        elif response.is_good and not response.is_page:
            site.rules = await self._documents.rules(response.body)
            site.robots = await _robots(site.rules, origin)
        elif response.status >= 400 and response.status not in (404, 410):
            self.note(f"{origin}/robots.txt answers {response.status}.")
        elif response.is_good:
            self.note(f"{origin}/robots.txt is a web page and no rules.")
        self._wait_turn(origin, site)
        return site

    async def _robots_txt(self, origin: str, site: _Site) -> Response:
        url, response = f"{origin}/robots.txt", None
        for _ in range(self._limits.redirects + 1):
            response = await self._request(url, site, "text/plain, */*;q=0.5", self._limits.robots_bytes)
            following = response.leads_to
            if following is None:
                return response
            url = following
        assert response is not None
        return Response(url, 404)  # RFC 9309 §2.3.1.2: more than five redirects count as no rules

    async def _request(self, url: str, site: _Site, accept: str, most: int) -> Response:
        """Send one request at the site's pace. Raises Unreachable, Spent."""
        limits = self._limits
        if self.requests >= limits.requests:
            raise Spent(f"{limits.requests} requests were made, which is as many as a probe makes.")
        left = limits.bytes - self.read
        if left <= 0:
            raise Spent(f"{limits.bytes // (1024 * 1024)} MiB were read, which is as much as a probe reads.")
        await self._wait(host_of(url))
        self.requests += 1
        seconds = min(limits.answer_seconds, max(1.0, self._until - self._clock()))
        try:
            response = await self._web.get(url, accept=accept, most=min(most, left), seconds=seconds)
        finally:
            self._wait_turn(url, site)
        self.read += len(response.body)
        return response

    async def _wait(self, host: str) -> None:
        now = self._clock()
        wait = max(0.0, self._free_at.get(host, now) - now)
        if now + wait >= self._until:
            raise Spent(f"A probe takes {self._limits.seconds:.0f} seconds at most; its time was up.")
        if wait > 0:
            await self._sleep(wait)

    def _wait_turn(self, url: str, site: _Site) -> None:
        """Wait between requests to a host, as its rules demand or for the default pause."""
        delay = max(self._limits.pause, site.robots.crawl_delay_seconds or 0.0)
        self._free_at[host_of(url)] = self._clock() + delay


async def _robots(rules: Rules, origin: str) -> Robots:
    """Return the state of the rules; DISALLOW_ALL if neither the home page nor typical other pages are allowed."""
    state = RobotsState.DISALLOW_ALL
    for path in ("/", "/products", "/any/other-page"):
        if await rules.allows(f"{origin}{path}"):
            state = RobotsState.PARSED
    return Robots(state, rules.crawl_delay, rules.sitemaps)
