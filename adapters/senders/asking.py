"""Asking for names within one budget of time for a whole message."""

import time
from typing import Final

from ports.names import NameRecord, NameRecords, NamesUnavailable, RecordKind

SECONDS: Final = 8.0
"""For everything that is asked about one message."""
_EACH: Final = 3.0


class Asking:
    """The records, as long as there is time; `failed` once anything could not be said."""

    def __init__(self, records: NameRecords, seconds: float = SECONDS) -> None:
        self._records, self._until = records, time.monotonic() + seconds

    def look_up(self, name: str, kind: RecordKind) -> tuple[NameRecord, ...]:
        """The records of that name. Raises NamesUnavailable."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise NamesUnavailable(name)
        return self._records.look_up(name, kind, min(left, _EACH))
