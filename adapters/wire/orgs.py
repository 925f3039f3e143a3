"""The JSON of organisations and plans."""

from typing import Any, Final

from adapters.wire import schema
from domain.orgs.model import FEATURES, KINDS, Organisation, Plan

METER: Final = schema.record(
    None,
    {
        "included": schema.integer(100000, least=0, description="What a month includes."),
        "per": schema.integer(1000, least=1),
        "amount": schema.minor(50, "Minor units for each further `per`."),
    },
)
PLAN: Final = schema.record(
    "plan",
    {
        "code": schema.text("standard"),
        "name": schema.text("Standard"),
        "tier": schema.word("standard", "high", "max"),
        "currency": schema.currency(),
        "monthly": schema.minor(9900, "Minor units a month."),
        "features": schema.array(schema.word(*sorted(FEATURES))),
        "meters": schema.map_of(METER, {"export_rows": {"included": 100000, "per": 1000, "amount": 50}}),
        "delivery_days": schema.integer(30, least=1, description="How long webhook deliveries are kept."),
        "request_log_days": schema.integer(30, least=1, description="How long request logs are kept."),
    },
    description="A plan on offer.",
)
ORGANISATION: Final = schema.record(
    "organisation",
    {
        "id": schema.id_of("org"),
        "name": schema.text("Fjord & Oak"),
        "kind": schema.word(*KINDS),
        "plan": schema.text("standard", description="The plan's code."),
        "tier": schema.word("standard", "high", "max"),
        "features": schema.array(schema.word(*sorted(FEATURES)), description="What the plan includes."),
        "catalogue": schema.id_of("cat", "The organisation's own catalogue in this mode."),
        "api_version": schema.text("2026-10-04", description="The version pinned by the first request."),
        "livemode": schema.flag(),
        "created_at": schema.timestamp(),
    },
    optional=("api_version",),
    description="An organisation: a retailer or a vendor.",
)
PLANS: Final = schema.list_of(PLAN)
ORGANISATIONS: Final = schema.list_of(ORGANISATION)


def plan_to_wire(plan: Plan) -> dict[str, Any]:
    """A plan."""
    meters = plan.meters.items()
    return {
        "object": "plan",
        "code": plan.code,
        "name": plan.name,
        "tier": plan.tier,
        "currency": plan.currency,
        "monthly": plan.monthly,
        "features": sorted(plan.features),
        "meters": {name: {"included": m.included, "per": m.per, "amount": m.amount} for name, m in meters},
        "delivery_days": plan.delivery_days,
        "request_log_days": plan.request_log_days,
    }


def to_wire(organisation: Organisation, *, livemode: bool) -> dict[str, Any]:
    """An organisation as one of its modes sees it."""
    return schema.present(
        object="organisation",
        id=organisation.id,
        name=organisation.name,
        kind=organisation.kind,
        plan=organisation.plan.code,
        tier=organisation.plan.tier,
        features=sorted(organisation.plan.features),
        catalogue=organisation.catalogue(livemode),
        api_version=organisation.api_version,
        livemode=livemode,
        created_at=schema.instant(organisation.created_at),
    )
