"""Home page: tasks, today's changes, the health of sources and the usage of the month."""

import asyncio
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from domain.changes.usecases.service import EventCounts
from entrypoints.console.charts import DAILY_STATUS_DAYS, build_daily_status_bars
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.translation import N_
from entrypoints.http.exchange import Response
from ports.clock import Clock

MAX_SHOWN_ITEMS = 10
"""Maximum number of sources that the home page lists, and of tasks of each kind."""
_UNHEALTHY_STATUSES = ("degraded", "blocked", "disabled")
"""Statuses of sources that need attention."""

pages = Pages(section=N_("Home"))


@pages.register_get("/console", title=N_("Home"))
async def show_home(page: PageContext) -> Response:
    """Show the home page; for an organisation without sources, show how to connect one."""
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else []
    if not sources and page.may("sources:read"):
        return page.render("home/empty.html")
    first = sorted(sources, key=lambda source: source["status"] not in _UNHEALTHY_STATUSES)[:MAX_SHOWN_ITEMS]
    counts, pairs, endpoints, daily_statuses, usage = await asyncio.gather(
        _count_changes_today(page),
        _read_or_empty(page, "products:read", "/v1/match-pairs", status="open", limit=10),
        _read_or_empty(page, "webhooks:read", "/v1/webhook-endpoints", limit=20),
        build_daily_status_bars(page, first),
        _read_or_empty(page, "usage:read", "/v1/usage"),
    )
    return page.render(
        "home/home.html",
        counts=counts,
        pairs=pairs,
        unhealthy_sources=[
            source for source in sources if source["status"] in _UNHEALTHY_STATUSES or _needs_mapping(source)
        ],
        endpoints=[one for one in endpoints["data"] if one["status"] == "disabled" or one.get("failing_since")],
        sources=first,
        daily_statuses=daily_statuses,
        source_count=len(sources),
        usage=[one for one in usage.get("meters", ()) if one["used"] or one.get("included")],
        max_items=MAX_SHOWN_ITEMS,
        days=DAILY_STATUS_DAYS,
    )


def _needs_mapping(source: Mapping[str, Any]) -> bool:
    """Return whether the source waits for a person to confirm its column mapping."""
    return bool(source.get("status_reason", {}).get("code") == "mapping_required")


async def _count_changes_today(page: PageContext) -> EventCounts | None:
    """Count the newest events since midnight UTC by event type; None if the person's role cannot read products."""
    if not page.may("products:read"):
        return None
    midnight = page.dependencies[Clock].now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    counts: EventCounts = await page.get_service("changes").changes.count_events_by_type(
        page.principal.tenant, midnight
    )
    return counts


async def _read_or_empty(page: PageContext, scope: str, path: str, **query: Any) -> Any:
    """Return the response of a GET operation; if the person's role does not include the scope, an empty list."""
    return await page.api.get(path, **query) if page.may(scope) else {"data": []}
