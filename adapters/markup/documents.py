"""Parsing of web documents under limits, so that one site's content cannot delay the probes of others."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from adapters.markup import page
from connectors.sdk import sitemaps
from connectors.sdk.robots import Robots
from domain.probes.facts import PageFacts, Response, SitemapFacts, is_usable
from domain.probes.ports import Rules
from domain.probes.product_pages import is_product_page, lists_products, spread
from ports.parsing import ParserEnded, ParserRunner

_SITEMAPS = 20
UNPACKED = 20 * 1024 * 1024
"""Bytes that a packed sitemap is unpacked to, at most."""
MOST = 50_000
"""Addresses of one sitemap (its protocol allows no more)."""
MOST_SITEMAPS = 1_000
"""Sitemaps of an index that are looked at."""
EXAMPLES = 200


@dataclass(frozen=True, slots=True)
class RobotsFacts:
    """The statements of a robots.txt that apply to every URL."""

    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()


class MarkupDocuments:
    """ports.web.Documents. `run` runs the parsers; a document whose parser is ended states nothing."""

    def __init__(self, run: ParserRunner = asyncio.to_thread) -> None:
        self._run = run

    async def rules(self, body: bytes) -> Rules:
        try:
            facts = await self._run(robots_facts, body) if body else RobotsFacts()
        except ParserEnded:
            return _Rules(_DISALLOW_ALL, RobotsFacts(), self._run)
        return _Rules(body, facts, self._run)

    async def page(self, response: Response) -> PageFacts:
        kind = response.headers.get("content-type", "")
        try:
            return await self._run(page.facts_of, response.body, response.url, kind)
        except ParserEnded:
            return PageFacts(cut=True)

    async def sitemap(self, response: Response) -> SitemapFacts:
        try:
            return await self._run(sitemap_facts, response)
        except ParserEnded:
            return SitemapFacts(whole=False, readable=False)

    async def value(self, response: Response) -> Any:
        try:
            return await self._run(json_value, response.body)
        except ParserEnded:
            return None


_DISALLOW_ALL = b"User-agent: *\nDisallow: /\n"
"""The rules that apply when those of a site cannot be read (RFC 9309 §2.3.1.4)."""


class _Rules:
    """ports.web.Rules. A probe checks some dozens of URLs, so each call parses the rules again."""

    def __init__(self, body: bytes, facts: RobotsFacts, run: ParserRunner) -> None:
        self._body, self._run = body, run
        self.crawl_delay, self.sitemaps = facts.crawl_delay, facts.sitemaps

    async def allows(self, url: str) -> bool:
        try:
            return not self._body or await self._run(is_allowed, self._body, url)
        except ParserEnded:
            return False


def robots_facts(body: bytes) -> RobotsFacts:
    """Parse a robots.txt."""
    robots = Robots(body)
    usable = dict.fromkeys(url for url in robots.sitemaps if is_usable(url))
    return RobotsFacts(robots.delay, tuple(usable)[:_SITEMAPS])


def is_allowed(body: bytes, url: str) -> bool:
    """Return whether a robots.txt allows the URL."""
    return Robots(body).allows(url)


def sitemap_facts(response: Response) -> SitemapFacts:
    """Return the addresses that the sitemap lists, as far as it can be read."""
    found, every = sitemaps.read(response.body, UNPACKED), lists_products(response.url)
    pages = [url for url in dict.fromkeys(found.pages[:MOST]) if is_usable(url) and (every or is_product_page(url))]
    return SitemapFacts(
        sitemaps=tuple([url for url in found.sitemaps if is_usable(url)][:MOST_SITEMAPS]),
        product_pages=len(pages),
        examples=tuple(spread(pages, EXAMPLES)),
        whole=response.whole and not found.fault and len(found.pages) <= MOST and len(found.sitemaps) <= MOST_SITEMAPS,
        readable=found.known and not response.is_page,
    )


def json_value(body: bytes) -> Any:
    """Decode a JSON document; None for anything else."""
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
