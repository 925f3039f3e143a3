"""JSON of the service's status."""

from typing import Any

from adapters.wire.resource import Resource
from domain.kernel import schema
from domain.kernel.plain import instant
from domain.kernel.resource import computed, optional
from domain.platform.incidents import TEXT, TITLE, Incident, OpenedBy
from domain.platform.model import COMPONENTS, Component, ComponentState
from domain.platform.usecases import PlatformStatus

UPTIME = schema.record(
    None, {"day": schema.date(), "uptime": schema.number(0.9993, "The share of the day's checks that passed, 0 to 1.")}
)
COMPONENT = schema.record(
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


INCIDENT_UPDATE = schema.record(
    None,
    {
        "at": schema.timestamp(),
        "state": schema.enum(*ComponentState),
        "text": schema.text("3 consecutive checks failed.", longest=TEXT),
    },
)
INCIDENT = Resource[Incident](
    "status_incident",
    {
        "id": schema.id_of("inc"),
        "component": schema.enum(*COMPONENTS),
        "state": schema.enum(*ComponentState),
        "title": schema.text("feed is degraded", longest=TITLE),
        "opened_by": schema.enum(*OpenedBy),
        "opened_at": schema.timestamp("When the incident began, as far as is known."),
        "updated_at": schema.timestamp(),
        "closed_at": optional(schema.timestamp("Omitted while the incident is open.")),
        "updates": computed(
            schema.array(INCIDENT_UPDATE, description="Updates, oldest first."),
            lambda incident, _: [
                {"at": instant(update.at), "state": update.state, "text": update.text} for update in incident.updates
            ],
        ),
    },
    description="A period in which a component of the service was degraded or down.",
)
STATUS = Resource[PlatformStatus](
    "platform_status",
    {
        "state": schema.enum(*ComponentState),
        "components": computed(
            schema.array(COMPONENT), lambda status, _: [_component(component) for component in status.components]
        ),
        "incidents": computed(
            schema.array(INCIDENT.schema, description="Open incidents, newest first."),
            lambda status, view: [INCIDENT.render(incident, view) for incident in status.incidents],
        ),
        "checked_at": optional(schema.timestamp("When the latest check was made.")),
    },
    description="The service's status, from checks made every minute.",
)
