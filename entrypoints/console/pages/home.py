"""Home page: first steps, tasks, changes, the health of sources and the usage of the month."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter
from typing import Any

from domain.kernel.paging import PageRequest
from domain.notifications.model import SeenChanges
from domain.notifications.usecases.rules import NotificationRuleService
from domain.notifications.usecases.summaries import ChangeGroup, ChangeSummaryService, hide_steps
from domain.orgs.ports import OrgStore
from domain.proposals.model import ProposalKind
from domain.runs.ports import RunStore
from entrypoints.console.charts import DAILY_STATUS_DAYS, build_daily_status_bars
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.corrections import CORRECTIONS, WRITE_SCOPE
from entrypoints.console.pages.proposals import list_samples
from entrypoints.console.pages.sources import list_open_reviews
from entrypoints.console.source_health import list_source_tasks, load_source_states
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

MAX_SHOWN_ITEMS = 10
"""Maximum number of sources that the home page lists, and of tasks of each kind."""
MAX_SHOWN_PROPOSALS = 3
"""Maximum number of proposals that the home page shows."""
_MAX_COUNTED_GROUPS = 100
"""Maximum number of proposed groups of variants that the home page counts."""
ACTIVITY_DAYS = 30
"""Number of days in the charts of the home page."""
_PRICE_GROUPS = (ChangeGroup.PRICE_UP, ChangeGroup.PRICE_DOWN)

pages = Pages(section=N_("Home"))


@pages.register_get("/console", title=N_("Home"))
async def show_home(page: PageContext) -> Response:
    """Show the home page; for an organisation without sources, show how to connect one."""
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else []
    if not sources and page.may("sources:read"):
        return page.render("home/empty.html")
    states = sorted(await load_source_states(page, sources), key=lambda state: state.rank)
    first = [state.source for state in states[:MAX_SHOWN_ITEMS]]
    pairs, endpoints, daily_statuses, usage, proposals, groups, corrections, reviews, steps = await asyncio.gather(
        _read_or_empty(page, "products:read", "/v1/match-pairs", status="open", limit=10),
        _read_or_empty(page, "webhooks:read", "/v1/webhook-endpoints", limit=20),
        build_daily_status_bars(page, first),
        _read_or_empty(page, "usage:read", "/v1/usage"),
        _list_proposals(page),
        _read_proposals(page, ProposalKind.VARIANT_GROUP, _MAX_COUNTED_GROUPS),
        _count_corrections(page),
        list_open_reviews(page, sources),
        _list_steps(page, len(sources)),
    )
    return page.render(
        "home/home.html",
        corrections=corrections,
        pairs=pairs,
        source_tasks=list_source_tasks(states),
        proposals=proposals,
        groups=groups,
        max_proposals=MAX_SHOWN_PROPOSALS,
        reviews=reviews,
        steps=steps,
        list_samples=list_samples,
        endpoints=[one for one in endpoints["data"] if one["status"] == "disabled" or one.get("failing_since")],
        sources=states[:MAX_SHOWN_ITEMS],
        daily_statuses=daily_statuses,
        source_count=len(sources),
        usage=[one for one in usage.get("meters", ()) if one["used"] or one.get("included")],
        max_items=MAX_SHOWN_ITEMS,
        days=DAILY_STATUS_DAYS,
    )


@dataclass(frozen=True, slots=True)
class FirstStep:
    """Step that a new organisation should take, with the path of its page."""

    title: str
    path: str
    is_done: bool


async def _list_steps(page: PageContext, source_count: int) -> list[FirstStep]:
    """Return the first steps of an organisation; none if all are done, or the person has hidden them."""
    if not page.may("sources:write"):
        return []
    async with page.open_read_transaction() as tx:
        seen = await tx.store(SeenChanges).get(page.person.user.id)
        if seen is not None and seen.hides_steps:
            return []
        members = await tx[OrgStore].list_members(PageRequest(2))
        rules = await page.dependencies[NotificationRuleService].list_visible(tx, page.person.user.id)
    has_products = bool((await page.api.get("/v1/products", limit=1))["data"])
    steps = [
        FirstStep(gettext("Connect a source"), "/console/sources/new", source_count > 0),
        FirstStep(gettext("Import your first products"), "/console/sources", has_products),
        FirstStep(gettext("Connect a second source, to compare offers"), "/console/sources/new", source_count > 1),
        FirstStep(gettext("Select what you are notified about"), "/console/organisation/notifications", bool(rules)),
        FirstStep(gettext("Invite a colleague"), "/console/organisation/members", len(members.items) > 1),
    ]
    return [] if all(step.is_done for step in steps) else steps


@pages.register_post("/console/hide-steps", scope="sources:write")
async def hide_first_steps(page: PageContext) -> Response:
    """Hide the first steps from the person."""
    async with page.open_transaction("console.hide_steps") as tx:
        await hide_steps(tx, page.person.user.id)
    return page.redirect("/console")


@pages.register_get("/console/activity", scope="products:read")
async def show_activity(page: PageContext) -> Response:
    """Show the rows read and the changed prices of each day, for the home page."""
    now = page.dependencies[Clock].now().astimezone(UTC)
    dates = [now.date() - timedelta(days=ago) for ago in reversed(range(ACTIVITY_DAYS))]
    start = datetime.combine(dates[0], time(), UTC)
    rows, prices_up, prices_down = Counter[date](), Counter[date](), Counter[date]()
    async with page.open_read_transaction() as tx:
        summary = await page.dependencies[ChangeSummaryService].summarise(tx, start, groups=_PRICE_GROUPS)
        if page.may("sources:read"):
            for day in await tx[RunStore].count_by_day(start):
                rows[day.day] += day.rows
    for group, counts in ((ChangeGroup.PRICE_UP, prices_up), (ChangeGroup.PRICE_DOWN, prices_down)):
        counts.update(finding.found_at.astimezone(UTC).date() for finding in summary.findings[group])
    charts = {
        gettext("Rows read"): rows,
        gettext("Prices up"): prices_up,
        gettext("Prices down"): prices_down,
    }
    return page.render(
        "home/activity.html",
        charts={title: [(day, counts[day]) for day in dates] for title, counts in charts.items() if counts},
        is_complete=not summary.incomplete_groups,
    )


async def _count_corrections(page: PageContext) -> Mapping[str, int]:
    """Count the corrections about which feeds state something new; none if the person's role cannot change products."""
    if not page.may(WRITE_SCOPE):
        return {}
    async with page.open_read_transaction() as tx:
        return await CORRECTIONS.count_by_state(tx)


async def _list_proposals(page: PageContext) -> list[Any]:
    """Return the newest proposals that wait for a decision, except groups of variants, of which there can be many."""
    kinds = [kind for kind in ProposalKind if kind != ProposalKind.VARIANT_GROUP]
    found = await asyncio.gather(*(_read_proposals(page, kind, MAX_SHOWN_PROPOSALS + 1) for kind in kinds))
    return sorted((one for results in found for one in results["data"]), key=itemgetter("id"), reverse=True)


async def _read_proposals(page: PageContext, kind: ProposalKind, limit: int) -> Any:
    """Return the newest proposals of a kind that wait for a decision."""
    return await _read_or_empty(
        page, "proposals:read", "/v1/proposals", status="proposed", kind=kind.value, limit=limit
    )


async def _read_or_empty(page: PageContext, scope: str, path: str, **query: Any) -> Any:
    """Return the response of a GET operation; if the person's role does not include the scope, an empty list."""
    return await page.api.get(path, **query) if page.may(scope) else {"data": []}
