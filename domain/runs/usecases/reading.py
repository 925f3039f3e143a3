"""Reading, mapping and normalisation of a snapshot in the calling thread, without a store, so that it can run anywhere."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement, together
from domain.ingestion.model import FeedTable, HeaderMapping
from domain.ingestion.normalise import normalise
from domain.ingestion.ports import Connectors, Job, Place, ReadingOrder
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, Sample, SpooledRows
from domain.ingestion.records import from_record
from domain.ingestion.vocabulary.senses import score_header
from domain.kernel.bounds import ROWS
from domain.kernel.problems import Problem
from domain.runs.chunks import slot_of
from domain.runs.ports import Spools
from domain.runs.usecases.extracts import excerpts, find_in_records, find_in_tables, sample_of_records, sample_of_tables
from domain.runs.usecases.spooling import PUSHED, SAMPLES, RowSpooler, mapping_of, weight_of
from ports.codec import Codec

Line = tuple[int, int, bytes]
"""Table number, line number and the encoded cells."""


class SnapshotReading:
    """The reading of one snapshot in the calling thread, with connectors and a spool in the order's folder; implements FeedReader."""

    def __init__(
        self, connectors: Connectors, codec: Codec, spools: Callable[[Path], Spools], order: ReadingOrder
    ) -> None:
        self._connectors, self._codec, self._order = connectors, codec, order
        self._spools = spools(Path(order.folder))
        self._spooler = RowSpooler(order, codec)
        self._open = ExitStack()
        self._gathered: tuple[range, dict[str, list[Line]]] = range(0), {}
        """The buckets last gathered, and their lines by key, in the feed's order."""

    def close(self) -> None:
        """Delete the spooled rows."""
        self._open.close()

    @property
    def rows(self) -> int:
        """Return the number of rows read so far; safe to call from another thread."""
        return self._spooler.rows

    def spool(self) -> SpooledRows:
        """Spool every row under its key. Raises ParseFailed, NeedsMapping, StockSheet."""
        spool = self._open.enter_context(self._spools.open(self._order.buckets))
        if self._order.pushed:
            return self._spooler.spool_records(spool, self._parts())
        return self._spooler.spool_tables(spool, self._tables())

    def mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Yield each table's name and column mapping, from its first rows. Raises ParseFailed."""
        for table in self._tables():
            yield table.sheet, mapping_of(table, list(islice(table.rows, SAMPLES)), self._order.settings)

    def sample(self, count: int) -> Sample:
        """Return the first records by column, and the problems of the first rows."""
        if self._order.pushed:
            return sample_of_records(chain.from_iterable(self._parts()), count, self._order.settings)
        return sample_of_tables(self._tables(), count, self._order.settings)

    def find(self, texts: Collection[str], most: int) -> FoundRows:
        """Return the first rows with a cell that equals one of the texts."""
        if self._order.pushed:
            return find_in_records(chain.from_iterable(self._parts()), texts, most, self._order.limit)
        return find_in_tables(self._tables(), texts, most, self._order.limit)

    def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Return lines of the tables with their neighbours; empty for pushed records."""
        return [] if self._order.pushed else excerpts(self._tables(), lines, beside)

    def gather(self, buckets: range) -> Gathered:
        """Return the keys of the buckets with their fingerprints."""
        spooler, fingerprints, lines, rows = self._spooler, [], [], []
        for key, kept in self._lines(buckets).items():
            if spooler.is_absent(key):
                continue
            digest = blake2b(spooler.kits.salt(key), digest_size=16)
            for table, _, cells in kept:
                digest.update(spooler.sheets[max(table, 0)].salt)
                digest.update(cells)
            fingerprints.append(RowFingerprint(slot_of(key, spooler.stream), key, digest.digest()))
            lines.append(kept[0][1])
            rows.append(sum(weight_of(cells) for _, _, cells in kept))
        return Gathered(fingerprints, lines, rows)

    def statements(self, buckets: range, keys: Collection[str], problems: list[Problem]) -> Iterator[ProductStatement]:
        """Yield the feed's statements for the keys; values that cannot be read are appended to `problems`.

        A statement's key is the fingerprint's. Each record of a key is a separate statement, in their order.
        """
        wanted = frozenset(keys)
        for key, lines in self._lines(buckets).items():
            if key not in wanted:
                continue
            statement, found = None, list[Problem]()
            if lines[0][0] == PUSHED:
                for _, line, cells in lines:
                    record, unread = from_record(self._codec.decode(cells), self._order.settings, line)
                    problems += unread
                    if record is not None:
                        yield record
            else:
                statement = self._statement(key, lines, found)
            found += self._spooler.crowding.problems(key)
            problems += [replace(problem, external_id=key) for problem in found]
            if statement is not None:
                yield statement

    def _tables(self) -> Iterator[FeedTable]:
        order = self._order
        job = Job(order.config, None, order.stream)
        return self._connectors.tables(
            order.connector, job, Path(order.snapshot), score_header, self._spooler.problems.add
        )

    def _parts(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the pushed records of a snapshot, part by part."""
        with Path(self._order.snapshot).open("rb") as file:
            for line in file:
                yield self._codec.decode(line)

    def _lines(self, buckets: range) -> dict[str, list[Line]]:
        """Return the lines of the buckets by key; the last buckets are cached."""
        if self._gathered[0] != buckets:
            spooler, by_key = self._spooler, dict[str, list[Line]]()
            self._gathered = buckets, by_key
            for bucket in buckets:
                for table, key, line, _, cells in spooler.entries([bucket]):
                    by_key.setdefault(key, []).append((table, line, cells))
                for family in by_key.keys() & spooler.kin.families:
                    by_key[family].sort()
                if spooler.held[bucket] > ROWS:
                    self._thin(by_key)
        return self._gathered[1]

    def _thin(self, by_key: dict[str, list[Line]]) -> None:
        """Remove rows beyond the limit of one product; of records, the earlier ones."""
        for key, lines in by_key.items():
            pushed = lines[0][0] == PUSHED
            kept, weight = 0, 0
            for _, _, cells in reversed(lines) if pushed else lines:
                weight += weight_of(cells)
                if weight > ROWS and kept:
                    break
                kept += 1
            if kept < len(lines):
                table, line, _ = lines[0 if pushed else kept]
                sheet = None if pushed else self._spooler.sheets[table].name
                self._spooler.crowding.thin(key, (len(lines) - kept, line, sheet))
                del lines[slice(None, -kept) if pushed else slice(kept, None)]

    def _statement(self, key: str, lines: Sequence[Line], problems: list[Problem]) -> ProductStatement:
        """Return one key's statement, merged from all sheets."""
        kits, parts = self._spooler.kits, []
        for table in dict.fromkeys(entry[0] for entry in lines):
            rows = [(line, self._codec.decode(cells)) for number, line, cells in lines if number == table]
            sheet = self._spooler.sheets[table]
            assert sheet.plan is not None
            is_family = key in self._spooler.kin.families
            part, found = normalise(key, rows, sheet.plan, sheet.name, is_family=is_family)
            if key in kits.codes:
                found += kits.completed(part, sheet.plan, rows, sheet.name)
            parts.append(part)
            problems += found
        whole = reduce(together, parts)
        whole.key = key
        return whole
