"""Home: tasks, today's changes, the health of sources and the usage of the month."""

import asyncio
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from domain.changes.usecases.service import EventCounts
from entrypoints.console.charts import DAYS, run_strips
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.translation import N_
from entrypoints.http.exchange import Response
from ports.clock import Clock

SHOWN = 10
"""Maximum number of tasks of one kind, and of sources."""
_FAILING = ("degraded", "blocked", "disabled")

pages = Pages(section=N_("Home"))


@pages.get("/console", title=N_("Home"))
async def show_home(page: PageContext) -> Response:
    """Show the home page, or the first steps of an organisation without sources."""
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else []
    if not sources and page.may("sources:read"):
        return page.render("home/empty.html")
    first = sorted(sources, key=lambda source: source["status"] not in _FAILING)[:SHOWN]
    counts, pairs, endpoints, strips, usage = await asyncio.gather(
        _changed_today(page),
        _read(page, "products:read", "/v1/match-pairs", status="open", limit=10),
        _read(page, "webhooks:read", "/v1/webhook-endpoints", limit=20),
        run_strips(page, first),
        _read(page, "usage:read", "/v1/usage"),
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


async def _read(page: PageContext, scope: str, path: str, **query: Any) -> Any:
    """Return the reply of an operation; an empty list for a role without the scope."""
    return await page.api.get(path, **query) if page.may(scope) else {"data": []}
