"""Changes of the catalogue since a person last viewed them: prices, stock, new and discontinued products."""

from datetime import datetime, timedelta
from typing import Any, Final

from domain.kernel.errors import NotFound
from domain.notifications.usecases.summaries import KIND_BY_GROUP, ChangeGroup, ChangeSummary, ChangeSummaryService
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.notification_texts import describe_item
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.products import PICTURES_PATH
from entrypoints.console.rendering import ListPortion
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

_PAGE_SIZE = 50
PERIODS: Final = {"1": N_("24 hours"), "7": N_("7 days"), "30": N_("30 days")}
"""Labels of the selectable periods by number of days; without a selection, the person's last view begins the period."""

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


async def summarise_changes(page: PageContext) -> ChangeSummary:
    """Return the changes in the period that the query string selects; by default since the person's last view."""
    service, sources = page.dependencies[ChangeSummaryService], page.query.get_all("source")
    if page.query["days"] in PERIODS:
        since = page.dependencies[Clock].now() - timedelta(days=int(page.query["days"]))
    else:
        async with page.open_transaction("console.view_changes") as tx:
            since = await service.record_view(tx, page.person.user.id)
    async with page.open_read_transaction() as tx:
        return await service.summarise(tx, since, sources=sources)


@pages.register_get("/changes/summary", section=None)
async def show_summary(page: PageContext) -> Response:
    """Show the number of changes of each group, for the home page."""
    return page.render("changes/summary.html", summary=await summarise_changes(page))


@pages.register_get("/changes", title=N_("Changes"))
async def list_changes(page: PageContext) -> Response:
    """Show the changes of one group, each with its old and new values."""
    summary = await summarise_changes(page)
    first = next((group for group, findings in summary.findings.items() if findings), ChangeGroup.PRICE_UP)
    group = ChangeGroup(page.query.get("group") or first)
    if group not in summary.findings:
        raise NotFound
    findings = ListPortion.from_items(summary.findings[group], page.query.get_number("start"), _PAGE_SIZE)
    async with page.open_read_transaction() as tx:
        items = await page.dependencies[ChangeSummaryService].build_items(tx, group, findings.items)
    times: dict[str, datetime] = {finding.subject: finding.found_at for finding in findings.items}
    rows: list[Any] = [
        (
            describe_item(KIND_BY_GROUP[group], item),
            {"small": f"{PICTURES_PATH}{item['picture']}?w=320"} if item.get("picture") else None,
            times[item["subject"]],
        )
        for item in items
    ]
    return page.render(
        "changes/list.html",
        image_origins=page.console.object_origins,
        summary=summary,
        group=group,
        portion=findings,
        rows=rows,
        periods={days: gettext(text) for days, text in PERIODS.items()},
        selected=page.query.select("days", "source"),
        source_names=await find_source_names(page),
    )
