"""Looks at websites: how far one is, what it found, and the source that it proposes, tried out before it is made."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.wire import probes as wire
from domain.kernel.errors import NotFound
from domain.kernel.resource import View
from domain.probes.model import Probe
from entrypoints.console.answers import answered
from entrypoints.console.asked import Values
from entrypoints.console.page import Answer, Page
from entrypoints.console.previews import preview_of_pull
from entrypoints.console.progress import followed
from entrypoints.console.refusals import Refused
from entrypoints.console.source_fields import INTERVALS, LICENCES, READ, WRITE, schedule_given
from entrypoints.console.visit import Visit

_OPEN: Final = frozenset({"queued", "running"})
EFFORTS: Final = {
    "low": ("good", "Joinery reads this as it is"),
    "medium": ("warn", "Readable, with a catch"),
    "high": ("warn", "Much work for what it gives"),
    "infeasible": ("bad", "Nothing to be read here"),
}


async def one(visit: Visit) -> Answer:
    """A probe, and once it is over the form of what it proposes."""
    return await _one(visit, visit.query)


async def _one(visit: Visit, given: Values, refusal: Refused | None = None, preview: Any = None) -> Answer:
    probe = await visit.api.get(f"/v1/source-probes/{visit.ids['id']}")
    proposal = probe.get("proposal")
    if not given.get("name") and proposal:
        schedule = proposal.get("schedule", {})
        before = {
            "name": proposal["name"],
            "currency": proposal["config"].get("currency", ""),
            "interval_minutes": str(schedule.get("interval_minutes", "")),
        }
        given = Values([*before.items(), *given.pairs])
    return visit.render(
        "sources/probe.html",
        status=refusal.status if refusal else 200,
        proposal=proposal,
        given=given,
        refused=refusal,
        preview=preview,
        licences=LICENCES,
        intervals=INTERVALS,
        efforts=EFFORTS,
        **_state(probe),
    )


def _state(probe: Mapping[str, Any]) -> dict[str, Any]:
    return {"probe": probe, "open": probe["status"] in _OPEN}


async def progress(visit: Visit) -> Answer:
    """How far it is, as it goes on."""
    id, tenant = visit.ids["id"], visit.principal.tenant
    await visit.api.get(f"/v1/source-probes/{id}")

    async def look() -> tuple[Mapping[str, Any], bool]:
        async with visit.reading() as tx:
            probe = await tx.store(Probe).get(id)
            if probe is None:
                raise NotFound
            state = _state(answered(wire.PROBE.render(probe, View(tenant, tx.now))))
        return state, not state["open"]

    return followed(visit, "sources/probe.html", "progress", look)


async def accept(visit: Visit) -> Answer:
    """Try what it proposes out, or make the source of it."""
    form = visit.form
    probe = await visit.api.get(f"/v1/source-probes/{visit.ids['id']}")
    if "proposal" not in probe:
        return visit.redirect(f"/console/probes/{probe['id']}", "It proposes nothing.", tone="bad")
    body = {name: value for name, value in probe["proposal"].items() if name not in ("name", "schedule")}
    if currency := form.get("currency").lower():
        body["config"] = body["config"] | {"currency": currency}
    body |= {"name": form.get("name"), "schedule": schedule_given(form)}
    body["licence_basis"] = form.get("licence_basis", "unknown")
    try:
        if form.get("do") == "look":
            return await _one(visit, form, preview=await preview_of_pull(visit, body))
        source = await visit.api.post("/v1/sources", body)
    except Refused as refusal:
        return await _one(visit, form, refusal)
    return visit.redirect(f"/console/sources/{source['id']}", f"{source['name']} is connected; it is read at once.")


PAGES: Final = (
    Page("/console/probes/<id>", one, scope=READ, menu="Sources"),
    Page("/console/probes/<id>", accept, methods=("POST",), scope=WRITE, menu="Sources"),
    Page("/console/probes/<id>/progress", progress, scope=READ, menu="Sources"),
)
