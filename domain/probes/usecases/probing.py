"""Probe of a website: robots.txt, landing page, a platform's product list, sitemaps, sampled products; then the judgement."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.probes import estimate, files, platforms, product_pages, walls
from domain.probes.cleaning import cleaned
from domain.probes.estimate import Seen
from domain.probes.facts import PageFacts, Response, host_of, origin_of
from domain.probes.files import ENDPOINTS, SHOP, Endpoint, Listing, listing, shop
from domain.probes.model import (
    Effort,
    Platform,
    PlatformFeed,
    Report,
    RobotsState,
    SampledPage,
    Way,
)
from domain.probes.ports import Documents, Unreachable
from domain.probes.usecases.visiting import Limits, Spent, Visit

SITEMAPS = 6
"""Maximum number of sitemaps that are read."""
SAMPLED = 8
"""Maximum number of product pages that are read."""
SAMPLED_BESIDE_FEED = 3
"""The same if a feed responded, which says more."""
_JSON = "application/json, */*;q=0.5"

Takes = Callable[[Mapping[str, Any]], bool]
"""Whether this service can make a source of a proposal."""


class ProbeFailed(Exception):
    """The site did not respond at all. `refused`: the address must not be requested."""

    def __init__(self, message: str, *, refused: bool) -> None:
        self.refused = refused
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a probe."""

    report: Report
    proposal: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Probing:
    """One probe of one website. `takes` returns whether the service can read a proposed source."""

    visit: Visit
    documents: Documents
    limits: Limits
    takes: Takes

    async def run(self, url: str) -> Outcome:
        """Probe the website and return the outcome, which may be incomplete. Raises ProbeFailed."""
        try:
            robots = await self.visit.robots(url)
        except Unreachable as error:
            raise ProbeFailed(str(error), refused=error.refused) from None
        seen = Seen(url, robots)
        try:
            await self._look(seen)
        except Spent as end:
            self.visit.note(str(end))
        return self._judged(seen)

    async def _look(self, seen: Seen) -> None:
        closed = seen.robots.state in (RobotsState.UNREACHABLE, RobotsState.DISALLOW_ALL)
        if closed and not await self.visit.allows(seen.url):
            return
        await self._land(seen)
        if seen.wall is not None or seen.file is not None:
            return
        await self._ask_platforms(seen)
        if seen.wall is None:
            await self._read_sitemaps(seen)
            await self._sample(seen)

    async def _land(self, seen: Seen) -> None:
        """Read the landing page: a page, an obstacle or a file."""
        asked = seen.url
        response = await self.visit.try_get(asked, most=self.limits.listing_bytes)
        if response is None:
            return
        seen.url, seen.landing = response.url, response.status
        seen.robots = await self.visit.robots(response.url)
        if response.is_good and files.is_sitemap(response):
            await self._take_sitemap(seen, response)
            return
        seen.file = files.recognised(response)
        if seen.file is not None:
            found = seen.file.listing
            seen.feed = PlatformFeed(
                Platform.CUSTOM, response.url, response.status, found.products, found.total, found.fields
            )
            return
        page = await self.documents.page(response) if response.is_page else PageFacts()
        seen.page = page
        seen.visited.append((response, page))
        seen.wall = walls.judged(asked, response, page)
        if not response.is_good and seen.wall is None:
            self.visit.note(f"{response.url} answers {response.status}.")
        if page.cut:
            self.visit.note(f"{response.url} is longer or deeper than pages are, and was not read to its end.")

    async def _ask_platforms(self, seen: Seen) -> None:
        """Request the product lists of the suspected platforms, or of all platforms if none is suspected."""
        for endpoint in ENDPOINTS:
            answered = seen.feed is not None and seen.feed.products is not None
            if not answered and platforms.judged(seen.visited).suspects(endpoint.platform):
                await self._ask_platform(seen, endpoint)

    async def _ask_platform(self, seen: Seen, endpoint: Endpoint) -> None:
        url = f"{origin_of(seen.url)}{endpoint.path}"
        response = await self.visit.try_get(f"{url}?{endpoint.query}", accept=_JSON, most=self.limits.listing_bytes)
        if response is None or self._is_limited(seen, response):
            return
        found = listing(endpoint, response, await self.documents.value(response))
        if found is not None:
            seen.endpoints.append(endpoint.signal)
            seen.feed = await self._completed(seen, endpoint, url, response.status, found)
        elif platforms.judged(seen.visited).platform == endpoint.platform:
            seen.feed = PlatformFeed(endpoint.platform, url, response.status)

    async def _completed(self, seen: Seen, endpoint: Endpoint, url: str, status: int, found: Listing) -> PlatformFeed:
        """Return the feed, completed with the product count and currency of a Shopify shop's metadata."""
        total, currency = found.total, found.currency
        if endpoint.platform == Platform.SHOPIFY:
            answer = await self.visit.try_get(f"{origin_of(seen.url)}{SHOP}", accept=_JSON)
            if answer is not None and answer.is_good:
                told = shop(await self.documents.value(answer))
                total, currency = told.total if told.total is not None else total, told.currency
        if currency:
            seen.currencies.add(currency)
        return PlatformFeed(endpoint.platform, url, status, found.products, total, found.fields)

    async def _read_sitemaps(self, seen: Seen) -> None:
        """Read the sitemaps in robots.txt, or the usual one; of an index those that list products first."""
        waiting = product_pages.in_order(seen.robots.sitemaps) or [f"{origin_of(seen.url)}/sitemap.xml"]
        waiting = [url for url in waiting if url not in seen.sitemaps_read]
        known = {*waiting, *seen.sitemaps_read}
        tries = 2 * SITEMAPS
        while waiting and tries and len(seen.sitemaps_read) < SITEMAPS:
            url, tries = waiting.pop(0), tries - 1
            if not _is_near(url, seen.url):
                self.visit.note(f"The sitemap {url} is another site's and was not read.")
                continue
            response = await self.visit.try_get(
                url, accept="application/xml, */*;q=0.5", most=self.limits.sitemap_bytes
            )
            if response is None or self._is_limited(seen, response):
                seen.truncated = True
                continue
            if response.is_good:
                more = [one for one in await self._take_sitemap(seen, response) if one not in known]
                known.update(more)
                waiting = product_pages.in_order([*more, *waiting])
        seen.truncated = (seen.truncated and bool(seen.sitemaps_read)) or bool(waiting)

    async def _take_sitemap(self, seen: Seen, response: Response) -> tuple[str, ...]:
        """Count a sitemap and return the sitemaps that it names."""
        facts = await self.documents.sitemap(response)
        if not facts.readable:
            self.visit.note(f"{response.url} is no sitemap that can be read.")
            return ()
        seen.sitemaps_read.append(response.url)
        seen.truncated = seen.truncated or not facts.whole
        seen.product_pages += facts.product_pages
        seen.examples += [url for url in facts.examples if _is_near(url, seen.url)]
        return facts.sitemaps

    async def _sample(self, seen: Seen) -> None:
        """Read a sample of product pages, including the requested page if it is one."""
        found = list(dict.fromkeys(seen.examples))
        if not found and seen.page is not None:
            found = [url for url in seen.page.links if product_pages.is_product_page(url) and _is_near(url, seen.url)]
        if seen.page is not None and seen.landing is not None and seen.page.blocks.products and not found:
            self._count(seen, seen.url, seen.landing, seen.page)
        most = SAMPLED_BESIDE_FEED if seen.feed is not None and seen.feed.products else SAMPLED
        for url in product_pages.spread(found, most):
            response = await self.visit.try_get(url)
            if response is None:
                continue
            if self._is_limited(seen, response):
                return
            page = await self.documents.page(response) if response.is_page else PageFacts()
            if response.is_good and (wall := walls.judged(url, response, page)):
                seen.wall = wall
                return
            self._count(seen, url, response.status, page if response.is_good else PageFacts())
            if response.is_good:
                seen.visited.append((response, page))

    def _count(self, seen: Seen, url: str, status: int, page: PageFacts) -> None:
        seen.sampled.append(SampledPage(url, status, len(page.blocks.products)))
        seen.products += page.blocks.products
        seen.malformed += page.blocks.malformed
        seen.currencies |= page.blocks.currencies

    def _is_limited(self, seen: Seen, response: Response) -> bool:
        """Return whether the site throttles requests; then it is not requested again."""
        if response.status == 429:
            seen.wall = walls.judged(response.url, response, PageFacts())
            raise Spent(f"{response.url} answers 429, so nothing more was asked.")
        return False

    def _judged(self, seen: Seen) -> Outcome:
        judgement = platforms.judged(seen.visited, seen.endpoints)
        offered = self._proposed(seen)
        readable = offered is None or self.takes(offered)
        if offered is not None and not readable:
            self.visit.note(
                f"No connector of this service reads {offered['connector']} sources, so no source is proposed."
            )
        report = Report(
            final_url=seen.url,
            robots=seen.robots,
            platform=judgement.platform,
            confidence=0.0 if seen.saw_nothing and judgement.platform == Platform.CUSTOM else judgement.confidence,
            evidence=judgement.evidence,
            wall=seen.wall,
            feed=seen.feed,
            sitemap=seen.sitemap,
            sample=seen.sample,
            disallowed=self.visit.disallowed,
            requests=self.visit.requests,
            notes=self.visit.notes,
            estimate=estimate.judged(seen, readable=readable),
        )
        return cleaned(Outcome(report, offered if readable else None))

    def _proposed(self, seen: Seen) -> Mapping[str, Any] | None:
        currency = estimate.agreed(seen.currencies)
        if seen.file is not None and seen.feed is not None:
            return estimate.for_file(seen.feed.url, seen.file.format, currency) if seen.file.format else None
        if seen.feed is not None and seen.feed.products:
            return estimate.for_feed(seen.feed, currency)
        judged = estimate.judged(seen)
        if (judged.kind, judged.effort) == (Way.STRUCTURED_DATA, Effort.MEDIUM):
            return estimate.for_pages(seen.url, currency)
        return None


def _is_near(url: str, site: str) -> bool:
    """Return whether both belong to one site: the same host, or a subdomain of the other."""
    first, second = host_of(url).removeprefix("www."), host_of(site).removeprefix("www.")
    return first == second or first.endswith(f".{second}") or second.endswith(f".{first}")
