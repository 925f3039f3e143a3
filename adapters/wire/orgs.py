"""The JSON of organisations and plans."""

from adapters.wire.resource import Resource
from domain.kernel import schema
from domain.kernel.resource import computed, optional
from domain.orgs.model import AVAILABLE, KINDS, Organisation, Plan

METER = schema.record(
    None,
    {
        "included": schema.integer(100000, least=0, description="What a month includes."),
        "per": schema.integer(1000, least=1),
        "amount": schema.minor(50, "Minor units for each further `per`."),
    },
)
_FEATURES = schema.array(
    schema.enum(*sorted(AVAILABLE)),
    description="What the plan includes beside the rest: `stream` is GET /v1/stream, `fat_webhooks` webhooks with `payload: fat`.",
)
PLAN = Resource[Plan](
    "plan",
    {
        "code": schema.text("standard"),
        "name": schema.text("Standard"),
        "tier": schema.enum("standard", "high", "max"),
        "currency": schema.currency(),
        "monthly": schema.minor(9900, "Minor units a month."),
        "features": computed(_FEATURES, lambda plan, _: sorted(plan.available)),
        "meters": schema.map_of(METER, {"sources": {"included": 10, "per": 1, "amount": 900}}),
        "delivery_days": schema.integer(30, least=1, description="How long webhook deliveries are kept."),
        "request_log_days": schema.integer(30, least=1, description="How long request logs are kept."),
    },
    description="A plan on offer.",
)
ORGANISATION = Resource[Organisation](
    "organisation",
    {
        "id": schema.id_of("org"),
        "name": schema.text("Fjord & Oak"),
        "kind": schema.enum(*KINDS),
        "plan": computed(schema.text("standard", description="The plan's code."), lambda org, _: org.plan.code),
        "tier": computed(schema.enum("standard", "high", "max"), lambda org, _: org.plan.tier),
        "features": computed(
            _FEATURES,
            lambda org, _: sorted(org.plan.available),
        ),
        "catalogue": computed(
            schema.id_of("cat", "The organisation's own catalogue in this mode."),
            lambda org, view: org.catalogue(view.tenant.livemode),
        ),
        "api_version": optional(schema.text("2026-10-04", description="The version pinned by the first request.")),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "created_at": schema.timestamp(),
    },
    description="An organisation: a retailer or a vendor.",
)
