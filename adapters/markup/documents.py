"""Has documents read beside the event loop, in few threads of its own."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from adapters.markup import page, sitemaps
from adapters.markup.robots import RobotsRules
from domain.probes.facts import PageFacts, Response, SitemapFacts
from ports.web import Rules

THREADS: Final = 2
"""Documents that are read at a time."""
R = TypeVar("R")


class MarkupDocuments:
    """ports.web.Documents; one a process."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="documents")

    async def rules(self, body: bytes) -> Rules:
        return _Rules(await self._beside(lambda: RobotsRules(body)), self._beside)

    async def page(self, response: Response) -> PageFacts:
        kind = response.headers.get("content-type", "")
        return await self._beside(lambda: page.facts_of(response.body, response.url, kind))

    async def sitemap(self, response: Response) -> SitemapFacts:
        return await self._beside(lambda: sitemaps.facts_of(response))

    async def value(self, response: Response) -> Any:
        return await self._beside(lambda: _value(response.body))

    async def _beside(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Rules:
    """ports.web.Rules."""

    def __init__(self, rules: RobotsRules, beside: Callable[[Callable[[], bool]], Awaitable[bool]]) -> None:
        self._rules, self._beside = rules, beside
        self.crawl_delay, self.sitemaps = rules.crawl_delay, rules.sitemaps

    async def allows(self, url: str) -> bool:
        return await self._beside(lambda: self._rules.allows(url))


def _value(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
