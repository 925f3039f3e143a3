"""Connector for JSON-LD on web pages: stores the pages unchanged and parses the products in their scripts."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from connectors.json_ld.crawl import MOST_PAGES, USUAL_PAGES, Site, begun, listed
from connectors.sdk.context import MIB, Context
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.notes import note
from connectors.sdk.pulling import Page
from connectors.sdk.readers import json_records
from connectors.sdk.readers.json_ld import Node
from connectors.sdk.readers.schema_org import of_page, table
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_MARK = b"ld+json"
_ROOM = 4 * MIB
"""Reserved bytes of a snapshot, so that the last page never exceeds the limit."""
_PIECE = 64 * 1024


class JsonLdConnector:
    """Connector for one page, or with `pages: site` for every page in the site's sitemaps that robots.txt allows."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages, one JSON document a line: address and text. Pages without JSON-LD are skipped."""
        url = str(ctx.config.get("url", ""))
        site = await begun(ctx, url)
        addresses = await listed(site, url) if ctx.config.get("pages") == "site" else [url]
        if not site.robots.allows(addresses[0]):
            raise Refused("The site's robots.txt does not allow this page.")
        first = await site.page(addresses[0], first=len(addresses) == 1)
        if first is None and len(addresses) == 1:
            raise BadData("there is no such page (HTTP 404 or 410), or it is too large")
        yield Fetched(
            status=200,
            chunks=_lines(site, first, addresses),
            final_url=url,
            content_type="application/jsonl",
            filename="pages.jsonl",
            served_by="pages",
        )

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of the products on all pages. Raises BadData."""
        if not path.stat().st_size:
            raise BadData("the file is empty")
        yield table(ctx, _nodes(ctx, path))


def _nodes(ctx: Context, path: Path) -> Iterator[tuple[int, Node, str | None]]:
    """Yield each product with the line of its page, and the page's address if it is the only one there."""
    for number, line in json_records.lines(path, None, ctx.limits, ctx.report):
        html, address = line.get("html"), line.get("url")
        if not isinstance(html, str) or not isinstance(address, str):
            raise BadData(f"line {number} is not a page of a site")
        found = list(of_page(ctx, number, html))
        for node in found:
            yield number, node, address if len(found) == 1 else None


async def _lines(site: Site, first: Page | None, addresses: list[str]) -> AsyncIterator[bytes]:
    left = site.ctx.limits.snapshot_bytes - _ROOM
    for place, address in enumerate(addresses):
        answer = first if place == 0 else await site.page(address)
        if answer is None or (_MARK not in answer.body and len(addresses) > 1):
            continue
        line = await _line(address, answer.body)
        if len(line) > site.ctx.limits.page_bytes:
            site.large += 1
            continue
        left -= len(line)
        if left < 0:
            site.left_out += len(addresses) - place
            break
        yield line
    for detail in site.told():
        yield note(detail)


async def _line(address: str, body: bytes) -> bytes:
    """Encode a page as a line in pieces, yielding to the event loop. Invalid UTF-8 becomes U+FFFD."""
    text = body.decode("utf-8", errors="replace")
    parts = []
    for at in range(0, len(text), _PIECE):
        parts.append(json.dumps(text[at : at + _PIECE], ensure_ascii=False)[1:-1].encode("utf-8", errors="replace"))
        await asyncio.sleep(0)
    return json.dumps({"url": address})[:-1].encode() + b', "html": "' + b"".join(parts) + b'"}\n'


SPEC = ConnectorSpec(
    name="json_ld",
    title="Web pages with JSON-LD (schema.org)",
    kinds=frozenset({"url"}),
    streams=frozenset({"catalogue"}),
    fetches=True,
    config_schema=config_schema(
        {
            "url": {
                **URL,
                "description": "A product's page; with pages: site the site's address, or that of a sitemap.",
            },
            "pages": {
                "enum": ["one", "site"],
                "default": "one",
                "description": "Whether this one page is read, or all that the site's sitemaps list.",
            },
            "max_pages": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_PAGES,
                "default": USUAL_PAGES,
                "description": "How many pages of a site are read at most.",
            },
            "include": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "Only pages whose path has this in it are read, such as /products/.",
            },
        },
        required=("url",),
    ),
    open=JsonLdConnector,
    addresses=frozenset({"url"}),
    harmless=HARMLESS | {"pages", "max_pages", "include"},
)
