"""Pages of the service's agents: proposals, which people accept or reject, and the agents' settings."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from domain.agents.model import Autonomy
from domain.proposals.model import ProposalKind, ProposalStatus
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.audit import Difference, format_value
from entrypoints.console.pages.catalogue import NamedItem, find_named_items
from entrypoints.console.products import Json
from entrypoints.console.rendering import ListPortion, format_category, format_dollars
from entrypoints.console.request import parse_dollars
from entrypoints.console.security import choose_safe_target
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

PROPOSALS_PATH, AGENTS_PATH = "/console/proposals", "/console/agents"
_PAGE_SIZE = 20
_MAX_VALUE_CHARS = 100
_MAX_SHOWN_MEMBERS = 5
"""Maximum number of shown variants of a group, so that those of a page are at most 100 (find_named_items)."""

pages = Pages(section="Sources")


def list_samples(proposal: Mapping[str, Any]) -> ListPortion[Difference]:
    """Return the values in the proof of a proposal before and after the change; categories by their names."""
    samples = [
        Difference(sample["path"], _format_sample(sample.get("old")), _format_sample(sample.get("new")))
        for sample in proposal["proof"]["samples"]
    ]
    return ListPortion.from_items(samples, 0, len(samples))


async def list_group_members(page: PageContext, proposals: Iterable[Json]) -> dict[str, list[tuple[NamedItem, str]]]:
    """Return the first variants of proposed groups with their new options, by the ID of the proposal.

    Variants that no longer exist are omitted.
    """
    groups = {one["id"]: one["change"]["variants"] for one in proposals if one["kind"] == ProposalKind.VARIANT_GROUP}
    shown = {id: list(variants.items())[:_MAX_SHOWN_MEMBERS] for id, variants in groups.items()}
    items = await find_named_items(page, (variant for variants in shown.values() for variant, _ in variants))
    return {
        id: [
            (items[variant], ", ".join(f"{axis}: {value}" for axis, value in options.items()))
            for variant, options in variants
            if variant in items
        ]
        for id, variants in shown.items()
    }


def _format_sample(value: Any) -> str | None:
    return format_value(format_category(value) if isinstance(value, str) else value, _MAX_VALUE_CHARS)


@pages.register_get(PROPOSALS_PATH, scope="proposals:read", title=N_("Proposals"))
async def list_proposals(page: PageContext) -> Response:
    """Show the proposals with a status, by default those that wait for a decision."""
    status = page.query.get("status", ProposalStatus.PROPOSED)
    filters = {"status": status if status in [*ProposalStatus] else ProposalStatus.PROPOSED.value}
    if page.query.get("kind") in [*ProposalKind]:
        filters["kind"] = page.query["kind"]
    results = await page.api.get("/v1/proposals", limit=_PAGE_SIZE, starting_after=page.cursor, **filters)
    return page.render(
        "proposals/list.html",
        results=results,
        filters=filters,
        list_samples=list_samples,
        members=await list_group_members(page, results["data"]) if page.may("products:read") else {},
        image_origins=page.console.object_origins,
        path=PROPOSALS_PATH,
        return_path=f"{PROPOSALS_PATH}?{urlencode(filters)}",
    )


@pages.register_post(f"{PROPOSALS_PATH}/<id>/accept", scope="sources:write", error_view=list_proposals)
async def accept_proposal(page: PageContext) -> Response:
    """Make the proposed change, and return to the page that showed the proposal."""
    await page.api.post(f"/v1/proposals/{page.path_parameters['id']}/accept")
    return page.redirect(choose_safe_target(page.form["next"], PROPOSALS_PATH), gettext("Proposal accepted"))


@pages.register_post(f"{PROPOSALS_PATH}/<id>/reject", scope="proposals:write", error_view=list_proposals)
async def reject_proposal(page: PageContext) -> Response:
    """Dismiss a proposal, and return to the page that showed the proposal."""
    reason = page.form.get("reason")
    await page.api.post(f"/v1/proposals/{page.path_parameters['id']}/reject", {"reason": reason} if reason else {})
    return page.redirect(choose_safe_target(page.form["next"], PROPOSALS_PATH), gettext("Proposal rejected"))


@pages.register_get(AGENTS_PATH, scope="agents:read", title=N_("Agents"))
async def list_agents(page: PageContext) -> Response:
    """Show the agents with their settings."""
    agents = (await page.api.get("/v1/agents"))["data"]
    return page.render("proposals/agents.html", agents=agents, autonomies=[*Autonomy], format_dollars=format_dollars)


@pages.register_post(f"{AGENTS_PATH}/<agent>", scope="agents:write", error_view=list_agents)
async def change_agent(page: PageContext) -> Response:
    """Change the settings of an agent."""
    form = page.form
    body: dict[str, Any] = {"autonomy": form["autonomy"]}
    if "daily_budget" in form:
        body |= {
            "model": form.get("model") or None,
            "daily_budget_micros": parse_dollars(form.get("daily_budget")),
        }
    await page.api.send_change("PATCH", f"/v1/agents/{page.path_parameters['agent']}", body)
    return page.redirect(AGENTS_PATH, gettext("Settings saved"))
