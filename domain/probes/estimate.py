"""The effort of connecting a website, and the proposed source."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.money import EXPONENTS
from domain.probes.facts import PageFacts, Response, host_of, origin_of
from domain.probes.files import File
from domain.probes.model import (
    Effort,
    Estimate,
    PlatformFeed,
    Robots,
    RobotsState,
    Sample,
    SampledPage,
    Sitemap,
    Wall,
    WallKind,
    Way,
)
from domain.probes.structured_data import coverage

_WELL = 0.8
"""Minimum share of sampled products that must state a field."""
_NEEDED = ("name", "price")
_FARTHEST = 25_000
"""Maximum number of products in a Shopify shop's list."""
_DAY = 86_400.0


@dataclass(slots=True)
class Seen:
    """Findings of a probe so far, from which report and estimate are made."""

    url: str
    robots: Robots
    landing: int | None = None
    """The status of the landing page; None if it was not read."""
    page: PageFacts | None = None
    visited: list[tuple[Response, PageFacts]] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    wall: Wall | None = None
    feed: PlatformFeed | None = None
    file: File | None = None
    """The feed is a separate file."""
    sitemaps_read: list[str] = field(default_factory=list)
    product_pages: int = 0
    examples: list[str] = field(default_factory=list)
    truncated: bool = False
    sampled: list[SampledPage] = field(default_factory=list)
    products: list[frozenset[str]] = field(default_factory=list)
    malformed: int = 0
    currencies: set[str] = field(default_factory=set)

    @property
    def sitemap(self) -> Sitemap | None:
        """The summary of the sitemaps that were read, or None."""
        if not self.sitemaps_read:
            return None
        return Sitemap(tuple(self.sitemaps_read), self.product_pages, self.truncated)

    @property
    def sample(self) -> Sample | None:
        """The summary of the sampled product pages, or None."""
        if not self.sampled:
            return None
        bare = sum(1 for page in self.sampled if page.status < 300 and not page.products)
        return Sample(tuple(self.sampled), self.malformed, coverage(self.products, bare))

    @property
    def saw_nothing(self) -> bool:
        """Return whether no page of the site was read, so that missing signs mean nothing."""
        return not self.endpoints and (self.wall is not None or not any(one.is_good for one, _ in self.visited))


def judged(found: Seen, *, readable: bool = True) -> Estimate:
    """Return the estimate; `readable` states whether a connector of this service reads the feed.

    What is sure to work comes first: a feed that answered outweighs a wall in front of the pages.
    """
    if found.file is not None:
        return _by_file(found.file, readable)
    if found.feed is not None and found.feed.products is not None:
        return _by_feed(found.feed, readable)
    return _closed(found) or _by_pages(found)


def _by_feed(feed: PlatformFeed, readable: bool) -> Estimate:
    many = feed.total is not None and feed.total > _FARTHEST
    reasons = [f"The shop lists its products for machines at {feed.url}."]
    if many:
        reasons.append(f"It has {feed.total} products; its list shows no more than {_FARTHEST}.")
    if not readable:
        reasons.append("No connector of this service reads that list yet.")
    if feed.products == 0:
        reasons.append("The list is empty now.")
    effort = Effort.LOW if readable and not many and feed.products else Effort.MEDIUM
    return Estimate(effort, Way.PLATFORM_FEED, tuple(reasons))


def _by_file(file: File, readable: bool) -> Estimate:
    if file.remedy:
        return Estimate(Effort.MEDIUM, Way.FILE, ("The URL is a file of its own.", file.remedy))
    if not readable:
        return Estimate(Effort.MEDIUM, Way.FILE, ("The URL is a file.", "No connector of this service reads it."))
    return Estimate(Effort.LOW, Way.FILE, ("The URL is a file that is read as it is.",))


def _closed(found: Seen) -> Estimate | None:
    """Return the estimate for a site that must not be read, or None."""
    if found.robots.state == RobotsState.DISALLOW_ALL:
        return Estimate(Effort.INFEASIBLE, Way.NONE, ("robots.txt forbids everything; ask the vendor for a feed.",))
    if found.robots.state == RobotsState.UNREACHABLE:
        reason = "robots.txt cannot be read, and so nothing may be (RFC 9309); try again later."
        return Estimate(Effort.INFEASIBLE, Way.NONE, (reason,))
    if found.wall is not None and found.wall.kind == WallKind.RATE_LIMIT:
        return Estimate(Effort.HIGH, Way.PAGES, ("The site limits how often it is asked.", found.wall.detail))
    if found.wall is not None:
        reason = "The site keeps readers out; ask the vendor for a feed or for access."
        return Estimate(Effort.INFEASIBLE, Way.NONE, (reason, found.wall.detail))
    if found.landing is None or found.landing >= 300:
        told = "was not read" if found.landing is None else f"answers {found.landing}"
        if not found.sampled:
            return Estimate(Effort.INFEASIBLE, Way.NONE, (f"The page {told}, and nothing else was found.",))
    return None


def _by_pages(found: Seen) -> Estimate:
    """Return the estimate for reading product pages, by structured data or else by their HTML."""
    sample = found.sample or Sample()
    count = found.product_pages
    if not sample.pages and not count:
        return Estimate(Effort.HIGH, Way.PAGES, ("No page of a product was found; name one, or ask for a feed.",))
    covered = [name for name in _NEEDED if sample.coverage.get(name, 0.0) >= _WELL]
    reasons = []
    effort, way = Effort.HIGH, Way.PAGES
    if len(covered) == len(_NEEDED):
        effort, way = Effort.MEDIUM, Way.STRUCTURED_DATA
        reasons.append("Pages of products state name and price as JSON-LD.")
    elif sample.coverage and any(sample.coverage.values()):
        way = Way.STRUCTURED_DATA
        reasons.append("Pages of products state some of what is needed as JSON-LD, but not name and price everywhere.")
    else:
        reasons.append("Pages of products state nothing as JSON-LD; they would be read by their looks.")
    if count:
        reasons.append(f"Its sitemaps list {count} pages of products.")
    elif effort == Effort.MEDIUM:
        effort = Effort.HIGH
        reasons.append("No sitemap lists them, so they would be found by walking.")
    took = count * (found.robots.crawl_delay_seconds or 0.0)
    if took > _DAY:
        effort = Effort.HIGH
        reasons.append(f"At the pace that robots.txt asks for, reading them once takes {took / _DAY:.1f} days.")
    return Estimate(effort, way, tuple(reasons))


DAILY = 1_440
"""Minutes between pulls."""
_FILES = "csv"
_PAGES = "json_ld"
_SIGNING_IN = frozenset(("woocommerce",))
"""Platforms whose connector needs credentials, which are stored after the source is created."""


def for_feed(feed: PlatformFeed, currency: str | None) -> dict[str, Any]:
    """Return the proposed source for a platform's product list, read by the connector of that platform.

    No other connector fits, because the meaning of numbers depends on the platform (WooCommerce's prices are minor units).
    """
    config = {"url": f"{origin_of(feed.url)}/", "platform": str(feed.platform)}
    return _source(feed.url, str(feed.platform), config, currency)


def for_file(url: str, format: str, currency: str | None = None) -> dict[str, Any]:
    """Return the proposed source for a file."""
    return _source(url, _FILES, {"url": url, "format": format}, currency)


def for_pages(url: str, currency: str | None) -> dict[str, Any]:
    """Return the proposed source for the structured data on a site's pages, found by its sitemaps."""
    return _source(url, _PAGES, {"url": f"{origin_of(url)}/", "pages": "site"}, currency)


def _source(url: str, connector: str, config: dict[str, Any], currency: str | None) -> dict[str, Any]:
    if currency in EXPONENTS:
        config["currency"] = currency
    return {
        "name": host_of(url)[:200],
        "kind": "api" if connector in _SIGNING_IN else "url",
        "connector": connector,
        "config": config,
        "schedule": {"interval_minutes": DAILY},
    }


def agreed(currencies: Collection[str]) -> str | None:
    """Return the currency of the site if all observations agree on one known currency."""
    known = {currency for currency in currencies if currency in EXPONENTS}
    return known.pop() if len(known) == 1 and len(set(currencies)) == 1 else None
