"""Connector for JSON-LD in web pages. The snapshot contains the pages, whose scripts are parsed for products."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from connectors.json_ld.crawl import DEFAULT_MAX_PAGES, MAX_PAGES, CrawledSite, find_page_urls, open_site
from connectors.sdk.context import MIB, Context
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.fetching import FetchedPage
from connectors.sdk.notes import encode_note
from connectors.sdk.readers import json_records
from connectors.sdk.readers.json_ld import Node
from connectors.sdk.readers.schema_org import build_products_table, find_page_products
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_JSON_LD_MARK = b"ld+json"
_RESERVED_BYTES = 4 * MIB
"""Part of `Limits.snapshot_bytes` that is reserved for the notes about skipped pages, in bytes."""
_CHUNK_CHARS = 64 * 1024


class JsonLdConnector:
    """Connector for one web page or, with the setting `pages: site`, for the pages in the sitemaps of a site."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages that robots.txt allows; each is a line of JSON with the page's URL and HTML.

        Of several pages, those without JSON-LD are skipped. Raises ConnectorError.
        """
        url = str(ctx.config.get("url", ""))
        site = await open_site(ctx, url)
        urls = await find_page_urls(site, url) if ctx.config.get("pages") == "site" else [url]
        if not site.robots.allows(urls[0]):
            raise Refused("The site's robots.txt does not allow this page.")
        first = await site.fetch(urls[0], is_first=len(urls) == 1)
        if first is None and len(urls) == 1:
            raise BadData("the page does not exist (HTTP 404 or 410) or is too large")
        yield Fetched(
            status=200,
            chunks=_fetch_lines(site, first, urls),
            final_url=url,
            content_type="application/jsonl",
            filename="pages.jsonl",
            served_by="pages",
        )

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot, with the products of all pages. Raises BadData."""
        if not path.stat().st_size:
            raise BadData("the file is empty")
        yield build_products_table(ctx, _iterate_products(ctx, path))


def _iterate_products(ctx: Context, path: Path) -> Iterator[tuple[int, Node, str | None]]:
    """Yield each product with the line of its page and the page's URL, or None if the page has several products."""
    for number, line in json_records.iterate_lines(path, None, ctx.limits, ctx.report):
        html, page_url = line.get("html"), line.get("url")
        if not isinstance(html, str) or not isinstance(page_url, str):
            raise BadData(f"line {number} of the stored file does not contain a web page")
        found = list(find_page_products(ctx, number, html))
        for node in found:
            yield number, node, page_url if len(found) == 1 else None


async def _fetch_lines(site: CrawledSite, first: FetchedPage | None, urls: list[str]) -> AsyncIterator[bytes]:
    left = site.ctx.limits.snapshot_bytes - _RESERVED_BYTES
    for index, page_url in enumerate(urls):
        answer = first if index == 0 else await site.fetch(page_url)
        if answer is None or (_JSON_LD_MARK not in answer.body and len(urls) > 1):
            continue
        line = await _encode_line(page_url, answer.body)
        if len(line) > site.ctx.limits.page_bytes:
            site.too_large += 1
            continue
        left -= len(line)
        if left < 0:
            site.omitted += len(urls) - index
            break
        yield line
    for detail in site.describe_omissions():
        yield encode_note(detail)


async def _encode_line(page_url: str, body: bytes) -> bytes:
    """Return a page as a line of JSON with its URL and HTML. Invalid UTF-8 is replaced by U+FFFD."""
    text = body.decode("utf-8", errors="replace")
    chunks = []
    for at in range(0, len(text), _CHUNK_CHARS):
        chunks.append(
            json.dumps(text[at : at + _CHUNK_CHARS], ensure_ascii=False)[1:-1].encode("utf-8", errors="replace")
        )
        await asyncio.sleep(0)  # lets other tasks run
    return json.dumps({"url": page_url})[:-1].encode() + b', "html": "' + b"".join(chunks) + b'"}\n'


SPEC = ConnectorSpec(
    name="json_ld",
    title="Web pages with JSON-LD (schema.org)",
    kinds=frozenset({"url"}),
    streams=frozenset({"catalogue"}),
    can_fetch=True,
    config_schema=build_config_schema(
        {
            "url": {
                **URL,
                "description": "The URL of a product's page; with pages=site, the URL of the site or of a sitemap.",
            },
            "pages": {
                "enum": ["one", "site"],
                "default": "one",
                "description": "Read the page at url only (one), or all pages in the site's sitemaps (site).",
            },
            "max_pages": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_PAGES,
                "default": DEFAULT_MAX_PAGES,
                "description": "The maximum number of pages to read.",
            },
            "include": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "Read only pages whose path contains this text, such as /products/.",
            },
        },
        required=("url",),
    ),
    open=JsonLdConnector,
    address_settings=frozenset({"url"}),
    neutral_settings=NEUTRAL_SETTINGS | {"pages", "max_pages", "include"},
)
