"""Public status page, rendered from the last known state, with a note on unavailable data."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from domain.platform.incidents import Incident
from domain.platform.model import Component
from domain.platform.usecases import DAYS, PlatformStatus
from entrypoints.site.site import plain


def page(
    status: PlatformStatus | None,
    history: Sequence[Incident],
    down: Sequence[str],
    now: datetime,
    read_at: datetime | None,
) -> str:
    """Render the page. `down` are dependencies that do not respond now; `status` and `history` are as of `read_at`."""
    days = [now.date() - timedelta(days=ago) for ago in reversed(range(DAYS))]
    return plain(
        "status", status=status, history=history, down=down, now=now, read_at=read_at, days=days, uptimes=_uptimes
    )


def _uptimes(component: Component) -> dict[date, float]:
    return {day.day: day.uptime for day in component.days}
