"""JSON of organisations and plans."""

from adapters.api_json.resource import JsonResource
from domain.kernel import schema
from domain.kernel.resource import computed, optional
from domain.orgs.model import FEATURES, ORGANISATION_KINDS, Organisation, Plan

METER = schema.response_object(
    None,
    {
        "included": schema.integer(100000, minimum=0, description="Quantity per month that the plan includes."),
        "per": schema.integer(1000, minimum=1),
        "amount": schema.money(
            50, "Price of each further `per` units beyond `included`, in minor units of the plan's `currency`."
        ),
    },
)
_FEATURES = schema.array(
    schema.enum(*sorted(FEATURES)),
    description="Additional features of the plan. `stream` permits GET /v1/stream. `fat_webhooks` permits webhook endpoints "
    "with `payload: fat`. `bulk_exports` permits exports of products.",
)
PLAN = JsonResource[Plan](
    "plan",
    {
        "code": schema.text("standard"),
        "name": schema.text("Standard"),
        "tier": schema.enum("standard", "high", "max"),
        "currency": schema.currency(),
        "monthly": schema.money(9900, "Price per month in minor units."),
        "features": computed(_FEATURES, lambda plan, _: sorted(plan.features)),
        "meters": schema.map_schema(METER, {"sources": {"included": 10, "per": 1, "amount": 900}}),
        "delivery_days": schema.integer(30, minimum=1, description="Number of days that webhook deliveries are kept."),
        "request_log_days": schema.integer(30, minimum=1, description="Number of days that request logs are kept."),
    },
    description="An available plan.",
)
ORGANISATION = JsonResource[Organisation](
    "organisation",
    {
        "id": schema.id_schema("org"),
        "name": schema.text("Fjord & Oak"),
        "kind": schema.enum(*ORGANISATION_KINDS),
        "plan": computed(schema.text("standard", description="The code of the plan."), lambda org, _: org.plan.code),
        "tier": computed(schema.enum("standard", "high", "max"), lambda org, _: org.plan.tier),
        "features": computed(
            _FEATURES,
            lambda org, _: sorted(org.plan.features),
        ),
        "catalogue": computed(
            schema.id_schema("cat", "The organisation's own catalogue in this mode."),
            lambda org, view: org.get_catalogue_id(view.tenant.livemode),
        ),
        "api_version": optional(
            schema.text(
                "2026-10-04",
                description="The API version to which the organisation is pinned; omitted until the first request.",
            )
        ),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "created_at": schema.timestamp(),
    },
    description="An organisation: a retailer or a vendor.",
)
