"""The JSON of the service's own status."""

from typing import Any, Final

from adapters.wire import schema
from domain.platform.model import COMPONENTS, STATES, Component
from domain.platform.usecases import PlatformStatus

UPTIME: Final = schema.record(
    None, {"day": schema.date(), "uptime": schema.number(0.9993, "The share of the day's checks that passed, 0 to 1.")}
)
COMPONENT: Final = schema.record(
    None,
    {
        "name": schema.word(*COMPONENTS),
        "state": schema.word(*STATES),
        "days": schema.array(UPTIME, description="The last 90 days, oldest first; days without checks are left out."),
    },
)
STATUS: Final = schema.record(
    "platform_status",
    {
        "state": schema.word(*STATES),
        "components": schema.array(COMPONENT),
        "checked_at": schema.timestamp("When the newest check was made."),
    },
    optional=("checked_at",),
    description="How the service is doing, from checks made every minute.",
)


def _component(component: Component) -> dict[str, Any]:
    days = [{"day": day.day.isoformat(), "uptime": round(day.uptime, 4)} for day in component.days]
    return {"name": component.name, "state": component.state, "days": days}


def to_wire(status: PlatformStatus) -> dict[str, Any]:
    """The status."""
    return schema.present(
        object="platform_status",
        state=status.state,
        components=[_component(component) for component in status.components],
        checked_at=schema.instant(status.checked_at) if status.checked_at else None,
    )
