"""DNS look-ups within one time budget for a whole message."""

import time
from collections.abc import Callable

from domain.sso.ports import NameRecord, NamesUnavailable, RecordKind

SECONDS = 8.0
"""Budget of all look-ups for one message."""
_EACH = 3.0
LookUp = Callable[[str, RecordKind, float], tuple[NameRecord, ...] | None]
"""Returns the DNS records of a name within the given seconds; None if they are unavailable."""


class Asking:
    """DNS look-ups until the time budget is used up."""

    def __init__(self, look_up: LookUp, seconds: float = SECONDS) -> None:
        self._look_up, self._until = look_up, time.monotonic() + seconds

    def look_up(self, name: str, kind: RecordKind) -> tuple[NameRecord, ...]:
        """Return the records of that name. Raises NamesUnavailable."""
        remaining = self._until - time.monotonic()
        if remaining <= 0:
            raise NamesUnavailable(name)
        records = self._look_up(name, kind, min(remaining, _EACH))
        if records is None:
            raise NamesUnavailable(name)
        return records
