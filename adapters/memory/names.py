"""A name system whose records are given: for tests, and wherever nobody may be asked."""

from collections.abc import Mapping

from domain.sso.ports import NameRecord, NamesUnavailable, RecordKind


class MemoryNameRecords:
    """NameRecords. `down` names do not answer."""

    def __init__(self, records: Mapping[tuple[str, RecordKind], tuple[NameRecord, ...]] | None = None) -> None:
        self._records = dict(records or {})
        self.down: set[str] = set()
        self.asked: list[tuple[str, RecordKind]] = []

    def put(self, name: str, kind: RecordKind, *values: str | bytes) -> None:
        """Have the name these records, in place of others of the kind."""
        made = (NameRecord(value if isinstance(value, bytes) else value.encode()) for value in values)
        self._records[name.lower(), kind] = tuple(made)

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        plain = name.rstrip(".").lower()
        self.asked.append((plain, kind))
        if plain in self.down or "*" in self.down:
            raise NamesUnavailable(plain)
        return self._records.get((plain, kind), ())
