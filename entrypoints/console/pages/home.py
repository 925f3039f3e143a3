"""The first page: what changed today, what needs a person, how fresh each source is, and what of the quota is used."""

import asyncio
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from domain.changes.usecases.service import EventCounts
from entrypoints.console.charts import DAYS, run_strips
from entrypoints.console.context import PageContext, Pages
from entrypoints.http.exchange import Response
from ports.clock import Clock

SHOWN = 10
"""Tasks of one kind, and sources, that are shown at once; the lists behind the links have all of them."""
_FAILING = ("degraded", "blocked", "disabled")

pages = Pages(section="Home")


@pages.get("/console", title="Home")
async def show_home(page: PageContext) -> Response:
    """Show the first page; an organisation without a source is led to its first."""
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else []
    if not sources and page.may("sources:read"):
        return page.render("home/empty.html")
    first = sorted(sources, key=lambda source: source["status"] not in _FAILING)[:SHOWN]
    counts, pairs, endpoints, strips, usage = await asyncio.gather(
        _changed_today(page),
        _found(page, "products:read", "/v1/match-pairs", status="open", limit=10),
        _found(page, "webhooks:read", "/v1/webhook-endpoints", limit=20),
        run_strips(page, first),
        _found(page, "usage:read", "/v1/usage"),
    )
    return page.render(
        "home/home.html",
        counts=counts,
        pairs=pairs,
        waiting=[source for source in sources if source["status"] in _FAILING or _needs_mapping(source)],
        endpoints=[one for one in endpoints["data"] if one["status"] == "disabled" or one.get("failing_since")],
        sources=first,
        strips=strips,
        source_count=len(sources),
        usage=[one for one in usage.get("meters", ()) if one["used"] or one.get("included")],
        shown=SHOWN,
        days=DAYS,
    )


def _needs_mapping(source: Mapping[str, Any]) -> bool:
    return bool(source.get("status_reason", {}).get("code") == "mapping_required")


async def _changed_today(page: PageContext) -> EventCounts | None:
    if not page.may("products:read"):
        return None
    midnight = page.dependencies[Clock].now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found: EventCounts = await page.service("changes").changes.counts(page.principal.tenant, midnight)
    return found


async def _found(page: PageContext, scope: str, path: str, **query: Any) -> Any:
    """Return what an operation answers; an empty list for a role without the scope."""
    return await page.api.get(path, **query) if page.may(scope) else {"data": []}
