"""The plan and what was used of it: each meter with its share, its days, and when thresholds were reached."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from entrypoints.console.bars import HEIGHT, WIDTH, bars
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.visit import Visit

PLACE: Final = "/console/organisation/usage"
TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "records": ("Records", "Items that runs made or changed"),
    "deliveries": ("Webhook deliveries", "Those that succeeded"),
    "export_rows": ("Export rows", "Lines of exports of products"),
    "ai_tokens": ("AI tokens", "What models read and wrote"),
    "sources": ("Sources", "How many there are now"),
    "stored_bytes": ("Stored files", "How much is kept now"),
}
"""What each meter is called, and what it counts."""


async def show(visit: Visit) -> Answer:
    """The month so far, and the last thirty days."""
    usage = await visit.api.get("/v1/usage")
    series = await visit.api.get("/v1/usage/series")
    plans = (await visit.api.get("/v1/plans"))["data"] if visit.may("org:read") else []
    own = visit.principal.organisation.plan
    days = {one["meter"]: _days(one) for one in series["series"]}
    return visit.render(
        "organisation/usage.html",
        period=usage["period"],
        meters=[_meter(one, days.get(one["meter"], [])) for one in usage["meters"]],
        plan=own,
        plans=plans,
        width=WIDTH,
        height=HEIGHT,
    )


def _days(one: Mapping[str, Any]) -> list[tuple[date, int]]:
    return [(date.fromisoformat(day["day"]), day["used"]) for day in one["days"]]


def _meter(told: Mapping[str, Any], days: list[tuple[date, int]]) -> dict[str, Any]:
    title, text = TITLES.get(told["meter"], (told["meter"], ""))
    included, used = told.get("included"), told["used"]
    share = None if included is None else min(1.0, used / included) if included else float(used > 0)
    tone = "" if share is None or share < 0.8 else "warn" if used < included else "bad"
    return {
        **told,
        "title": title,
        "text": text,
        "share": share,
        "tone": tone,
        "bars": bars(days),
        "moved": any(used for _, used in days),
    }


PAGES: Final = (Page(PLACE, show, scope="usage:read", menu=Entry("Organisation", "Plan and usage")),)
