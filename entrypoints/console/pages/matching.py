"""Pairs that may be the same item: a list, and a review that needs no hand off the keyboard."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from domain.kernel.paging import PageRequest
from domain.matching.model import PairFilter, PairStatus
from domain.matching.ports import PairStore
from entrypoints.console.comparing import READ, WRITE, Item, item_of, rows_of
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.product_lines import origins_of
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

STATUSES: Final = ("open", "merged", "dismissed", "superseded")
CONFLICTS: Final[Mapping[str, str]] = {
    "gtin": "Both have a valid GTIN, and they are different.",
    "brand": "They are of two different brands.",
    "dimensions": "A width, depth or height that both state differs.",
    "size": "The sizes in their titles differ.",
    "colour": "Their colours differ.",
    "finish": "Their finishes differ.",
    "pieces": "They are sold in different numbers of pieces.",
    "accessory": "One is an accessory of what the other is.",
    "family": "Merging them would tie more items together than rules may.",
}
_CORRECTIONS: Final = {
    "calibration": "Facts that go together",
    "rivals": "Other candidates of either item",
    "conflicts": "The conflict",
}


async def pairs(visit: Visit) -> Answer:
    """The list."""
    status = visit.query.get("status", "open")
    cursor = visit.query.get("cursor") or None
    given = {name: visit.query.get(name) or None for name in ("product", "variant")}
    asked = status if status in STATUSES else None
    found = await visit.api.get("/v1/match-pairs", limit=25, status=asked, starting_after=cursor, **given)
    return visit.render(
        "matching/pairs.html",
        found=found,
        titles={pair["id"]: _titles(pair) for pair in found["data"]},
        chosen=status,
        statuses=STATUSES,
        kept={"status": status, "cursor": cursor or ""} | {name: value or "" for name, value in given.items()},
    )


def _titles(pair: Mapping[str, Any]) -> tuple[str, str]:
    """What the two are called, by the evidence."""
    for part in pair["evidence"]:
        if part["comparison"] == "title":
            return str(part.get("left", "")), str(part.get("right", ""))
    return pair["variants"][0]["id"], pair["variants"][1]["id"]


async def review(visit: Visit) -> Answer:
    """The newest pair that waits."""
    found = await _beside(visit, None, backwards=False)
    if found is None:
        return visit.render("matching/nothing.html")
    return visit.redirect(f"/console/matching/pairs/{found}")


async def _beside(visit: Visit, pair: str | None, *, backwards: bool) -> str | None:
    """The open pair next to that one in the list's order; the first without one."""
    asked = PageRequest(limit=1, key=pair, backwards=backwards)
    async with visit.reading() as tx:
        found = (await tx[PairStore].matching(PairFilter(status=PairStatus.OPEN), asked)).items
    return found[-1].id if found else None


async def one(visit: Visit) -> Answer:
    """One pair, side by side."""
    return await _one(visit)


async def _one(visit: Visit, refusal: Refused | None = None) -> Answer:
    pair = await visit.api.get(f"/v1/match-pairs/{visit.ids['id']}")
    sides = [await _side(visit, side) for side in pair["variants"]]
    last = visit.query.get("last")
    names = await _sources(visit, *sides)
    return visit.render(
        "matching/pair.html",
        status=refusal.status if refusal else 200,
        pictures=(*origins_of(one for side in sides for one in side.pictures), *visit.console.object_origins),
        pair=pair,
        sides=sides,
        rows=rows_of(*sides),
        bars=_bars(pair),
        conflicts=[CONFLICTS.get(name, name) for name in pair["conflicts"]],
        next=await _beside(visit, pair["id"], backwards=False),
        previous=await _beside(visit, pair["id"], backwards=True),
        names=names,
        last=last,
        refused=refusal,
        editable=visit.may(WRITE),
    )


async def _side(visit: Visit, side: Mapping[str, Any]) -> Item:
    try:
        return item_of(side, await visit.api.get(f"/v1/products/{side['product']}"))
    except Refused as refusal:
        if refusal.status != 404:
            raise
        return item_of(side, None)


async def _sources(visit: Visit, *sides: Item) -> dict[str, str]:
    """The names of the sources that offer the two, where the role may read them."""
    names = {}
    if visit.may("sources:read"):
        for id in {id for side in sides for id in side.sources[:3]}:
            try:
                names[id] = (await visit.api.get(f"/v1/sources/{id}"))["name"]
            except Refused:
                continue
    return names


def _bars(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The evidence, each part with how far it tips the scale, of the heaviest."""
    parts = [part for part in pair["evidence"] if part["weight"]]
    most = max((abs(part["weight"]) for part in parts), default=1) or 1
    return [
        {
            "title": _CORRECTIONS.get(part["comparison"], part["comparison"].replace("_", " ").capitalize()),
            "name": part["name"] if part["comparison"] not in _CORRECTIONS else "",
            "left": _value(part.get("left")),
            "right": _value(part.get("right")),
            "weight": part["weight"],
            "share": max(1, round(abs(part["weight"]) / most * 100)),
            "correction": part["comparison"] in _CORRECTIONS,
        }
        for part in sorted(parts, key=lambda part: -abs(part["weight"]))
    ]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value[:12])
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)[:300]


async def decide(visit: Visit) -> Answer:
    """Merge, dismiss or reopen; then the next pair."""
    id, what = visit.ids["id"], visit.ids["what"]
    following = await _beside(visit, id, backwards=False) or await _beside(visit, id, backwards=True)
    try:
        await visit.api.post(f"/v1/match-pairs/{id}/{what}")
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _one(visit, refusal)
    if what == "reopen":
        return visit.redirect(f"/console/matching/pairs/{id}", "The pair is open again.")
    said = "Merged: the two are shown as one." if what == "merge" else "Dismissed: they are not offered again."
    place = f"/console/matching/pairs/{following}" if following else "/console/matching/review"
    return visit.redirect(f"{place}?{urlencode({'last': id})}", said)


async def undo(visit: Visit) -> Answer:
    """Take back what was decided about a pair last."""
    id = visit.ids["id"]
    pair = await visit.api.get(f"/v1/match-pairs/{id}")
    try:
        if pair["status"] == "merged" and pair["merge"]:
            await visit.api.post(f"/v1/merges/{pair['merge']}/undo")
        elif pair["status"] == "dismissed":
            await visit.api.post(f"/v1/match-pairs/{id}/reopen")
    except Refused as refusal:
        return await _one(visit, refusal)
    return visit.redirect(f"/console/matching/pairs/{id}", "Taken back: the pair is open again.")


PAGES: Final = (
    Page("/console/matching/review", review, scope=READ, menu=Entry("Matching", "Review")),
    Page("/console/matching", pairs, scope=READ, menu=Entry("Matching", "Pairs")),
    Page("/console/matching/pairs/<id>", one, scope=READ, menu="Matching"),
    Page(
        "/console/matching/pairs/<id>/<any(merge, dismiss, reopen):what>",
        decide,
        methods=("POST",),
        scope=WRITE,
        menu="Matching",
    ),
    Page("/console/matching/pairs/<id>/undo", undo, methods=("POST",), scope=WRITE, menu="Matching"),
)
