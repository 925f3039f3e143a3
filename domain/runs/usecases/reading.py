"""A snapshot read, mapped and normalised in the calling thread: all that needs no store, so that it can run anywhere."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.model import Stream
from domain.catalogue.statements import ProductStatement, together
from domain.ingestion.mapping.learned import Knowledge
from domain.ingestion.model import FeedTable, Group, HeaderMapping
from domain.ingestion.normalise import normalise
from domain.ingestion.ports import Connectors, Job, Place, ReadingOrder
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, Sample, SpooledRows
from domain.ingestion.records import from_record
from domain.ingestion.vocabulary.senses import score_header
from domain.kernel.bounds import ROWS
from domain.kernel.problems import Problem
from domain.runs.chunks import slot_of
from domain.runs.ports import Spool, Spools
from domain.runs.usecases.extracts import excerpts, find_in_records, find_in_tables, sample_of_records, sample_of_tables
from domain.runs.usecases.spooling import PUSHED, SAMPLES, RowSpooler, Spooling, mapping_of, relate, weight_of
from ports.codec import Codec

Line = tuple[int, int, bytes]
"""Table number, line and the encoded cells."""


@dataclass(slots=True)
class _Chunk:
    """The lines of some buckets by key, in the feed's order."""

    buckets: range
    lines: dict[str, list[Line]] = field(default_factory=dict)


class SnapshotReading:
    """ports.feed_readers.SnapshotReader over connectors, and a spool below the order's folder."""

    def __init__(
        self, connectors: Connectors, codec: Codec, spools: Callable[[Path], Spools], order: ReadingOrder
    ) -> None:
        self._connectors, self._codec, self._order = connectors, codec, order
        self._spools = spools(Path(order.folder))
        self._stream = Stream(order.stream)
        self._feed = Spooling(order.buckets, self._stream, room=order.room)
        self._open = ExitStack()
        self._spool: Spool | None = None
        self._chunk = _Chunk(range(0))

    def close(self) -> None:
        """Let go of what was put aside."""
        self._open.close()

    @property
    def rows(self) -> int:
        """How many rows are read so far; another thread may ask."""
        return self._feed.rows

    def spool(self) -> SpooledRows:
        """Every row under its key. Raises ParseFailed, NeedsMapping, StockSheet."""
        self._spool = self._open.enter_context(self._spools.open(self._order.buckets))
        knowledge, limit = Knowledge(self._order.known), self._order.limit
        spooler = RowSpooler(self._codec, self._spool, self._order.settings, self._feed, knowledge, limit)
        if self._order.pushed:
            spooler.records(self._parts(), whole=self._order.whole)
        else:
            spooler.tables(self._tables(), may_be_stock=self._order.may_be_stock)
            relate(self._feed, self._spool, self._codec)
        return self._feed.spooled()

    def mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Each table's name and what its columns mean, from its first rows. Raises ParseFailed."""
        for table in self._tables():
            yield table.sheet, mapping_of(table, list(islice(table.rows, SAMPLES)), self._order.settings)

    def sample(self, count: int) -> Sample:
        """The first records, by column, and what could not be read of the first rows."""
        if self._order.pushed:
            return sample_of_records(chain.from_iterable(self._parts()), count, self._order.settings)
        return sample_of_tables(self._tables(), count, self._order.settings)

    def find(self, texts: Collection[str], most: int) -> FoundRows:
        """The first rows of which a cell is one of the texts."""
        if self._order.pushed:
            return find_in_records(chain.from_iterable(self._parts()), texts, most, self._order.limit)
        return find_in_tables(self._tables(), texts, most, self._order.limit)

    def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Those lines of the tables, with their neighbours; pushed records have none."""
        return [] if self._order.pushed else excerpts(self._tables(), lines, beside)

    def gather(self, buckets: range) -> Gathered:
        """The buckets' keys with their fingerprints."""
        chunk = self._gathered(buckets)
        fingerprints, lines, rows = [], [], []
        kits = self._feed.kits
        for key, kept in chunk.lines.items():
            if self._feed.is_absent(key):
                continue
            digest = blake2b(kits.salt(key), digest_size=16)
            for table, _, cells in kept:
                digest.update(self._feed.sheets[max(table, 0)].salt)
                digest.update(cells)
            fingerprints.append(RowFingerprint(slot_of(key, self._stream), key, digest.digest()))
            lines.append(kept[0][1])
            rows.append(sum(weight_of(cells) for _, _, cells in kept))
        return Gathered(fingerprints, lines, rows)

    def statements(self, buckets: range, keys: Collection[str], problems: list[Problem]) -> Iterator[ProductStatement]:
        """What the feed states under these keys, one by one. A statement's key is the fingerprint's.

        Records of one key follow each other, each as a statement of its own, in their order.
        """
        wanted = frozenset(keys)
        for key, lines in self._gathered(buckets).lines.items():
            if key not in wanted:
                continue
            if lines[0][0] == PUSHED:
                yield from self._records(key, lines, problems)
            elif (statement := self._statement(key, lines, problems)) is not None:
                yield statement

    def _tables(self) -> Iterator[FeedTable]:
        order = self._order
        job = Job(order.config, None, order.stream)
        return self._connectors.tables(
            order.connector, job, Path(order.snapshot), score_header, self._feed.problems.add
        )

    def _parts(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """The pushed records of a snapshot, part by part."""
        with Path(self._order.snapshot).open("rb") as file:
            for line in file:
                yield self._codec.decode(line)

    def _gathered(self, buckets: range) -> _Chunk:
        """The buckets' lines by key; those of the buckets last asked for are at hand."""
        if self._chunk.buckets == buckets:
            return self._chunk
        assert self._spool is not None
        chunk = self._chunk = _Chunk(buckets)
        decode, by_key = self._codec.decode, chunk.lines
        for bucket in buckets:
            for entry in self._spool.lines(bucket):
                head, _, cells = entry.partition(b"\t")
                table, key, line, *_ = decode(head)
                by_key.setdefault(key, []).append((table, line, cells))
            for family in by_key.keys() & self._feed.kin.families:
                by_key[family].sort()
            if self._feed.held[bucket] > ROWS:
                self._thin(by_key)
        return chunk

    def _thin(self, by_key: dict[str, list[Line]]) -> None:
        """Leave out the rows that are too many for one product; of records, the earlier ones."""
        for key, lines in by_key.items():
            pushed = lines[0][0] == PUSHED
            kept, weight = 0, 0
            for _, _, cells in reversed(lines) if pushed else lines:
                weight += weight_of(cells)
                if weight > ROWS and kept:
                    break
                kept += 1
            if pushed and kept < len(lines):
                self._feed.crowding.thinned(key, (len(lines) - kept, lines[0][1], None))
                del lines[:-kept]
            elif kept < len(lines):
                table, line, _ = lines[kept]
                self._feed.crowding.thinned(key, (len(lines) - kept, line, self._feed.sheets[table].name))
                del lines[kept:]

    def _records(self, key: str, lines: Sequence[Line], problems: list[Problem]) -> Iterator[ProductStatement]:
        for _, line, cells in lines:
            statement, found = from_record(self._codec.decode(cells), self._order.settings, line)
            problems += found
            if statement is not None:
                yield statement
        problems += [replace(problem, external_id=key) for problem in self._feed.crowding.problems(key)]

    def _statement(self, key: str, lines: Sequence[Line], problems: list[Problem]) -> ProductStatement | None:
        """One key's statement; what several sheets say of it is laid together."""
        whole: ProductStatement | None = None
        for table in dict.fromkeys(entry[0] for entry in lines):
            rows = [(line, self._codec.decode(cells)) for number, line, cells in lines if number == table]
            part, found = self._read(table, key, rows)
            problems += [replace(problem, external_id=key) for problem in found]
            if part is not None:
                whole = part if whole is None else together(whole, part)
        if whole is not None:
            whole.key = key
            problems += [replace(problem, external_id=key) for problem in self._feed.crowding.problems(key)]
        return whole

    def _read(self, table: int, key: str, rows: list[tuple[int, Any]]) -> tuple[ProductStatement | None, list[Problem]]:
        sheet = self._feed.sheets[table]
        assert sheet.plan is not None
        statement, found = normalise(Group(key, rows, sheet.name, family=key in self._feed.kin.families), sheet.plan)
        if key in self._feed.kits.codes:
            found += self._feed.kits.completed(statement, sheet.plan, rows, sheet.name)
        return statement, found
