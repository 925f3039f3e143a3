"""DNS look-ups for the verification of one message, with a common time limit."""

import time
from collections.abc import Callable

from domain.sso.ports import DnsRecord, DnsUnavailable, RecordKind

MAX_TOTAL_SECONDS = 8.0
"""Maximum seconds from the first to the last look-up for a message."""
_MAX_LOOKUP_SECONDS = 3.0
"""Maximum seconds of one look-up."""
DnsLookup = Callable[[str, RecordKind, float], tuple[DnsRecord, ...] | None]
"""Function that returns the DNS records of a name and kind within a number of seconds; None if they are unavailable."""


class TimeLimitedLookups:
    """DNS look-ups for one message within a common time limit.

    Args:
        look_up: Returns DNS records.
        max_seconds: Seconds after which all further look-ups fail.
    """

    def __init__(self, look_up: DnsLookup, max_seconds: float = MAX_TOTAL_SECONDS) -> None:
        self._look_up, self._until = look_up, time.monotonic() + max_seconds

    def look_up(self, name: str, kind: RecordKind) -> tuple[DnsRecord, ...]:
        """Return the DNS records of a kind for the name. Raises DnsUnavailable, also after the time limit."""
        remaining = self._until - time.monotonic()
        if remaining <= 0:
            raise DnsUnavailable(name)
        records = self._look_up(name, kind, min(remaining, _MAX_LOOKUP_SECONDS))
        if records is None:
            raise DnsUnavailable(name)
        return records
