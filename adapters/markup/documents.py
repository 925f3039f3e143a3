"""Parsing of the documents of website checks, with limits, so that no website can delay the checks of others."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from adapters.markup import page
from connectors.sdk import sitemaps
from connectors.sdk.robots import Robots
from domain.probes.facts import PageFacts, ProbeResponse, SitemapFacts, is_requestable_url
from domain.probes.ports import RobotsRules
from domain.probes.product_pages import is_product_page_url, is_product_sitemap_url, sample_evenly
from ports.parsing import ParserRunner, ParserTerminated

_MAX_ROBOTS_SITEMAPS = 20
MAX_UNPACKED_BYTES = 20 * 1024 * 1024
"""Maximum size of a decompressed sitemap in bytes."""
MAX_SITEMAP_URLS = 50_000
"""Maximum number of page URLs in one sitemap (sitemaps.org); further ones are ignored and make it incomplete."""
MAX_INDEX_SITEMAPS = 1_000
"""Maximum number of sitemaps in a sitemap index; further ones are ignored and make it incomplete."""
MAX_EXAMPLES = 200


@dataclass(frozen=True, slots=True)
class RobotsFacts:
    """Entries of a robots.txt that apply to the whole site.

    Attributes:
        crawl_delay_seconds: Minimum seconds between requests; None if the file states none.
        sitemaps: URLs of sitemaps.
    """

    crawl_delay_seconds: float | None = None
    sitemaps: tuple[str, ...] = ()


class MarkupDocuments:
    """Parser of web documents, an implementation of the port DocumentParser (domain/probes/ports.py).

    Args:
        run: Runs a parser in a thread or a process. If it terminates the parser, the result is empty; a robots.txt then
            disallows all URLs.
    """

    def __init__(self, run: ParserRunner = asyncio.to_thread) -> None:
        self._run = run

    async def parse_robots(self, body: bytes) -> RobotsRules:
        try:
            facts = await self._run(parse_robots, body) if body else RobotsFacts()
        except ParserTerminated:
            return _Rules(_DISALLOW_ALL, RobotsFacts(), self._run)
        return _Rules(body, facts, self._run)

    async def parse_page(self, response: ProbeResponse) -> PageFacts:
        kind = response.headers.get("content-type", "")
        try:
            return await self._run(page.parse_page, response.body, response.url, kind)
        except ParserTerminated:
            return PageFacts(is_truncated=True)

    async def parse_sitemap(self, response: ProbeResponse) -> SitemapFacts:
        try:
            return await self._run(parse_probe_sitemap, response)
        except ParserTerminated:
            return SitemapFacts(is_complete=False, is_sitemap=False)

    async def parse_json(self, response: ProbeResponse) -> Any:
        try:
            return await self._run(decode_json_or_none, response.body)
        except ParserTerminated:
            return None


_DISALLOW_ALL = b"User-agent: *\nDisallow: /\n"
"""Content of a robots.txt that replaces one that cannot be parsed (RFC 9309 §2.3.1.4)."""


class _Rules:
    """Rules of a robots.txt, an implementation of the port RobotsRules (domain/probes/ports.py)."""

    # Each call parses the rules again, because a website check tests only some dozens of URLs.

    def __init__(self, body: bytes, facts: RobotsFacts, run: ParserRunner) -> None:
        self._body, self._run = body, run
        self.crawl_delay_seconds, self.sitemaps = facts.crawl_delay_seconds, facts.sitemaps

    async def is_allowed(self, url: str) -> bool:
        try:
            return not self._body or await self._run(is_allowed, self._body, url)
        except ParserTerminated:
            return False


def parse_robots(body: bytes) -> RobotsFacts:
    """Parse a robots.txt; return the entries that apply to the whole site."""
    robots = Robots(body)
    usable = dict.fromkeys(url for url in robots.sitemaps if is_requestable_url(url))
    return RobotsFacts(robots.delay, tuple(usable)[:_MAX_ROBOTS_SITEMAPS])


def is_allowed(body: bytes, url: str) -> bool:
    """Return whether a robots.txt allows Joinery to request the URL."""
    return Robots(body).allows(url)


def parse_probe_sitemap(response: ProbeResponse) -> SitemapFacts:
    """Parse a sitemap up to the first error; return its further sitemaps, its number of product pages, and examples."""
    found, has_products_only = (
        sitemaps.parse_sitemap(response.body, MAX_UNPACKED_BYTES),
        is_product_sitemap_url(response.url),
    )
    pages = [
        url
        for url in dict.fromkeys(found.pages[:MAX_SITEMAP_URLS])
        if is_requestable_url(url) and (has_products_only or is_product_page_url(url))
    ]
    return SitemapFacts(
        sitemaps=tuple([url for url in found.sitemaps if is_requestable_url(url)][:MAX_INDEX_SITEMAPS]),
        product_page_count=len(pages),
        product_page_examples=tuple(sample_evenly(pages, MAX_EXAMPLES)),
        is_complete=response.is_complete
        and not found.fault
        and len(found.pages) <= MAX_SITEMAP_URLS
        and len(found.sitemaps) <= MAX_INDEX_SITEMAPS,
        is_sitemap=found.is_sitemap and not response.is_page,
    )


def decode_json_or_none(body: bytes) -> Any:
    """Decode a JSON document; return None if the body is not valid JSON."""
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
