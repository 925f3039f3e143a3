"""Probe of a website.

A probe reads robots.txt, the landing page, product lists, sitemaps and sampled product pages, then estimates the
effort.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.probes import access_blocks, estimate, files, platforms, product_pages
from domain.probes.estimate import ProbeFindings
from domain.probes.facts import PageFacts, ProbeResponse, extract_host, extract_origin
from domain.probes.files import (
    LIST_ENDPOINTS,
    SHOP_METADATA_PATH,
    ListEndpoint,
    ProductListing,
    parse_listing,
    parse_shop_metadata,
)
from domain.probes.model import (
    Effort,
    Platform,
    PlatformFeed,
    ProbeReport,
    ReadingMethod,
    RobotsState,
    SampledPage,
)
from domain.probes.ports import DocumentParser, Unreachable
from domain.probes.text_cleanup import clean_strings
from domain.probes.usecases.polite_client import LimitReached, PoliteClient, ProbeLimits

MAX_SITEMAPS = 6
"""Maximum number of sitemaps that are read."""
MAX_SAMPLED_PAGES = 8
"""Maximum number of product pages that are read."""
MAX_SAMPLED_PAGES_WITH_FEED = 3
"""Maximum number of product pages that are read if a product list responded, which is better evidence."""
_JSON = "application/json, */*;q=0.5"

CanReadProposal = Callable[[Mapping[str, Any]], bool]
"""Function that returns whether this service can read a proposed source."""


class ProbeFailed(Exception):
    """Error for a site whose robots.txt could not be requested, so that the probe has no report.

    Attributes:
        is_forbidden: Whether the URL must not be requested, for example because its host is private; False if the site
            did not respond.
    """

    def __init__(self, message: str, *, is_forbidden: bool) -> None:
        self.is_forbidden = is_forbidden
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """Result of a probe.

    Attributes:
        proposal: The request body that creates a source for the website, or None.
    """

    report: ProbeReport
    proposal: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ProbeRunner:
    """Executor of one probe.

    Attributes:
        web_client: Sends the requests.
        documents: Parses the documents.
        limits: The limits of the probe.
        can_read_proposal: Returns whether this service can read a proposed source.
    """

    web_client: PoliteClient
    documents: DocumentParser
    limits: ProbeLimits
    can_read_proposal: CanReadProposal

    async def run_probe(self, url: str) -> ProbeOutcome:
        """Probe the website and return the result, which is incomplete if a limit was reached. Raises ProbeFailed."""
        try:
            robots = await self.web_client.get_robots(url)
        except Unreachable as error:
            raise ProbeFailed(str(error), is_forbidden=error.is_forbidden) from None
        findings = ProbeFindings(url, robots)
        try:
            await self._examine_site(findings)
        except LimitReached as end:
            self.web_client.add_note(str(end))
        return self._build_outcome(findings)

    async def _examine_site(self, findings: ProbeFindings) -> None:
        """Read the documents of the site into the findings, until an access barrier or a data file is found."""
        is_forbidden = findings.robots.state in (RobotsState.UNREACHABLE, RobotsState.DISALLOW_ALL)
        if is_forbidden and not await self.web_client.is_allowed(findings.url):
            return
        await self._read_landing_page(findings)
        if findings.access_block is not None or findings.file is not None:
            return
        await self._query_product_lists(findings)
        if findings.access_block is None:
            await self._read_sitemaps(findings)
            await self._sample_pages(findings)

    async def _read_landing_page(self, findings: ProbeFindings) -> None:
        """Read the document at the URL: a page, a sitemap or a data file; detect an access barrier on a page."""
        requested_url = findings.url
        response = await self.web_client.try_get(requested_url, max_bytes=self.limits.listing_bytes)
        if response is None:
            return
        findings.url, findings.landing_status = response.url, response.status
        findings.robots = await self.web_client.get_robots(response.url)
        if response.is_success and files.is_sitemap(response):
            await self._add_sitemap(findings, response)
            return
        findings.file = files.detect_file(response)
        if findings.file is not None:
            found = findings.file.listing
            findings.feed = PlatformFeed(
                Platform.CUSTOM, response.url, response.status, found.product_count, found.total_count, found.fields
            )
            return
        page = await self.documents.parse_page(response) if response.is_page else PageFacts()
        findings.landing_page = page
        findings.pages.append((response, page))
        findings.access_block = access_blocks.detect_access_block(requested_url, response, page)
        if not response.is_success and findings.access_block is None:
            self.web_client.add_note(f"{response.url} responds with status {response.status}.")
        if page.is_truncated:
            self.web_client.add_note(f"{response.url} is too long or too deeply nested and was read only in part.")

    async def _query_product_lists(self, findings: ProbeFindings) -> None:
        """Request the product lists of suspected platforms; if the platform is unknown, of all platforms."""
        for endpoint in LIST_ENDPOINTS:
            has_feed = findings.feed is not None and findings.feed.products is not None
            if not has_feed and platforms.detect_platform(findings.pages).should_query(endpoint.platform):
                await self._query_product_list(findings, endpoint)

    async def _query_product_list(self, findings: ProbeFindings, endpoint: ListEndpoint) -> None:
        """Request the product list of a platform and add it to the findings."""
        url = f"{extract_origin(findings.url)}{endpoint.path}"
        response = await self.web_client.try_get(
            f"{url}?{endpoint.query}", accept=_JSON, max_bytes=self.limits.listing_bytes
        )
        if response is None:
            return
        self._raise_if_rate_limited(findings, response)
        listing = parse_listing(endpoint, response, await self.documents.parse_json(response))
        if listing is not None:
            findings.endpoint_paths.append(endpoint.signal_text)
            findings.feed = await self._build_feed(findings, endpoint, url, response.status, listing)
        elif platforms.detect_platform(findings.pages).platform == endpoint.platform:
            findings.feed = PlatformFeed(endpoint.platform, url, response.status)

    async def _build_feed(
        self, findings: ProbeFindings, endpoint: ListEndpoint, url: str, status: int, listing: ProductListing
    ) -> PlatformFeed:
        """Return the summary of a platform's product list for the report.

        For Shopify, the number of products and the currency are read from the shop's metadata.
        """
        total, currency = listing.total_count, listing.currency
        if endpoint.platform == Platform.SHOPIFY:
            response = await self.web_client.try_get(
                f"{extract_origin(findings.url)}{SHOP_METADATA_PATH}", accept=_JSON
            )
            if response is not None and response.is_success:
                shop_info = parse_shop_metadata(await self.documents.parse_json(response))
                total, currency = (
                    shop_info.total_count if shop_info.total_count is not None else total,
                    shop_info.currency,
                )
        if currency:
            findings.currencies.add(currency)
        return PlatformFeed(endpoint.platform, url, status, listing.product_count, total, listing.fields)

    async def _read_sitemaps(self, findings: ProbeFindings) -> None:
        """Read the sitemaps that robots.txt lists, or else /sitemap.xml, and add their product pages to the findings.

        From a sitemap index, product sitemaps are read first.
        """
        pending = product_pages.sort_sitemaps(findings.robots.sitemaps) or [
            f"{extract_origin(findings.url)}/sitemap.xml"
        ]
        pending = [url for url in pending if url not in findings.sitemaps_read]
        known = {*pending, *findings.sitemaps_read}
        remaining_tries = 2 * MAX_SITEMAPS
        while pending and remaining_tries and len(findings.sitemaps_read) < MAX_SITEMAPS:
            url, remaining_tries = pending.pop(0), remaining_tries - 1
            if not _is_same_site(url, findings.url):
                self.web_client.add_note(f"The sitemap {url} belongs to another site and was not read.")
                continue
            response = await self.web_client.try_get(
                url, accept="application/xml, */*;q=0.5", max_bytes=self.limits.sitemap_bytes
            )
            if response is None:
                findings.are_sitemaps_truncated = True
                continue
            self._raise_if_rate_limited(findings, response)
            if response.is_success:
                more = [one for one in await self._add_sitemap(findings, response) if one not in known]
                known.update(more)
                pending = product_pages.sort_sitemaps([*more, *pending])
        findings.are_sitemaps_truncated = (findings.are_sitemaps_truncated and bool(findings.sitemaps_read)) or bool(
            pending
        )

    async def _add_sitemap(self, findings: ProbeFindings, response: ProbeResponse) -> tuple[str, ...]:
        """Add a sitemap to the findings; return the URLs of the sitemaps that it lists."""
        facts = await self.documents.parse_sitemap(response)
        if not facts.is_sitemap:
            self.web_client.add_note(f"{response.url} is not a readable sitemap.")
            return ()
        findings.sitemaps_read.append(response.url)
        findings.are_sitemaps_truncated = findings.are_sitemaps_truncated or not facts.is_complete
        findings.product_page_count += facts.product_page_count
        findings.product_page_examples += [
            url for url in facts.product_page_examples if _is_same_site(url, findings.url)
        ]
        return facts.sitemaps

    async def _sample_pages(self, findings: ProbeFindings) -> None:
        """Read a sample of product pages; if none are known, a landing page with products is the sample."""
        urls = list(dict.fromkeys(findings.product_page_examples))
        if not urls and findings.landing_page is not None:
            urls = [
                url
                for url in findings.landing_page.links
                if product_pages.is_product_page_url(url) and _is_same_site(url, findings.url)
            ]
        if (
            findings.landing_page is not None
            and findings.landing_status is not None
            and findings.landing_page.json_ld.products
            and not urls
        ):
            self._add_sampled_page(findings, findings.url, findings.landing_status, findings.landing_page)
        max_pages = (
            MAX_SAMPLED_PAGES_WITH_FEED if findings.feed is not None and findings.feed.products else MAX_SAMPLED_PAGES
        )
        for url in product_pages.sample_evenly(urls, max_pages):
            response = await self.web_client.try_get(url)
            if response is None:
                continue
            self._raise_if_rate_limited(findings, response)
            page = await self.documents.parse_page(response) if response.is_page else PageFacts()
            if response.is_success and (access_block := access_blocks.detect_access_block(url, response, page)):
                findings.access_block = access_block
                return
            self._add_sampled_page(findings, url, response.status, page if response.is_success else PageFacts())
            if response.is_success:
                findings.pages.append((response, page))

    def _add_sampled_page(self, findings: ProbeFindings, url: str, status: int, page: PageFacts) -> None:
        """Add a page of the sample and its products to the findings."""
        findings.sampled_pages.append(SampledPage(url, status, len(page.json_ld.products)))
        findings.sampled_products += page.json_ld.products
        findings.malformed_blocks += page.json_ld.malformed_count
        findings.currencies |= page.json_ld.currencies

    def _raise_if_rate_limited(self, findings: ProbeFindings, response: ProbeResponse) -> None:
        """Record the access barrier and raise LimitReached if the site limits the request rate."""
        if response.status == 429:
            findings.access_block = access_blocks.detect_access_block(response.url, response, PageFacts())
            raise LimitReached(f"{response.url} responds with status 429, so no further requests were made.")

    def _build_outcome(self, findings: ProbeFindings) -> ProbeOutcome:
        """Return the report on the findings, and the proposed source if this service can read it."""
        judgement = platforms.detect_platform(findings.pages, findings.endpoint_paths)
        proposal = self._propose_source(findings)
        readable = proposal is None or self.can_read_proposal(proposal)
        if proposal is not None and not readable:
            self.web_client.add_note(
                f"No connector of this service supports {proposal['connector']} sources, so no source is proposed."
            )
        report = ProbeReport(
            final_url=findings.url,
            robots=findings.robots,
            platform=judgement.platform,
            confidence=0.0
            if findings.has_read_nothing and judgement.platform == Platform.CUSTOM
            else judgement.confidence,
            evidence=judgement.evidence,
            wall=findings.access_block,
            feed=findings.feed,
            sitemap=findings.sitemap,
            sample=findings.sample,
            disallowed=self.web_client.disallowed_urls,
            requests=self.web_client.request_count,
            notes=self.web_client.notes,
            estimate=estimate.estimate_effort(findings, is_readable=readable),
        )
        return clean_strings(ProbeOutcome(report, proposal if readable else None))

    def _propose_source(self, findings: ProbeFindings) -> Mapping[str, Any] | None:
        """Return the request body that creates a source according to the findings, or None."""
        currency = estimate.find_common_currency(findings.currencies)
        if findings.file is not None and findings.feed is not None:
            return (
                estimate.propose_file_source(findings.feed.url, findings.file.format, currency)
                if findings.file.format
                else None
            )
        if findings.feed is not None and findings.feed.products:
            return estimate.propose_feed_source(findings.feed, currency)
        judged = estimate.estimate_effort(findings)
        if (judged.kind, judged.effort) == (ReadingMethod.STRUCTURED_DATA, Effort.MEDIUM):
            return estimate.propose_page_source(findings.url, currency)
        return None


def _is_same_site(url: str, site: str) -> bool:
    """Return whether two URLs have the same host, or one host is a subdomain of the other."""
    first, second = extract_host(url).removeprefix("www."), extract_host(site).removeprefix("www.")
    return first == second or first.endswith(f".{second}") or second.endswith(f".{first}")
