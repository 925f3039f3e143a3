"""Estimate of the effort of connecting a website as a source, and proposals of sources."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.money import EXPONENTS
from domain.probes.facts import PageFacts, ProbeResponse, extract_host, extract_origin
from domain.probes.files import FeedFile
from domain.probes.model import (
    AccessBlock,
    AccessBlockKind,
    Effort,
    Estimate,
    PageSample,
    PlatformFeed,
    ReadingMethod,
    Robots,
    RobotsState,
    SampledPage,
    Sitemap,
)
from domain.probes.structured_data import compute_coverage

_MIN_COVERAGE = 0.8
"""Share (0 to 1) of sampled products that must state a field for the field to count as covered."""
_REQUIRED_FIELDS = ("name", "price")
_MAX_SHOPIFY_PRODUCTS = 25_000
"""Maximum number of products that the product list of a Shopify shop returns."""
_DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class ProbeFindings:
    """Data that a probe has collected so far, from which the report and the estimate are made.

    Attributes:
        url: The URL of the website, after redirects.
        robots: The robots.txt rules of the site.
        landing_status: The HTTP status of the landing page; None if the page was not read.
        landing_page: The contents of the landing page.
        pages: The pages that were read, with their responses.
        endpoint_paths: The paths of product lists that responded.
        access_block: The access barrier of the site, or None.
        feed: The product list of the platform, or the summary of `file`; None if neither was found.
        file: The data file at the URL, or None.
        sitemaps_read: The URLs of the sitemaps that were read.
        product_page_count: The number of product pages in the sitemaps.
        product_page_examples: URLs of some product pages from the sitemaps.
        are_sitemaps_truncated: Whether sitemaps were omitted or read only in part.
        sampled_pages: The product pages that were read as a sample.
        sampled_products: For each product on the sampled pages, the fields that structured data states.
        malformed_blocks: The number of structured data blocks that could not be parsed.
        currencies: The currencies of prices, in lower case.
    """

    url: str
    robots: Robots
    landing_status: int | None = None
    landing_page: PageFacts | None = None
    pages: list[tuple[ProbeResponse, PageFacts]] = field(default_factory=list)
    endpoint_paths: list[str] = field(default_factory=list)
    access_block: AccessBlock | None = None
    feed: PlatformFeed | None = None
    file: FeedFile | None = None
    sitemaps_read: list[str] = field(default_factory=list)
    product_page_count: int = 0
    product_page_examples: list[str] = field(default_factory=list)
    are_sitemaps_truncated: bool = False
    sampled_pages: list[SampledPage] = field(default_factory=list)
    sampled_products: list[frozenset[str]] = field(default_factory=list)
    malformed_blocks: int = 0
    currencies: set[str] = field(default_factory=set)

    @property
    def sitemap(self) -> Sitemap | None:
        """The summary of the sitemaps that were read, or None if none were read."""
        if not self.sitemaps_read:
            return None
        return Sitemap(tuple(self.sitemaps_read), self.product_page_count, self.are_sitemaps_truncated)

    @property
    def sample(self) -> PageSample | None:
        """The summary of the sampled product pages, or None if none were read."""
        if not self.sampled_pages:
            return None
        bare = sum(1 for page in self.sampled_pages if page.status < 300 and not page.products)
        return PageSample(
            tuple(self.sampled_pages), self.malformed_blocks, compute_coverage(self.sampled_products, bare)
        )

    @property
    def has_read_nothing(self) -> bool:
        """True if no page of the site could be read, so that missing signals say nothing about the platform."""
        return not self.endpoint_paths and (
            self.access_block is not None or not any(one.is_success for one, _ in self.pages)
        )


def estimate_effort(findings: ProbeFindings, *, is_readable: bool = True) -> Estimate:
    """Return the estimate of the effort and the method of connecting the site.

    If a product list or data file can be read, access barriers on pages have no influence.

    Args:
        findings: The findings.
        is_readable: Whether a connector of this service can read the product list or file.
    """
    if findings.file is not None:
        return _estimate_file(findings.file, is_readable)
    if findings.feed is not None and findings.feed.products is not None:
        return _estimate_feed(findings.feed, is_readable)
    return _estimate_unreadable_site(findings) or _estimate_pages(findings)


def _estimate_feed(feed: PlatformFeed, is_readable: bool) -> Estimate:
    """Return the estimate for a site with a product list that responded."""
    exceeds_limit = feed.total is not None and feed.total > _MAX_SHOPIFY_PRODUCTS
    reasons = [f"The shop has a machine-readable product list at {feed.url}."]
    if exceeds_limit:
        reasons.append(f"The shop has {feed.total} products, but the list returns at most {_MAX_SHOPIFY_PRODUCTS}.")
    if not is_readable:
        reasons.append("No connector of this service can read the shop's product list.")
    if feed.products == 0:
        reasons.append("The list is currently empty.")
    effort = Effort.LOW if is_readable and not exceeds_limit and feed.products else Effort.MEDIUM
    return Estimate(effort, ReadingMethod.PLATFORM_FEED, tuple(reasons))


def _estimate_file(file: FeedFile, is_readable: bool) -> Estimate:
    """Estimate the effort of connecting a URL that leads to a data file.

    Args:
        file: The data file.
        is_readable: Whether a connector of this service can parse the file.
    """
    if file.remedy:
        return Estimate(Effort.MEDIUM, ReadingMethod.FILE, ("The URL is a data file.", file.remedy))
    if not is_readable:
        return Estimate(
            Effort.MEDIUM,
            ReadingMethod.FILE,
            ("The URL is a data file.", "No connector of this service supports the file."),
        )
    return Estimate(Effort.LOW, ReadingMethod.FILE, ("The URL is a data file that a source can read directly.",))


def _estimate_unreadable_site(findings: ProbeFindings) -> Estimate | None:
    """Return the estimate for a site whose pages cannot or must not be read; None for other sites."""
    if findings.robots.state == RobotsState.DISALLOW_ALL:
        return Estimate(
            Effort.INFEASIBLE, ReadingMethod.NONE, ("robots.txt forbids all pages. Ask the vendor for a feed.",)
        )
    if findings.robots.state == RobotsState.UNREACHABLE:
        reason = "robots.txt cannot be read, so no page may be requested (RFC 9309). Try again later."
        return Estimate(Effort.INFEASIBLE, ReadingMethod.NONE, (reason,))
    if findings.access_block is not None and findings.access_block.kind == AccessBlockKind.RATE_LIMIT:
        return Estimate(
            Effort.HIGH, ReadingMethod.PAGES, ("The site limits the request rate.", findings.access_block.detail)
        )
    if findings.access_block is not None:
        reason = "The site blocks automated access. Ask the vendor for a feed or for access."
        return Estimate(Effort.INFEASIBLE, ReadingMethod.NONE, (reason, findings.access_block.detail))
    if findings.landing_status is None or findings.landing_status >= 300:
        problem = (
            "was not read" if findings.landing_status is None else f"responds with status {findings.landing_status}"
        )
        if not findings.sampled_pages:
            return Estimate(
                Effort.INFEASIBLE,
                ReadingMethod.NONE,
                (f"The page {problem}, and no product page was read. Check the URL, or ask the vendor for a feed.",),
            )
    return None


def _estimate_pages(findings: ProbeFindings) -> Estimate:
    """Return the estimate for reading product pages by structured data or HTML."""
    sample = findings.sample or PageSample()
    count = findings.product_page_count
    if not sample.pages and not count:
        return Estimate(
            Effort.HIGH,
            ReadingMethod.PAGES,
            ("No product page was found. Enter the URL of one, or ask the vendor for a feed.",),
        )
    covered = [name for name in _REQUIRED_FIELDS if sample.coverage.get(name, 0.0) >= _MIN_COVERAGE]
    reasons = []
    effort, method = Effort.HIGH, ReadingMethod.PAGES
    if len(covered) == len(_REQUIRED_FIELDS):
        effort, method = Effort.MEDIUM, ReadingMethod.STRUCTURED_DATA
        reasons.append("Product pages state name and price as JSON-LD.")
    elif sample.coverage and any(sample.coverage.values()):
        method = ReadingMethod.STRUCTURED_DATA
        reasons.append("Product pages have JSON-LD, but some lack a name or price.")
    else:
        reasons.append("Product pages have no JSON-LD, so their HTML must be parsed.")
    if count:
        reasons.append(f"The site's sitemaps list {count} product pages.")
    elif effort == Effort.MEDIUM:
        effort = Effort.HIGH
        reasons.append("No sitemap lists product pages, so they must be found by crawling.")
    total_seconds = count * (findings.robots.crawl_delay_seconds or 0.0)
    if total_seconds > _DAY_SECONDS:
        effort = Effort.HIGH
        reasons.append(
            f"At the crawl delay of robots.txt, reading all pages once takes {total_seconds / _DAY_SECONDS:.1f} days."
        )
    return Estimate(effort, method, tuple(reasons))


PROPOSED_INTERVAL_MINUTES = 1_440
"""Interval of the proposed source in minutes: one day."""
_FILE_CONNECTOR = "csv"
_PAGE_CONNECTOR = "json_ld"
_PLATFORMS_WITH_CREDENTIALS = frozenset(("woocommerce",))
"""Platforms whose connector needs credentials, which are stored after the source is created."""


def propose_feed_source(feed: PlatformFeed, currency: str | None) -> dict[str, Any]:
    """Return the request body that creates a source for a platform's product list.

    The source uses the connector of the platform, because platforms state prices differently: WooCommerce uses minor
    units.
    """
    config = {"url": f"{extract_origin(feed.url)}/", "platform": str(feed.platform)}
    return _build_source(feed.url, str(feed.platform), config, currency)


def propose_file_source(url: str, format: str, currency: str | None = None) -> dict[str, Any]:
    """Return the request body that creates a source for a data file."""
    return _build_source(url, _FILE_CONNECTOR, {"url": url, "format": format}, currency)


def propose_page_source(url: str, currency: str | None) -> dict[str, Any]:
    """Return the request body that creates a source for structured data on product pages, found by sitemaps."""
    return _build_source(url, _PAGE_CONNECTOR, {"url": f"{extract_origin(url)}/", "pages": "site"}, currency)


def _build_source(url: str, connector: str, config: dict[str, Any], currency: str | None) -> dict[str, Any]:
    """Return the request body that creates a source; unknown currencies are omitted."""
    if currency in EXPONENTS:
        config["currency"] = currency
    return {
        "name": extract_host(url)[:200],
        "kind": "api" if connector in _PLATFORMS_WITH_CREDENTIALS else "url",
        "connector": connector,
        "config": config,
        "schedule": {"interval_minutes": PROPOSED_INTERVAL_MINUTES},
    }


def find_common_currency(currencies: Collection[str]) -> str | None:
    """Return the currency if all prices have one known currency, else None."""
    known = {currency for currency in currencies if currency in EXPONENTS}
    return known.pop() if len(known) == 1 and len(set(currencies)) == 1 else None
