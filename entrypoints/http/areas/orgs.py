"""GET /v1/org, /v1/me/orgs and /v1/plans."""

from typing import Final

from adapters.wire import orgs as wire
from domain.orgs.model import Organisation
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool


async def read_own(call: RequestContext) -> Reply:
    """The caller's organisation."""
    organisation = await call.use.orgs.own(call.tx)
    return Reply(wire.to_wire(organisation, livemode=call.principal.tenant.livemode))


async def list_of_caller(call: RequestContext) -> Reply:
    """The organisations that the caller can act in."""
    livemode = call.principal.tenant.livemode

    def to_wire(organisation: Organisation) -> dict[str, object]:
        return wire.to_wire(organisation, livemode=livemode)

    return call.listing(await call.use.orgs.of_caller(call.tx, call.principal.user, call.page_request), to_wire)


async def list_plans(call: RequestContext) -> Reply:
    """Every plan on offer, as one page."""
    data = [wire.plan_to_wire(plan) for plan in await call.use.orgs.plans(call.tx)]
    return Reply({"object": "list", "data": data, "has_more": False, "next_cursor": None})


OPERATIONS: Final = (
    Operation(
        id="orgs.read",
        method="GET",
        path="/v1/org",
        summary="Read your organisation",
        description="The organisation that the credential belongs to, with its plan and its own catalogue in this mode.",
        handler=read_own,
        scope="org:read",
        reply=wire.ORGANISATION,
        rate="read",
        agent=Tool(),
    ),
    Operation(
        id="orgs.list_mine",
        method="GET",
        path="/v1/me/orgs",
        summary="List the organisations you belong to",
        description="For a person, every organisation they are a member of; for a key or an app, the one it belongs to.",
        handler=list_of_caller,
        scope=None,
        reply=wire.ORGANISATIONS,
        rate="read",
        paging="both",
    ),
    Operation(
        id="orgs.list_plans",
        method="GET",
        path="/v1/plans",
        summary="List the plans",
        description="Every plan on offer, cheapest first, with its features and what its meters include.",
        handler=list_plans,
        scope=None,
        reply=wire.PLANS,
        rate="read",
        agent=Tool(),
    ),
)
