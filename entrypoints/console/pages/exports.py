"""Exports: started, watched while they are written, and downloaded."""

from typing import Any, Final

from entrypoints.console.moments import beginning_of_day
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

PLACE: Final = "/console/organisation/exports"
OPEN: Final = frozenset({"pending", "running"})


async def show(visit: Visit, refusal: Refused | None = None) -> Answer:
    """All of them, newest first."""
    cursor = visit.query.get("cursor") or None
    found = await visit.api.get("/v1/exports", limit=20, starting_after=cursor)
    return visit.render(
        "organisation/exports.html",
        status=refusal.status if refusal else 200,
        found=found,
        moving=any(one["status"] in OPEN for one in found["data"]),
        given=visit.query.given("cursor"),
        asked=visit.form,
        place=PLACE,
        refusal=refusal,
        may_start=visit.may("exports:write"),
    )


async def start(visit: Visit) -> Answer:
    """Start one."""
    form = visit.form
    body: dict[str, Any] = {"kind": form.get("kind", "products")}
    if (since := form.get("since")) and body["kind"] == "products":
        body["filters"] = {"updated_since": beginning_of_day(since)}
    try:
        await visit.api.post("/v1/exports", body)
    except Refused as error:
        return await show(visit, error)
    return visit.redirect(PLACE, "The export is being written. You can leave this page.", tone="info")


PAGES: Final = (
    Page(PLACE, show, scope="exports:read", menu=Entry("Organisation", "Exports")),
    Page(PLACE, start, methods=("POST",), scope="exports:write", menu="Organisation"),
)
