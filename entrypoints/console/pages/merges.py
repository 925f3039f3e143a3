"""Merges: what was joined, by whom, what undoing would give back, and the undoing."""

from collections.abc import Mapping
from typing import Any, Final

from entrypoints.console.comparing import READ, WRITE
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

KINDS: Final = ("variant", "product")
STATUSES: Final = ("applied", "undone")
_SHOWN: Final = 60


async def list_all(visit: Visit) -> Answer:
    """The list."""
    given = {name: visit.query.get(name) or None for name in ("status", "kind")}
    cursor = visit.query.get("cursor") or None
    found = await visit.api.get("/v1/merges", limit=25, starting_after=cursor, **given)
    return visit.render(
        "matching/merges.html",
        found=found,
        kinds=KINDS,
        statuses=STATUSES,
        kept={"cursor": cursor or ""} | {name: value or "" for name, value in given.items()},
    )


async def one(visit: Visit) -> Answer:
    """One merge; with what undoing it would do, worked out by a dry run."""
    return await _one(visit)


async def _one(visit: Visit, refusal: Refused | None = None) -> Answer:
    merge = await visit.api.get(f"/v1/merges/{visit.ids['id']}")
    preview, why_not = None, ""
    if merge["status"] == "applied" and visit.may(WRITE):
        try:
            preview = await visit.api.post(f"/v1/merges/{merge['id']}/undo", dry_run="explain")
        except Refused as refused:
            why_not = refused.detail
    return visit.render(
        "matching/merge.html",
        status=refusal.status if refusal else 200,
        merge=merge,
        titles=await _titles(visit, merge),
        preview=_summed(preview) if preview else None,
        why_not=why_not,
        refused=refusal,
    )


async def _titles(visit: Visit, merge: Mapping[str, Any]) -> dict[str, str]:
    """What the survivor is called, where it is a product."""
    if merge["kind"] != "product":
        return {}
    try:
        product = await visit.api.get(f"/v1/products/{merge['survivor']}")
    except Refused:
        return {}
    return {merge["survivor"]: product["data"].get("title", merge["survivor"])}


def _summed(preview: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "changes": preview["changes"][:_SHOWN],
        "more": max(0, len(preview["changes"]) - _SHOWN),
        "events": preview["events"],
        "warnings": preview["warnings"],
    }


async def undo(visit: Visit) -> Answer:
    """Undo it."""
    id = visit.ids["id"]
    try:
        await visit.api.post(f"/v1/merges/{id}/undo")
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _one(visit, refusal)
    return visit.redirect(f"/console/merges/{id}", "Undone: both are their own again.")


PAGES: Final = (
    Page("/console/merges", list_all, scope=READ, menu=Entry("Matching", "Merges")),
    Page("/console/merges/<id>", one, scope=READ, menu="Matching"),
    Page("/console/merges/<id>/undo", undo, methods=("POST",), scope=WRITE, menu="Matching"),
)
