"""Asking for names within one budget of time for a whole message."""

import time
from collections.abc import Callable

from domain.sso.ports import NameRecord, NamesUnavailable, RecordKind

SECONDS = 8.0
"""For everything that is asked about one message."""
_EACH = 3.0
LookUp = Callable[[str, RecordKind, float], tuple[NameRecord, ...] | None]
"""Returns the DNS records of a name within the given seconds; None if they are unavailable."""


class Asking:
    """The records, as long as there is time; `failed` once anything could not be said."""

    def __init__(self, look_up: LookUp, seconds: float = SECONDS) -> None:
        self._look_up, self._until = look_up, time.monotonic() + seconds

    def look_up(self, name: str, kind: RecordKind) -> tuple[NameRecord, ...]:
        """The records of that name. Raises NamesUnavailable."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise NamesUnavailable(name)
        records = self._look_up(name, kind, min(left, _EACH))
        if records is None:
            raise NamesUnavailable(name)
        return records
