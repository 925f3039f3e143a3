"""Pairs that may be the same item, in a list and in a review by keyboard; merges and their undoing; the judge's settings."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import urlencode

from domain.kernel.paging import PageRequest
from domain.matching.model import PairFilter, PairStatus
from domain.matching.ports import PairStore
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.products import Item, compared, item_of, origins_of
from entrypoints.http.exchange import Response

READ: Final = "products:read"
WRITE: Final = "products:write"
_STATUSES: Final = ("open", "merged", "dismissed", "superseded")
_CHANGES: Final = 60
_MICROS: Final = 1_000_000

pages: Final = Pages("/console", section="Matching", scope=READ)


@pages.get("/matching/review", title="Review")
async def review(page: PageContext) -> Response:
    """Show the newest pair that waits."""
    pair = await _beside(page, None, backwards=False)
    return page.redirect(f"/console/matching/pairs/{pair}") if pair else page.render("matching/nothing.html")


@pages.get("/matching", title="Pairs")
async def list_pairs(page: PageContext) -> Response:
    """Show the list."""
    status, given = page.query.get("status", "open"), page.query.given("product", "variant")
    asked = status if status in _STATUSES else None
    found = await page.api.get("/v1/match-pairs", limit=25, status=asked, starting_after=page.cursor, **given)
    kept = {"status": status, "cursor": page.cursor or ""} | given
    return page.render("matching/pairs.html", found=found, chosen=status, statuses=_STATUSES, kept=kept)


async def _beside(page: PageContext, pair: str | None, *, backwards: bool) -> str | None:
    """Return the open pair next to that one in the list's order; the first without one."""
    asked = PageRequest(limit=1, key=pair, backwards=backwards)
    async with page.read() as tx:
        found = (await tx[PairStore].matching(PairFilter(status=PairStatus.OPEN), asked)).items
    return found[-1].id if found else None


@pages.get("/matching/pairs/<id>")
async def show_pair(page: PageContext, refused: Refused | None = None) -> Response:
    """Show one pair, side by side."""
    pair = await page.api.get(f"/v1/match-pairs/{page.ids['id']}")
    left, right = [
        item_of(side, await _get_or_none(page, f"/v1/products/{side['product']}")) for side in pair["variants"]
    ]
    evidence = sorted((part for part in pair["evidence"] if part["weight"]), key=lambda part: -abs(part["weight"]))
    return page.render(
        "matching/pair.html",
        refused=refused,
        pictures=(*origins_of((*left.pictures, *right.pictures)), *page.console.object_origins),
        pair=pair,
        sides=(left, right),
        rows=compared(left, right),
        evidence=evidence,
        next=await _beside(page, pair["id"], backwards=False),
        previous=await _beside(page, pair["id"], backwards=True),
        names=await _source_names(page, left, right),
        last=page.query.get("last"),
        editable=page.may(WRITE),
    )


async def _get_or_none(page: PageContext, path: str) -> Any:
    try:
        return await page.api.get(path)
    except Refused as refused:
        if refused.status not in (403, 404):
            raise
        return None


async def _source_names(page: PageContext, *sides: Item) -> dict[str, str]:
    """Return the names of the sources that offer the two, where the role may read them."""
    ids = {id for side in sides for id in side.sources[:3]} if page.may("sources:read") else ()
    sources = [await _get_or_none(page, f"/v1/sources/{id}") for id in ids]
    return {source["id"]: source["name"] for source in sources if source}


@pages.post("/matching/pairs/<id>/<any(merge, dismiss, reopen):what>", scope=WRITE, again=show_pair)
async def decide(page: PageContext) -> Response:
    """Merge, dismiss or reopen; then show the next pair."""
    id, what = page.ids["id"], page.ids["what"]
    following = await _beside(page, id, backwards=False) or await _beside(page, id, backwards=True)
    await page.api.post(f"/v1/match-pairs/{id}/{what}")
    if what == "reopen":
        return page.redirect(f"/console/matching/pairs/{id}", "The pair is open again.")
    said = "Merged: the two are shown as one." if what == "merge" else "Dismissed: they are not offered again."
    place = f"/console/matching/pairs/{following}" if following else "/console/matching/review"
    return page.redirect(f"{place}?{urlencode({'last': id})}", said)


@pages.post("/matching/pairs/<id>/undo", scope=WRITE, again=show_pair)
async def undo_decision(page: PageContext) -> Response:
    """Take back what was decided about a pair last."""
    id = page.ids["id"]
    pair = await page.api.get(f"/v1/match-pairs/{id}")
    if pair["status"] == "merged" and pair.get("merge"):
        await page.api.post(f"/v1/merges/{pair['merge']}/undo")
    elif pair["status"] == "dismissed":
        await page.api.post(f"/v1/match-pairs/{id}/reopen")
    return page.redirect(f"/console/matching/pairs/{id}", "Taken back: the pair is open again.")


@pages.get("/merges", title="Merges")
async def list_merges(page: PageContext) -> Response:
    """Show what was joined, and by whom."""
    given = page.query.given("status", "kind")
    found = await page.api.get("/v1/merges", limit=25, starting_after=page.cursor, **given)
    kept = {"status": "", "kind": "", "cursor": page.cursor or ""} | given
    return page.render("matching/merges.html", found=found, kept=kept)


@pages.get("/merges/<id>")
async def show_merge(page: PageContext, refused: Refused | None = None) -> Response:
    """Show one merge; with what undoing it would do, worked out by a dry run."""
    merge = await page.api.get(f"/v1/merges/{page.ids['id']}")
    preview, why_not, survivor = None, "", None
    if merge["status"] == "applied" and page.may(WRITE):
        try:
            preview = await page.api.post(f"/v1/merges/{merge['id']}/undo", dry_run="explain")
        except Refused as error:
            why_not = error.detail
    if merge["kind"] == "product":
        survivor = await _get_or_none(page, f"/v1/products/{merge['survivor']}")
    return page.render(
        "matching/merge.html",
        refused=refused,
        merge=merge,
        survivor=survivor,
        preview=preview,
        most=_CHANGES,
        why_not=why_not,
    )


@pages.post("/merges/<id>/undo", scope=WRITE, again=show_merge)
async def undo_merge(page: PageContext) -> Response:
    """Undo it."""
    await page.api.post(f"/v1/merges/{page.ids['id']}/undo")
    return page.redirect(f"/console/merges/{page.ids['id']}", "Undone: both are their own again.")


@pages.get("/judge", title="Judge")
async def show_judge(page: PageContext, refused: Refused | None = None) -> Response:
    """Show whether a model is asked about pairs, what it may do by itself, and what it may cost."""
    now = await page.api.get("/v1/matching/judge-settings")
    values: Mapping[str, Any] = {
        "enabled": now["enabled"],
        "model": now.get("model") or "",
        "auto_merge_at": f"{Decimal(str(now['auto_merge_at'])) * 100:f}".rstrip("0").rstrip("."),
        "auto_dismiss_at": f"{Decimal(str(now['auto_dismiss_at'])) * 100:f}".rstrip("0").rstrip("."),
        "daily_budget": f"{Decimal(now['daily_budget_micros']) / _MICROS:.2f}",
    }
    if page.sent:
        values = {name: page.form[name] for name in values}
    configured = page.dependencies.models is not None
    return page.render(
        "matching/judge.html", refused=refused, values=values, configured=configured, editable=page.may(WRITE)
    )


def _number(text: str, factor: int) -> Any:
    """Return a multiple of the number, or the text as it is, to be refused; a few letters can say a number of megabytes."""
    try:
        found = Decimal(text.replace(",", ".").removesuffix("%").strip().removeprefix("$"))
    except InvalidOperation:
        return text
    return found * factor if found.is_finite() and abs(found.adjusted()) < 12 else text


@pages.post("/judge", scope=WRITE, again=show_judge)
async def save_judge(page: PageContext) -> Response:
    """Change the judge's settings."""
    form, budget = page.form, _number(page.form.get("daily_budget"), _MICROS)
    body: dict[str, Any] = {"enabled": bool(form.get("enabled")), "model": form.get("model") or None}
    for name in ("auto_merge_at", "auto_dismiss_at"):
        share = _number(form.get(name), 1)
        body[name] = float(share / 100) if isinstance(share, Decimal) else share
    body["daily_budget_micros"] = int(budget) if isinstance(budget, Decimal) else budget
    await page.api.patch("/v1/matching/judge-settings", body)
    return page.redirect("/console/judge", "Saved.")
