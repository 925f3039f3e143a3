"""Rendering of the public status page from the latest known state of the service."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from domain.platform.incidents import Incident
from domain.platform.model import Component
from domain.platform.usecases import STATUS_DAYS, PlatformStatus
from entrypoints.site.site import render_standalone


def render_status_page(
    status: PlatformStatus | None,
    incidents: Sequence[Incident],
    unavailable_dependencies: Sequence[str],
    now: datetime,
    read_at: datetime | None,
    build_static_path: Callable[[str], str],
) -> str:
    """Render the public status page.

    Args:
        status: The latest known state of the service; None if no state is known.
        incidents: The latest incidents at the time `read_at`.
        unavailable_dependencies: The names of the dependencies that do not respond now.
        now: The current time.
        read_at: The time at which `status` was read; None if no state is known.
        build_static_path: Returns the path of a static file of the console.
    """
    days = [now.date() - timedelta(days=ago) for ago in reversed(range(STATUS_DAYS))]
    return render_standalone(
        "status",
        build_static_path,
        status=status,
        history=incidents,
        down=unavailable_dependencies,
        now=now,
        read_at=read_at,
        days=days,
        uptimes=_map_uptimes,
    )


def _map_uptimes(component: Component) -> dict[date, float]:
    """Return the uptime of a component by day, as a fraction from 0 to 1."""
    return {day.day: day.uptime for day in component.days}
