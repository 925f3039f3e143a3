"""The first page: what changed today, what needs a person, how fresh each source is, and what of the quota is used."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final, NamedTuple

from domain.changes.usecases.service import EventCounts
from entrypoints.console.charts import DAYS, run_strips
from entrypoints.console.context import PageContext, Pages
from entrypoints.http.exchange import Response

_SHOWN: Final = 10
"""Tasks of one kind, and sources, that are shown at once; the lists behind the links have all of them."""
_FAILING: Final = ("degraded", "blocked", "disabled")

pages: Final = Pages(section="Home")


class Task(NamedTuple):
    """Something that needs a person, and where it is done."""

    title: str
    text: str
    place: str
    tone: str


@pages.get("/console", title="Home")
async def show_home(page: PageContext) -> Response:
    """Show the first page; an organisation without a source is led to its first."""
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else []
    if not sources and page.may("sources:read"):
        return page.render("home/empty.html")
    first = sorted(sources, key=lambda source: source["status"] not in _FAILING)[:_SHOWN]
    counts, pairs, endpoints, strips, usage = await asyncio.gather(
        _changed_today(page), _pair_tasks(page), _endpoint_tasks(page), run_strips(page, first), _usage(page)
    )
    kinds = (
        (pairs, "pair", "/console/matching"),
        ([task for source in sources for task in _source_tasks(source)], "source that needs you", "/console/sources"),
        (endpoints, "failing endpoint", "/console/developers/webhooks"),
    )
    return page.render(
        "home/home.html",
        counts=counts,
        tasks=[(found[:_SHOWN], len(found[_SHOWN:]), words, place) for found, words, place in kinds if found],
        sources=first,
        strips=strips,
        source_count=len(sources),
        usage=usage,
        days=DAYS,
    )


async def _changed_today(page: PageContext) -> EventCounts | None:
    if not page.may("products:read"):
        return None
    midnight = page.dependencies.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found: EventCounts = await page.service("changes").changes.counts(page.principal.tenant, midnight)
    return found


def _source_tasks(source: Mapping[str, Any]) -> list[Task]:
    reason, place = source.get("status_reason", {}), f"/console/sources/{source['id']}"
    if reason.get("code") == "mapping_required":
        return [Task(f"{source['name']}: what do its columns mean?", "A mapping waits for your word.", place, "warn")]
    if source["status"] not in _FAILING:
        return []
    text = reason.get("message") or "Its runs have been failing."
    tone = "warn" if source["status"] == "degraded" else "bad"
    return [Task(f"{source['name']} is {source['status']}", text, place, tone)]


async def _pair_tasks(page: PageContext) -> list[Task]:
    if not page.may("products:read"):
        return []
    found = await page.api.get("/v1/match-pairs", status="open", limit=10)
    count = len(found["data"])
    words = f"{count}{'+' if found['has_more'] else ''} {'pair' if count == 1 else 'pairs'} may be the same item"
    return [Task(words, "Say of each whether it is.", "/console/matching", "info")] if count else []


async def _endpoint_tasks(page: PageContext) -> list[Task]:
    if not page.may("webhooks:read"):
        return []
    tasks = []
    for endpoint in (await page.api.get("/v1/webhook-endpoints", limit=20))["data"]:
        url, place = endpoint["url"], f"/console/developers/webhooks/{endpoint['id']}"
        if endpoint["status"] == "disabled":
            tasks.append(Task(f"{url} is disabled", "Nothing is delivered to it.", place, "bad"))
        elif endpoint.get("failing_since"):
            tasks.append(Task(f"{url} fails", "Its deliveries have not succeeded lately.", place, "warn"))
    return tasks


async def _usage(page: PageContext) -> Sequence[Mapping[str, Any]]:
    """Return the meters of which something is used or included."""
    found = (await page.api.get("/v1/usage"))["meters"] if page.may("usage:read") else ()
    return [one for one in found if one["used"] or one.get("included")]
