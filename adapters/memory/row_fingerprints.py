"""What each source last stated, key by key, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import Table, Transaction
from domain.catalogue.absence import MISSED_RUNS
from domain.catalogue.batch import Batch, FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.model import Stream


@dataclass(frozen=True, slots=True)
class StoredFingerprint:
    """A fingerprint of a source's stream, and since when, and for how many complete runs, its key has been absent."""

    source: str
    stream: Stream
    fingerprint: RowFingerprint
    absent_since: datetime | None = None
    absent_runs: int = 0


def _key(row: StoredFingerprint) -> str:
    return f"{row.source}/{row.stream}/{row.fingerprint.key}"


FINGERPRINTS: Final = Table[StoredFingerprint]("row_fingerprints", _key, descending=False)


class MemoryFingerprints:
    """The fingerprints of rows: of CatalogueStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._rows = transaction.rows(FINGERPRINTS)

    def compare(self, key_range: KeyRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        changed, returned, resumed, troubled = set(), set(), set(), {}
        for sent in fingerprints:
            stored = self._rows.get(_key(StoredFingerprint(key_range.source, key_range.stream, sent)))
            if stored is None or stored.fingerprint.fingerprint != sent.fingerprint:
                changed.add(sent.key)
                if stored is not None and stored.absent_since is not None:
                    resumed.add(sent.key)
            elif stored.absent_since is not None:
                returned.add(sent.key)
            elif stored.fingerprint.problems:
                troubled[sent.key] = stored.fingerprint.problems
        gone = self._gone(key_range, {row.key for row in fingerprints})
        unchanged = len(fingerprints) - len(changed) - len(returned)
        absent = frozenset(row.fingerprint.key for row in gone if row.absent_since is None)
        lingering = frozenset(row.fingerprint.key for row in gone if row.absent_since is not None)
        sets = frozenset(changed), frozenset(returned), absent, lingering
        return FingerprintDiff(*sets, unchanged, troubled, frozenset(resumed))

    def _gone(self, key_range: KeyRange, present: set[str]) -> list[StoredFingerprint]:
        return self._rows.where(
            lambda row: (
                (row.source, row.stream) == (key_range.source, key_range.stream)
                and key_range.low <= row.fingerprint.slot < key_range.high
                and row.absent_runs < MISSED_RUNS
                and row.fingerprint.key not in present
            )
        )

    async def save(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        for fingerprint in batch.fingerprints:
            await self._rows.put(StoredFingerprint(key_range.source, key_range.stream, fingerprint))
        for outdated in batch.outdated:
            row = self._rows.get(_key(StoredFingerprint(key_range.source, key_range.stream, outdated)))
            if row is not None:
                await self._rows.put(replace(row, fingerprint=replace(row.fingerprint, fingerprint=b"")))
        absent = set(batch.absent)
        for row in self._gone(key_range, set()):
            if row.fingerprint.key in absent:
                since = row.absent_since or now
                await self._rows.put(replace(row, absent_since=since, absent_runs=row.absent_runs + 1))

    def absent(self, source: str, since: datetime) -> list[tuple[RowFingerprint, datetime]]:
        """The source's catalogue fingerprints that MISSED_RUNS complete runs missed, and since when, if that long."""
        return [
            (row.fingerprint, row.absent_since)
            for row in self._rows.sorted(lambda row: (row.source, row.stream) == (source, Stream.CATALOGUE))
            if row.absent_since is not None and row.absent_runs >= MISSED_RUNS and row.absent_since <= since
        ]
