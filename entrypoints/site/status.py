"""The public page of how the service does, readable when nothing else is: made of what is known, and says what is not."""

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
    """Write the whole page. `down` are dependencies that do not answer now; `status` and `history` are as of `read_at`."""
    days = [now.date() - timedelta(days=ago) for ago in reversed(range(DAYS))]
    return plain(
        "status", status=status, history=history, down=down, now=now, read_at=read_at, days=days, uptimes=_uptimes
    )


def _uptimes(component: Component) -> dict[date, float]:
    return {day.day: day.uptime for day in component.days}
