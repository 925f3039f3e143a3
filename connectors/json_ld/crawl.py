"""Crawl of a website: robots.txt, sitemaps, and then one page at a time at the rate that robots.txt requests."""

from asyncio import to_thread
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from connectors.sdk import sitemaps
from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, TooLarge, Unreachable
from connectors.sdk.fetching import FetchedPage, fetch_page
from connectors.sdk.robots import Robots

MAX_PAGES, DEFAULT_MAX_PAGES = 50_000, 5_000
_MAX_SITEMAPS = 500
_MAX_DEPTH = 3
_GONE_STATUSES = frozenset({404, 410})
_NO_RULES_STATUSES = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 451})
_ACCEPT = {"Accept": "text/html, application/xhtml+xml, application/ld+json;q=0.9"}
_MAX_ATTEMPTS = 3
_MAX_DELAY_SECONDS = 30.0


@dataclass(slots=True)
class CrawledSite:
    """Website that is being crawled, with counts of the pages that were not read.

    Attributes:
        ctx: Context of the connector.
        origin: Scheme, host and port of the site.
        robots: Rules of robots.txt.
        omitted: Number of pages above the maximum number of pages or the maximum size of the snapshot.
        disallowed: Number of pages that robots.txt does not allow.
        gone: Number of pages that no longer exist.
        too_large: Number of pages that are too large.
    """

    ctx: Context
    origin: str
    robots: Robots
    omitted: int = 0
    disallowed: int = 0
    gone: int = 0
    too_large: int = 0

    async def fetch(self, url: str, *, is_first: bool = False) -> FetchedPage | None:
        """Fetch a page, in up to three attempts; return None if the page no longer exists or is too large.

        Args:
            url: URL of the page.
            is_first: Whether this is the first request after robots.txt. It is sent without a delay and in one attempt,
                and raises RetryLater instead of waiting.

        Raises:
            ConnectorError: If the last attempt fails. The run must fail too, or the page's products would be withdrawn.
        """
        if not is_first:
            await self._pause()
        for retries in range(_MAX_ATTEMPTS - 1, -1, -1):
            try:
                answer = await fetch_page(self.ctx, url, _ACCEPT, can_wait=not is_first, end_statuses=_GONE_STATUSES)
            except TooLarge:
                self.too_large += 1
                return None
            except Refused as error:
                if is_first:
                    raise
                raise Unreachable(
                    f"The site refused a page. The crawl has stopped, because it would be incomplete. {error}"
                ) from None
            except Unreachable:
                if not retries or is_first:
                    raise
                await self.ctx.sleep(2.0)
            else:
                if answer.status in _GONE_STATUSES:
                    self.gone += 1
                    return None
                return answer
        return None

    async def _pause(self) -> None:
        if self.robots.delay:
            await self.ctx.sleep(min(self.robots.delay, _MAX_DELAY_SECONDS))

    def describe_omissions(self) -> list[str]:
        """Return one text for each reason why pages were not read, with the number of these pages."""
        found = [
            (self.disallowed, "pages were skipped because robots.txt does not allow them"),
            (self.gone, "pages in the sitemap no longer exist"),
            (self.too_large, "pages were skipped because they are too large"),
            (self.omitted, "pages were skipped because of the limit config.max_pages"),
        ]
        return [f"{count:,} {detail}" for count, detail in found if count]


async def open_site(ctx: Context, url: str) -> CrawledSite:
    """Fetch the robots.txt of the site to which a URL belongs, and return the site. Raises ConnectorError.

    If robots.txt cannot be fetched, the error is Unreachable.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        raise BadData("the source has no valid URL; set config.url")
    origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    try:
        answer = await fetch_page(
            ctx, f"{origin}/robots.txt", {"Accept": "text/plain"}, can_wait=False, end_statuses=_NO_RULES_STATUSES
        )
    except Unreachable as error:
        # Without its rules, no page of the site may be fetched (RFC 9309 §2.3.1.4).
        raise Unreachable(f"The site's robots.txt cannot be read. {error}") from None
    has_rules = answer.status not in _NO_RULES_STATUSES and "html" not in answer.media_type
    robots = await to_thread(Robots, answer.body if has_rules else b"")
    site = CrawledSite(ctx, origin, robots)
    if robots.delay is not None and robots.delay > _MAX_DELAY_SECONDS:
        raise Refused(
            f"The site's robots.txt requires {robots.delay:.0f} seconds between pages, so the import would take too long."
        )
    return site


async def find_page_urls(site: CrawledSite, url: str) -> list[str]:
    """Return the URLs of the pages in the site's sitemaps that robots.txt allows, without duplicates.

    The settings `include` and `max_pages` restrict the pages. If `url` is the URL of a sitemap, the search starts
    there instead of at the sitemaps in robots.txt. Raises ConnectorError.
    """
    start = [url] if _is_sitemap(url) else [*site.robots.sitemaps] or [f"{site.origin}/sitemap.xml"]
    max_pages = int(site.ctx.config.get("max_pages", DEFAULT_MAX_PAGES))
    include = str(site.ctx.config.get("include", ""))
    found: dict[str, None] = {}
    async for sitemap in _fetch_sitemaps(site, start):
        for page_url in sitemap.pages:
            if page_url in found or not _is_on_site(site, page_url) or include not in urlsplit(page_url).path:
                continue
            if not site.robots.allows(page_url):
                site.disallowed += 1
            elif len(found) < max_pages:
                found[page_url] = None
            else:
                site.omitted += 1
    if not found:
        raise BadData("the site's sitemaps list no allowed page; set config.url to a page or a sitemap")
    return list(found)


async def _fetch_sitemaps(site: CrawledSite, start: list[str]) -> AsyncIterator[sitemaps.Sitemap]:
    seen: set[str] = set()
    pending = [(sitemap_url, 1) for sitemap_url in reversed(start)]
    while pending:
        sitemap_url, depth = pending.pop()
        if sitemap_url in seen or not _is_on_site(site, sitemap_url):
            continue
        seen.add(sitemap_url)
        if len(seen) > _MAX_SITEMAPS or depth > _MAX_DEPTH:
            fault = f"the site has more than {_MAX_SITEMAPS} sitemaps, or nests sitemaps more than {_MAX_DEPTH} deep"
            raise BadData(f"{fault}; set config.url to one of the sitemaps")
        answer = await site.fetch(sitemap_url, is_first=len(seen) == 1)
        if answer is None:
            if len(start) == 1 and depth == 1:
                raise BadData("the site has no sitemap; set config.url to a page or a sitemap")
            continue
        sitemap = await to_thread(sitemaps.parse_sitemap, answer.body)
        if sitemap.fault:
            raise BadData(sitemap.fault)
        yield sitemap
        pending.extend((inner, depth + 1) for inner in reversed(sitemap.sitemaps))


def _is_sitemap(url: str) -> bool:
    path = urlsplit(url).path.lower()
    return path.endswith((".xml", ".xml.gz", ".txt")) or "sitemap" in path


def _is_on_site(site: CrawledSite, url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return urlunsplit((parts.scheme, parts.netloc, "", "", "")) == site.origin and len(url) <= 2_048
