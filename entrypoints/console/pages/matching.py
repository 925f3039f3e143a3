"""Pages of matches and their review, merges and their undo, and the settings of the judge."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from domain.kernel.paging import PageRequest
from domain.matching.model import PairFilter, PairStatus
from domain.matching.ports import MatchIndexStore, PairStore
from domain.matching.usecases.merges import MERGE_PAIR, queue_bulk_merge
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.catalogue import NamedItem, find_named_items
from entrypoints.console.products import build_match_item, compare_items
from entrypoints.console.rendering import format_dollars
from entrypoints.console.request import FormData, parse_dollars, parse_number
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.language_models import LanguageModels

WRITE_SCOPE = "products:write"
_STATUSES = ("open", "merged", "dismissed", "superseded")
_SETTINGS_PATH = "/v1/matching/judge-settings"
_PERCENT_FIELDS = ("auto_merge_at", "auto_dismiss_at")
BULK_PERCENTAGES = (98, 95, 90, 80)
"""Lowest probabilities in percent with which matches can be merged in bulk."""
MAX_COUNTED_PAIRS = 10_000
"""Number of matches up to which the page of bulk merges counts."""
SAMPLE_SIZE = 8
"""Number of matches in the sample, which are the least likely ones."""

pages = Pages("/console", section=N_("Matching"), scope="products:read")


@pages.register_get("/matching/review", title=N_("Review"))
async def redirect_to_open_match(page: PageContext) -> Response:
    """Redirect to the newest open match; if no match is open, show a page that states this."""
    pair = await _find_next_pair(page, None, backwards=False)
    return page.redirect(f"/console/matching/pairs/{pair}") if pair else page.render("matching/empty.html")


@pages.register_get("/matching", title=N_("Matches"))
async def list_pairs(page: PageContext) -> Response:
    """Show the matches with the selected status."""
    status, item_filters = page.query.get("status", "open"), page.query.select("product", "variant")
    known = status if status in _STATUSES else None
    found = await page.api.get("/v1/match-pairs", limit=25, status=known, starting_after=page.cursor, **item_filters)
    return page.render(
        "matching/pairs.html",
        image_origins=page.console.object_origins,
        results=found,
        items=await find_named_items(page, (side["product"] for pair in found["data"] for side in pair["variants"])),
        selected_status=status,
        statuses=_STATUSES,
        query={"status": status, "cursor": page.cursor or ""} | item_filters,
    )


async def _find_next_pair(page: PageContext, pair: str | None, *, backwards: bool) -> str | None:
    """Return the ID of the open match that follows the match `pair` in the list, or None if there is none.

    Args:
        page: The context.
        pair: The ID of a match; None to find the first open match.
        backwards: Whether the preceding match is found instead.
    """
    request = PageRequest(limit=1, key=pair, backwards=backwards)
    async with page.open_read_transaction() as tx:
        pairs = (await tx[PairStore].list_pairs(PairFilter(status=PairStatus.OPEN), request)).items
    return pairs[-1].id if pairs else None


@pages.register_get("/matching/pairs/<id>")
async def show_pair(page: PageContext) -> Response:
    """Show the two items of a match side by side."""
    pair = await page.api.get(f"/v1/match-pairs/{page.path_parameters['id']}")
    left, right = [
        build_match_item(side, await page.get_visible(f"/v1/products/{side['product']}")) for side in pair["variants"]
    ]
    ids = {id for side in (left, right) for id in side.sources[:3]} if page.may("sources:read") else ()
    sources = [await page.get_visible(f"/v1/sources/{id}") for id in ids]
    return page.render(
        "matching/pair.html",
        image_origins=page.console.object_origins,
        pair=pair,
        sides=(left, right),
        rows=compare_items(left, right),
        evidence=sorted((part for part in pair["evidence"] if part["weight"]), key=lambda part: -abs(part["weight"])),
        next_pair=await _find_next_pair(page, pair["id"], backwards=False),
        previous_pair=await _find_next_pair(page, pair["id"], backwards=True),
        source_names={source["id"]: source["name"] for source in sources if source},
    )


@pages.register_post(
    "/matching/pairs/<id>/<any(merge, dismiss, reopen, undo):action>", scope=WRITE_SCOPE, error_view=show_pair
)
async def decide_pair(page: PageContext) -> Response:
    """Merge, dismiss or reopen a match, or undo the last decision about it. After a decision, show the next open match."""
    id, action = page.path_parameters["id"], page.path_parameters["action"]
    pair_url, path = f"/console/matching/pairs/{id}", f"/v1/match-pairs/{id}"
    if action == "undo":
        pair = await page.api.get(path)
        if pair["status"] == "merged" and pair.get("merge"):
            await page.api.post(f"/v1/merges/{pair['merge']}/undo")
        elif pair["status"] == "dismissed":
            await page.api.post(f"{path}/reopen")
        return page.redirect(pair_url, gettext("Decision undone. The match is open again."))
    next_pair = await _find_next_pair(page, id, backwards=False) or await _find_next_pair(page, id, backwards=True)
    await page.api.post(f"{path}/{action}")
    if action == "reopen":
        return page.redirect(pair_url, gettext("Match reopened"))
    notice = gettext("Items merged") if action == "merge" else gettext("Match dismissed")
    next_url = f"/console/matching/pairs/{next_pair}" if next_pair else "/console/matching/review"
    return page.redirect(f"{next_url}?{urlencode({'last': id})}", notice)


@pages.register_get("/matching/accept", scope=WRITE_SCOPE)
async def show_bulk_merge(page: PageContext) -> Response:
    """Show how many open matches have at least the selected probability, with a sample to check."""
    percent = _find_min_percent(page.query)
    async with page.open_read_transaction() as tx:
        pairs = tx[PairStore]
        counts = {each: await pairs.count_certain(each / 100, MAX_COUNTED_PAIRS) for each in BULK_PERCENTAGES}
        sample = await pairs.sample_certain(percent / 100, SAMPLE_SIZE)
    items = [
        [
            build_match_item({"id": variant, "product": product}, await page.get_visible(f"/v1/products/{product}"))
            for variant, product in ((pair.left, pair.left_product), (pair.right, pair.right_product))
        ]
        for pair in sample
    ]
    return page.render(
        "matching/accept.html",
        image_origins=page.console.object_origins,
        percent=percent,
        counts=counts,
        max_counted=MAX_COUNTED_PAIRS,
        sample=[(pair, sides, compare_items(*sides)) for pair, sides in zip(sample, items, strict=True)],
    )


@pages.register_post("/matching/accept", scope=WRITE_SCOPE, error_view=show_bulk_merge)
async def merge_certain_pairs(page: PageContext) -> Response:
    """Start to merge all open matches with at least the selected probability."""
    percent = _find_min_percent(page.form)
    async with page.open_transaction(MERGE_PAIR) as tx:
        await queue_bulk_merge(tx, percent / 100)
    notice = gettext("The matches are being merged. Undo them in the audit log, or one by one.")
    return page.redirect("/console/merges", notice)


def _find_min_percent(values: FormData) -> int:
    """Return the selected one of BULK_PERCENTAGES, by default the first."""
    number = values.get_number("min")
    return number if number in BULK_PERCENTAGES else BULK_PERCENTAGES[0]


@pages.register_get("/merges", title=N_("Merges"))
async def list_merges(page: PageContext) -> Response:
    """Show the merges that match the filters, with the names of the items that are shown for both."""
    filters = page.query.select("status", "kind")
    found = await page.api.get("/v1/merges", limit=25, starting_after=page.cursor, **filters)
    return page.render(
        "matching/merges.html",
        results=found,
        filters=filters,
        items=await find_named_items(page, (merge["survivor"] for merge in found["data"])),
        image_origins=page.console.object_origins,
    )


@pages.register_get("/merges/<id>")
async def show_merge(page: PageContext) -> Response:
    """Show a merge with a preview of what its undo would change."""
    merge = await page.api.get(f"/v1/merges/{page.path_parameters['id']}")
    preview, refusal_reason = None, ""
    if merge["status"] == "applied" and page.may(WRITE_SCOPE):
        try:
            preview = await page.api.post(f"/v1/merges/{merge['id']}/undo", dry_run="explain")
        except OperationRefused as error:
            refusal_reason = error.detail
    ids = [merge["survivor"], merge["merged"]]
    items = await _find_source_items(page, ids) | await find_named_items(page, ids)
    return page.render(
        "matching/merge.html",
        image_origins=page.console.object_origins,
        merge=merge,
        items=items,
        preview=preview,
        max_changes=60,
        refusal_reason=refusal_reason,
    )


async def _find_source_items(page: PageContext, ids: Sequence[str]) -> dict[str, NamedItem]:
    """Return the titles of variants as their sources state them, by ID, also of variants that are merged into others."""
    async with page.open_read_transaction() as tx:
        variants = await tx[MatchIndexStore].load_variants(ids)
    return {
        one.variant: NamedItem(
            one.product,
            one.product_data.get("title") or one.variant,
            one.variant_data.get("title") or one.variant_data.get("sku", ""),
            None,
        )
        for one in variants
    }


@pages.register_post("/merges/<id>/undo", scope=WRITE_SCOPE, error_view=show_merge)
async def undo_merge(page: PageContext) -> Response:
    """Undo the merge."""
    await page.api.post(f"/v1/merges/{page.path_parameters['id']}/undo")
    return page.redirect(
        f"/console/merges/{page.path_parameters['id']}", gettext("Merge undone. Both items are separate again.")
    )


@pages.register_get("/judge", title=N_("AI review"))
async def show_judge_settings(page: PageContext) -> Response:
    """Show the settings of the judge, which the console calls AI review."""
    settings = await page.api.get(_SETTINGS_PATH)
    values: Mapping[str, Any] = {
        "enabled": settings["enabled"],
        "model": settings.get("model") or "",
        **{name: f"{Decimal(str(settings[name])) * 100:f}".rstrip("0").rstrip(".") for name in _PERCENT_FIELDS},
        "daily_budget": format_dollars(settings["daily_budget_micros"]),
    }
    if page.is_post:
        values = {name: page.form[name] for name in values}
    return page.render(
        "matching/judge.html", values=values, is_configured=page.dependencies.find_optional(LanguageModels) is not None
    )


@pages.register_post("/judge", scope=WRITE_SCOPE, error_view=show_judge_settings)
async def save_judge_settings(page: PageContext) -> Response:
    """Change the settings of the judge."""
    form = page.form
    body: dict[str, Any] = {"enabled": bool(form.get("enabled")), "model": form.get("model") or None}
    for name in _PERCENT_FIELDS:
        percent = parse_number(form.get(name))
        body[name] = float(percent / 100) if isinstance(percent, Decimal) else percent
    body["daily_budget_micros"] = parse_dollars(form.get("daily_budget"))
    await page.api.send_change("PATCH", _SETTINGS_PATH, body)
    return page.redirect("/console/judge", gettext("Saved"))
