"""The JSON of the service's own status."""

from typing import Any, Final

from adapters.wire import schema
from adapters.wire.resource import Resource, computed, optional
from domain.platform.model import COMPONENTS, Component, ComponentState
from domain.platform.usecases import PlatformStatus

UPTIME: Final = schema.record(
    None, {"day": schema.date(), "uptime": schema.number(0.9993, "The share of the day's checks that passed, 0 to 1.")}
)
COMPONENT: Final = schema.record(
    None,
    {
        "name": schema.enum(*COMPONENTS),
        "state": schema.enum(*ComponentState),
        "days": schema.array(UPTIME, description="The last 90 days, oldest first; days without checks are left out."),
    },
)


def _component(component: Component) -> dict[str, Any]:
    days = [{"day": day.day.isoformat(), "uptime": round(day.uptime, 4)} for day in component.days]
    return {"name": component.name, "state": component.state, "days": days}


STATUS: Final = Resource[PlatformStatus](
    "platform_status",
    {
        "state": schema.enum(*ComponentState),
        "components": computed(
            schema.array(COMPONENT), lambda status, _: [_component(component) for component in status.components]
        ),
        "checked_at": optional(schema.timestamp("When the newest check was made.")),
    },
    description="How the service is doing, from checks made every minute.",
)
