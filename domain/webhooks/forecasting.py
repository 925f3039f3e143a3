"""How many POSTs events become when changes of one subject are combined (delivery rule 7)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from domain.webhooks.payload import combinable

Happening = tuple[str, str, datetime]
"""Of one event: subject, type, time."""


def posts(events: Iterable[Happening], window: int) -> int:
    """How many POSTs; `events` subject by subject, each subject's oldest first, `window` in seconds.

    A POST waits the window from its first event on and takes in what follows meanwhile, until something does not
    combine with it.
    """
    count = 0
    waiting: tuple[str, str, datetime] | None = None
    for subject, type, time in events:
        if waiting and waiting[0] == subject and time < waiting[2] and combinable(waiting[1], type):
            kind = waiting[1] if waiting[1].endswith(".created") else type
            waiting = (subject, kind, waiting[2])
        else:
            count += 1
            waiting = (subject, type, time + timedelta(seconds=window))
    return count


def peak_per_minute(times: Iterable[datetime]) -> int:
    """The most of them in one minute of the clock."""
    minutes: dict[datetime, int] = {}
    for time in times:
        minute = time.replace(second=0, microsecond=0)
        minutes[minute] = minutes.get(minute, 0) + 1
    return max(minutes.values(), default=0)
