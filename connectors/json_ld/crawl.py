"""Crawl of a site: rules of robots.txt and pages of the sitemaps, one at a time and at the requested rate."""

from asyncio import to_thread
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from connectors.sdk import sitemaps
from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, TooLarge, Unreachable
from connectors.sdk.pulling import Page, page
from connectors.sdk.robots import Robots

MOST_PAGES, USUAL_PAGES = 50_000, 5_000
_MOST_SITEMAPS = 500
_DEEPEST = 3
_GONE = frozenset({404, 410})
_NO_RULES = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 451})
_ACCEPT = {"Accept": "text/html, application/xhtml+xml, application/ld+json;q=0.9"}
_TRIES = 3
_LONGEST_DELAY = 30.0


@dataclass(slots=True)
class Site:
    """Site being crawled: its rules, and counts of the pages that are missing."""

    ctx: Context
    origin: str
    robots: Robots
    left_out: int = 0
    refused: int = 0
    gone: int = 0
    large: int = 0

    async def page(self, url: str, *, first: bool = False) -> Page | None:
        """Fetch a page; return None if it is gone or too large. Raises ConnectorError.

        A page that fails three times fails the run: otherwise its products would be withdrawn.
        """
        if not first:
            await self._pause()
        for retries in range(_TRIES - 1, -1, -1):
            try:
                answer = await page(self.ctx, url, _ACCEPT, patient=not first, ends=_GONE)
            except TooLarge:
                self.large += 1
                return None
            except Refused as error:
                if first:
                    raise
                raise Unreachable(
                    f"The site refused one of its pages, so the crawl would be incomplete. {error}"
                ) from None
            except Unreachable:
                if not retries or first:
                    raise
                await self.ctx.sleep(2.0)
            else:
                if answer.status in _GONE:
                    self.gone += 1
                    return None
                return answer
        return None

    async def _pause(self) -> None:
        if self.robots.delay:
            await self.ctx.sleep(min(self.robots.delay, _LONGEST_DELAY))

    def told(self) -> list[str]:
        """Return the notes on the crawl, as sentences."""
        found = [
            (self.refused, "pages were skipped because robots.txt does not allow them"),
            (self.gone, "pages that the sitemap lists are gone"),
            (self.large, "pages are too large and were not read"),
            (self.left_out, "further pages are listed and were not read: config.max_pages bounds them"),
        ]
        return [f"{count:,} {detail}" for count, detail in found if count]


async def begun(ctx: Context, url: str) -> Site:
    """Return the site of an address with its robots.txt. Raises Unreachable if that cannot be fetched."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise BadData("the source's settings name no address (config.url)")
    origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    try:
        answer = await page(ctx, f"{origin}/robots.txt", {"Accept": "text/plain"}, patient=False, ends=_NO_RULES)
    except Unreachable as error:
        # Without its rules, no page of the site may be fetched (RFC 9309 §2.3.1.4).
        raise Unreachable(f"The site's robots.txt cannot be read. {error}") from None
    ruled = answer.status not in _NO_RULES and "html" not in answer.media_type
    robots = await to_thread(Robots, answer.body if ruled else b"")
    site = Site(ctx, origin, robots)
    if robots.delay is not None and robots.delay > _LONGEST_DELAY:
        raise Refused(
            f"The site's robots.txt asks for {robots.delay:.0f} seconds between pages; reading it would take too long."
        )
    return site


async def listed(site: Site, url: str) -> list[str]:
    """Return the pages of the site's sitemaps in order, without duplicates and other sites. Raises ConnectorError."""
    begin = [url] if _is_sitemap(url) else [*site.robots.sitemaps] or [f"{site.origin}/sitemap.xml"]
    most = int(site.ctx.config.get("max_pages", USUAL_PAGES))
    include = str(site.ctx.config.get("include", ""))
    found: dict[str, None] = {}
    async for sitemap in _sitemaps(site, begin):
        for address in sitemap.pages:
            if address in found or not _is_of(site, address) or include not in urlsplit(address).path:
                continue
            if not site.robots.allows(address):
                site.refused += 1
            elif len(found) < most:
                found[address] = None
            else:
                site.left_out += 1
    if not found:
        raise BadData("the site's sitemaps list no page that may be read; name one page or a sitemap in config.url")
    return list(found)


async def _sitemaps(site: Site, begin: list[str]) -> AsyncIterator[sitemaps.Sitemap]:
    seen: set[str] = set()
    pending = [(address, 1) for address in reversed(begin)]
    while pending:
        address, depth = pending.pop()
        if address in seen or not _is_of(site, address):
            continue
        seen.add(address)
        if len(seen) > _MOST_SITEMAPS or depth > _DEEPEST:
            raise BadData(f"the site has more than {_MOST_SITEMAPS} sitemaps, or nests them more than {_DEEPEST} deep")
        answer = await site.page(address, first=len(seen) == 1)
        if answer is None:
            if len(begin) == 1 and depth == 1:
                raise BadData("the site has no sitemap; name one page or a sitemap in config.url")
            continue
        sitemap = await to_thread(sitemaps.read, answer.body)
        if sitemap.fault:
            raise BadData(sitemap.fault)
        yield sitemap
        pending.extend((inner, depth + 1) for inner in reversed(sitemap.sitemaps))


def _is_sitemap(url: str) -> bool:
    path = urlsplit(url).path.lower()
    return path.endswith((".xml", ".xml.gz", ".txt")) or "sitemap" in path


def _is_of(site: Site, address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return urlunsplit((parts.scheme, parts.netloc, "", "", "")) == site.origin and len(address) <= 2_048
