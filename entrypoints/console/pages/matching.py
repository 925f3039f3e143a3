"""Matches with their review, merges with their undo, and the settings of the AI review."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlencode

from domain.kernel.paging import PageRequest
from domain.matching.model import PairFilter, PairStatus
from domain.matching.ports import PairStore
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.products import compared, item_of, origins_of
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.models import Models

WRITE = "products:write"
_STATUSES = ("open", "merged", "dismissed", "superseded")
_JUDGE = "/v1/matching/judge-settings"
_SHARES = ("auto_merge_at", "auto_dismiss_at")
_MICROS = 1_000_000

pages = Pages("/console", section=N_("Matching"), scope="products:read")


@pages.get("/matching/review", title=N_("Review"))
async def review(page: PageContext) -> Response:
    """Show the newest open match."""
    pair = await _find_neighbour(page, None, backwards=False)
    return page.redirect(f"/console/matching/pairs/{pair}") if pair else page.render("matching/nothing.html")


@pages.get("/matching", title=N_("Matches"))
async def list_pairs(page: PageContext) -> Response:
    """Show the list of matches."""
    status, given = page.query.get("status", "open"), page.query.given("product", "variant")
    known = status if status in _STATUSES else None
    found = await page.api.get("/v1/match-pairs", limit=25, status=known, starting_after=page.cursor, **given)
    kept = {"status": status, "cursor": page.cursor or ""} | given
    return page.render("matching/pairs.html", found=found, chosen=status, statuses=_STATUSES, kept=kept)


async def _find_neighbour(page: PageContext, pair: str | None, *, backwards: bool) -> str | None:
    """Return the ID of the next open pair in the order of the list; the first one if `pair` is None."""
    request = PageRequest(limit=1, key=pair, backwards=backwards)
    async with page.read() as tx:
        found = (await tx[PairStore].matching(PairFilter(status=PairStatus.OPEN), request)).items
    return found[-1].id if found else None


@pages.get("/matching/pairs/<id>")
async def show_pair(page: PageContext) -> Response:
    """Show the two items of a match side by side."""
    pair = await page.api.get(f"/v1/match-pairs/{page.ids['id']}")
    left, right = [
        item_of(side, await page.get_or_none(f"/v1/products/{side['product']}")) for side in pair["variants"]
    ]
    ids = {id for side in (left, right) for id in side.sources[:3]} if page.may("sources:read") else ()
    sources = [await page.get_or_none(f"/v1/sources/{id}") for id in ids]
    return page.render(
        "matching/pair.html",
        pictures=(*origins_of((*left.pictures, *right.pictures)), *page.console.object_origins),
        pair=pair,
        sides=(left, right),
        rows=compared(left, right),
        evidence=sorted((part for part in pair["evidence"] if part["weight"]), key=lambda part: -abs(part["weight"])),
        next=await _find_neighbour(page, pair["id"], backwards=False),
        previous=await _find_neighbour(page, pair["id"], backwards=True),
        names={source["id"]: source["name"] for source in sources if source},
    )


@pages.post("/matching/pairs/<id>/<any(merge, dismiss, reopen, undo):what>", scope=WRITE, again=show_pair)
async def decide(page: PageContext) -> Response:
    """Merge or dismiss a match and show the next one, reopen the match, or undo the last decision."""
    id, what = page.ids["id"], page.ids["what"]
    here, path = f"/console/matching/pairs/{id}", f"/v1/match-pairs/{id}"
    if what == "undo":
        pair = await page.api.get(path)
        if pair["status"] == "merged" and pair.get("merge"):
            await page.api.post(f"/v1/merges/{pair['merge']}/undo")
        elif pair["status"] == "dismissed":
            await page.api.post(f"{path}/reopen")
        return page.redirect(here, gettext("Decision undone. The match is open again."))
    following = await _find_neighbour(page, id, backwards=False) or await _find_neighbour(page, id, backwards=True)
    await page.api.post(f"{path}/{what}")
    if what == "reopen":
        return page.redirect(here, gettext("Match reopened"))
    notice = gettext("Items merged") if what == "merge" else gettext("Match dismissed")
    place = f"/console/matching/pairs/{following}" if following else "/console/matching/review"
    return page.redirect(f"{place}?{urlencode({'last': id})}", notice)


pages.show(
    "/merges",
    "matching/merges.html",
    limit=25,
    filters=("status", "kind"),
    read={"found": "/v1/merges"},
    title=N_("Merges"),
)


@pages.get("/merges/<id>")
async def show_merge(page: PageContext) -> Response:
    """Show a merge with a preview of its undo by a dry run."""
    merge, preview, why_not, survivor = await page.api.get(f"/v1/merges/{page.ids['id']}"), None, "", None
    if merge["status"] == "applied" and page.may(WRITE):
        try:
            preview = await page.api.post(f"/v1/merges/{merge['id']}/undo", dry_run="explain")
        except Refused as error:
            why_not = error.detail
    if merge["kind"] == "product":
        survivor = await page.get_or_none(f"/v1/products/{merge['survivor']}")
    return page.render("matching/merge.html", merge=merge, survivor=survivor, preview=preview, most=60, why_not=why_not)


@pages.post("/merges/<id>/undo", scope=WRITE, again=show_merge)
async def undo_merge(page: PageContext) -> Response:
    """Undo the merge."""
    await page.api.post(f"/v1/merges/{page.ids['id']}/undo")
    return page.redirect(f"/console/merges/{page.ids['id']}", gettext("Merge undone. Both items are separate again."))


@pages.get("/judge", title=N_("AI review"))
async def show_judge(page: PageContext) -> Response:
    """Show the settings of the AI review."""
    now = await page.api.get(_JUDGE)
    values: Mapping[str, Any] = {
        "enabled": now["enabled"],
        "model": now.get("model") or "",
        **{name: f"{Decimal(str(now[name])) * 100:f}".rstrip("0").rstrip(".") for name in _SHARES},
        "daily_budget": f"{Decimal(now['daily_budget_micros']) / _MICROS:.2f}",
    }
    if page.sent:
        values = {name: page.form[name] for name in values}
    return page.render("matching/judge.html", values=values, configured=page.dependencies.find(Models) is not None)


def _number(text: str) -> Any:
    """Return the number, or the text itself for the operation to refuse; limits the exponent, which sets the size."""
    try:
        found = Decimal(text.replace(",", ".").removesuffix("%").strip().removeprefix("$"))
    except InvalidOperation:
        return text
    return found if found.is_finite() and abs(found.adjusted()) < 12 else text


@pages.post("/judge", scope=WRITE, again=show_judge)
async def save_judge(page: PageContext) -> Response:
    """Change the settings of the AI review."""
    form = page.form
    body: dict[str, Any] = {"enabled": bool(form.get("enabled")), "model": form.get("model") or None}
    for name in _SHARES:
        share = _number(form.get(name))
        body[name] = float(share / 100) if isinstance(share, Decimal) else share
    budget = _number(form.get("daily_budget"))
    body["daily_budget_micros"] = int(budget * _MICROS) if isinstance(budget, Decimal) else budget
    await page.api.change("PATCH", _JUDGE, body)
    return page.redirect("/console/judge", gettext("Saved"))
