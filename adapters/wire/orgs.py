"""JSON of organisations and plans."""

from adapters.wire.resource import Resource
from domain.kernel import schema
from domain.kernel.resource import computed, optional
from domain.orgs.model import AVAILABLE, KINDS, Organisation, Plan

METER = schema.record(
    None,
    {
        "included": schema.integer(100000, least=0, description="Quantity that a month includes."),
        "per": schema.integer(1000, least=1),
        "amount": schema.minor(50, "Price of each further `per` units, in minor units."),
    },
)
_FEATURES = schema.array(
    schema.enum(*sorted(AVAILABLE)),
    description="Additional features of the plan: `stream` is GET /v1/stream, `fat_webhooks` means webhooks with `payload: fat`.",
)
PLAN = Resource[Plan](
    "plan",
    {
        "code": schema.text("standard"),
        "name": schema.text("Standard"),
        "tier": schema.enum("standard", "high", "max"),
        "currency": schema.currency(),
        "monthly": schema.minor(9900, "Price per month in minor units."),
        "features": computed(_FEATURES, lambda plan, _: sorted(plan.available)),
        "meters": schema.map_of(METER, {"sources": {"included": 10, "per": 1, "amount": 900}}),
        "delivery_days": schema.integer(30, least=1, description="Number of days that webhook deliveries are kept."),
        "request_log_days": schema.integer(30, least=1, description="Number of days that request logs are kept."),
    },
    description="An available plan.",
)
ORGANISATION = Resource[Organisation](
    "organisation",
    {
        "id": schema.id_of("org"),
        "name": schema.text("Fjord & Oak"),
        "kind": schema.enum(*KINDS),
        "plan": computed(schema.text("standard", description="The code of the plan."), lambda org, _: org.plan.code),
        "tier": computed(schema.enum("standard", "high", "max"), lambda org, _: org.plan.tier),
        "features": computed(
            _FEATURES,
            lambda org, _: sorted(org.plan.available),
        ),
        "catalogue": computed(
            schema.id_of("cat", "The organisation's own catalogue in this mode."),
            lambda org, view: org.catalogue(view.tenant.livemode),
        ),
        "api_version": optional(schema.text("2026-10-04", description="The API version, pinned by the first request.")),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "created_at": schema.timestamp(),
    },
    description="An organisation: a retailer or a vendor.",
)
