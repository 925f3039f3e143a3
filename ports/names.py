"""What the domain name system says: one port for all who ask it, so that what it says can be given."""

from dataclasses import dataclass
from typing import Literal, Protocol

RecordKind = Literal["TXT", "A", "AAAA", "MX", "PTR"]


class NamesUnavailable(Exception):
    """The name system did not answer in time, or answered that it cannot say."""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """One record: a text's bytes, an address, or a name without its last dot; `preference` of mail exchangers."""

    value: bytes
    preference: int = 0


class NameRecords(Protocol):
    """Blocks until there is an answer: to be asked off the event loop."""

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        """The records of that name, aliases followed; none for a name that there is not.

        Raises NamesUnavailable, after `seconds` at the latest.
        """
        ...
