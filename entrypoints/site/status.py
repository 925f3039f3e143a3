"""The public page of how the service does, readable when nothing else is: made of what is known, and says what is not."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from html import escape
from typing import Final

from domain.platform.incidents import Incident
from domain.platform.model import Component, ComponentState
from domain.platform.usecases import DAYS, PlatformStatus
from entrypoints.site.site import plain

PATH: Final = "/status"
_HEADLINES: Final = {
    ComponentState.OPERATIONAL: "Everything works",
    ComponentState.DEGRADED: "Something does not work as it should",
    ComponentState.DOWN: "Something does not work",
}
_WORDS: Final = {
    ComponentState.OPERATIONAL: "works",
    ComponentState.DEGRADED: "degraded",
    ComponentState.DOWN: "down",
}
_NAMES: Final = {
    "api": "API",
    "ingestion": "Reading sources",
    "feed": "Change feed and stream",
    "webhooks": "Webhooks",
    "exports": "Exports",
    "assistant": "Assistant",
}


def page(
    status: PlatformStatus | None,
    history: Sequence[Incident],
    down: Sequence[str],
    now: datetime,
    read_at: datetime | None,
) -> str:
    """The whole page. `down` are dependencies that do not answer now; `status` and `history` are as of `read_at`."""
    parts = [_headline(status, down), _unreachable(down, read_at)]
    if status is not None:
        parts += [_components(status.components, now.date()), _incidents(history, now)]
    if read_at is not None:
        parts.append(
            f'<p class="soft">As of {_moment(read_at)}. Checks are made every minute; this page is made anew every ten seconds.</p>'
        )
    parts.append(
        '<p class="soft">For programs: <a href="/docs/reference/platform">GET /v1/status</a>, <a href="/readyz">/readyz</a>.</p>'
    )
    return plain("Status", "".join(parts))


def _headline(status: PlatformStatus | None, down: Sequence[str]) -> str:
    state = ComponentState.DOWN if down else status.state if status and status.components else ComponentState.DEGRADED
    told = "Nobody has looked yet" if status and not status.components and not down else _HEADLINES[state]
    return f'<h1>Status</h1><p class="verdict {state}" role="status">{told}</p>'


def _unreachable(down: Sequence[str], read_at: datetime | None) -> str:
    if not down:
        return ""
    named = ", ".join(f"<strong>{escape(name)}</strong>" for name in down)
    known = f" Below is what was known at {_moment(read_at)}." if read_at else ""
    return f"<p>Not reached from here right now: {named}. Requests answer 503 until it is back; nothing that was confirmed is lost.{known}</p>"


def _components(components: Sequence[Component], today: date) -> str:
    return "".join(_component(component, today) for component in components)


def _component(component: Component, today: date) -> str:
    known = {day.day: day.uptime for day in component.days}
    strip = "".join(_day(today - timedelta(days=ago), known) for ago in reversed(range(DAYS)))
    whole = sum(known.values()) / len(known) if known else None
    told = f"{whole:.2%} of checks passed in {len(known)} days" if whole is not None else "no checks yet"
    return (
        f'<section class="component"><h2>{_NAMES.get(component.name, component.name)} '
        f'<span class="state {component.state}">{_WORDS[component.state]}</span></h2>'
        f'<div class="strip" role="img" aria-label="{told}">{strip}</div>'
        f'<p class="soft ends"><span>{DAYS} days ago</span><span>{told}</span><span>today</span></p></section>'
    )


def _day(day: date, known: dict[date, float]) -> str:
    uptime = known.get(day)
    if uptime is None:
        return f'<i title="{day}: no checks"></i>'
    kind = "operational" if uptime >= 0.999 else "degraded" if uptime >= 0.95 else "down"
    return f'<i class="{kind}" title="{day}: {uptime:.2%}"></i>'


def _incidents(history: Sequence[Incident], now: datetime) -> str:
    if not history:
        return "<h2>Incidents</h2><p>None so far.</p>"
    return "<h2>Incidents</h2>" + "".join(_incident(incident, now) for incident in history)


def _incident(incident: Incident, now: datetime) -> str:
    end = incident.closed_at or now
    minutes = max(1, round((end - incident.opened_at).total_seconds() / 60))
    lasted = f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
    over = f"lasted {lasted}" if incident.closed_at else f"open for {lasted}"
    state = ComponentState.OPERATIONAL if incident.closed_at else incident.state
    told = "".join(
        f'<li><span class="soft">{_moment(one.at)}</span> {escape(one.text)}</li>' for one in reversed(incident.updates)
    )
    return (
        f'<section class="incident {state}"><h3>{escape(incident.title)} <span class="soft">{_NAMES.get(incident.component, incident.component)}, '
        f'{over}</span></h3><ul class="fields">{told}</ul></section>'
    )


def _moment(at: datetime) -> str:
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%d %b %Y, %H:%M} UTC</time>'
