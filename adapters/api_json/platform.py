"""JSON of the service's status."""

from typing import Any

from adapters.api_json.resource import JsonResource
from domain.kernel import schema
from domain.kernel.json_values import format_time
from domain.kernel.resource import computed, optional
from domain.platform.incidents import MAX_TEXT_CHARS, MAX_TITLE_CHARS, Incident, OpenedBy
from domain.platform.model import COMPONENTS, Component, ComponentState
from domain.platform.usecases import PlatformStatus

UPTIME = schema.response_object(
    None, {"day": schema.date(), "uptime": schema.number(0.9993, "The share of the day's checks that passed, 0 to 1.")}
)
COMPONENT = schema.response_object(
    None,
    {
        "name": schema.enum(*COMPONENTS),
        "state": schema.enum(*ComponentState),
        "days": schema.array(UPTIME, description="The last 90 days, oldest first; days without checks are omitted."),
    },
)


def _render_component(component: Component) -> dict[str, Any]:
    days = [{"day": day.day.isoformat(), "uptime": round(day.uptime, 4)} for day in component.days]
    return {"name": component.name, "state": component.state, "days": days}


INCIDENT_UPDATE = schema.response_object(
    None,
    {
        "at": schema.timestamp(),
        "state": schema.enum(*ComponentState),
        "text": schema.text("3 consecutive checks failed.", max_length=MAX_TEXT_CHARS),
    },
)
INCIDENT = JsonResource[Incident](
    "status_incident",
    {
        "id": schema.id_schema("inc"),
        "component": schema.enum(*COMPONENTS),
        "state": schema.enum(*ComponentState),
        "title": schema.text("feed is degraded", max_length=MAX_TITLE_CHARS),
        "opened_by": schema.enum(*OpenedBy),
        "opened_at": schema.timestamp("When the incident began, if known."),
        "updated_at": schema.timestamp(),
        "closed_at": optional(schema.timestamp("Omitted while the incident is open.")),
        "updates": computed(
            schema.array(INCIDENT_UPDATE, description="Updates, oldest first."),
            lambda incident, _: [
                {"at": format_time(update.at), "state": update.state, "text": update.text}
                for update in incident.updates
            ],
        ),
    },
    description="A period in which a component of the service was degraded or down.",
)
STATUS = JsonResource[PlatformStatus](
    "platform_status",
    {
        "state": schema.enum(*ComponentState),
        "components": computed(
            schema.array(COMPONENT), lambda status, _: [_render_component(component) for component in status.components]
        ),
        "incidents": computed(
            schema.array(INCIDENT.schema, description="Open incidents, newest first."),
            lambda status, view: [INCIDENT.render(incident, view) for incident in status.incidents],
        ),
        "checked_at": optional(schema.timestamp("When the service was last checked.")),
    },
    description="The service's status, from checks made every minute.",
)
