"""One chunk of a run: lines gathered by key, compared with what is stored, and the statements of those that changed."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from domain.catalogue.batch import FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.statements import ProductStatement, together
from domain.ingestion.model import FeedSettings, Group
from domain.ingestion.normalise import normalise
from domain.ingestion.records import from_record
from domain.kernel.bounds import ROWS
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.chunks import slot_of, slots_of
from domain.runs.crowding import weight_of
from domain.runs.usecases.spooling import PUSHED, SpooledFeed
from ports.codec import Codec
from ports.spool import Spool
from ports.unit_of_work import UnitOfWork

Line = tuple[int, int, bytes]
"""Table number, line and the encoded cells."""


@dataclass(slots=True)
class Chunk:
    """A chunk's lines by key, in the feed's order, and a fingerprint for each key."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    fingerprints: dict[str, RowFingerprint] = field(default_factory=dict)


class ChunkBuilder:
    """Turns spooled lines into chunks and chunks into statements, in the calling thread."""

    def __init__(self, codec: Codec, spool: Spool, feed: SpooledFeed, context: FeedSettings) -> None:
        self._codec, self._spool, self._feed, self._context = codec, spool, feed, context

    def gather(self, buckets: range) -> Chunk:
        """The buckets' lines by key."""
        chunk, decode = Chunk(), self._codec.decode
        by_key = chunk.lines
        for bucket in buckets:
            for entry in self._spool.lines(bucket):
                head, _, cells = entry.partition(b"\t")
                table, key, line = decode(head)
                by_key.setdefault(key, []).append((table, line, cells))
            if self._feed.held[bucket] > ROWS:
                self._thin(by_key)
        for key, kept in by_key.items():
            digest = blake2b(digest_size=16)
            for table, _, cells in kept:
                digest.update(self._feed.sheets[max(table, 0)].salt)
                digest.update(cells)
            chunk.fingerprints[key] = RowFingerprint(slot_of(key, self._feed.stream), key, digest.digest())
        return chunk

    def _thin(self, by_key: dict[str, list[Line]]) -> None:
        """Leave out the rows that are too many for one product; of records, which replace each other, the earlier ones."""
        for key, lines in by_key.items():
            pushed = lines[0][0] == PUSHED
            kept, weight = 0, 0
            for _, _, cells in reversed(lines) if pushed else lines:
                weight += weight_of(cells)
                if weight > ROWS and kept:
                    break
                kept += 1
            if pushed:
                del lines[:-kept]
                continue
            if kept < len(lines):
                table, line, _ = lines[kept]
                self._feed.crowding.thinned(key, (len(lines) - kept, line, self._feed.sheets[table].name))
                del lines[kept:]

    def statements(self, chunk: Chunk, keys: Collection[str]) -> tuple[list[ProductStatement], list[Problem]]:
        """What the feed states under these keys. A statement's key is the fingerprint's."""
        stated: list[ProductStatement] = []
        problems: list[Problem] = []
        for key, lines in chunk.lines.items():
            if key not in keys:
                continue
            statement = self._statement(key, lines, problems)
            if statement is not None:
                stated.append(statement)
        return stated, problems

    def _statement(self, key: str, lines: Sequence[Line], problems: list[Problem]) -> ProductStatement | None:
        """One key's statement; what several sheets say of it is laid together."""
        whole: ProductStatement | None = None
        for table in dict.fromkeys(entry[0] for entry in lines):
            rows = [(line, self._codec.decode(cells)) for number, line, cells in lines if number == table]
            part, found = self._read(table, key, rows)
            problems += found
            if part is not None:
                whole = part if whole is None else together(whole, part)
        if whole is not None:
            whole.key = key
            problems += self._feed.crowding.problems(key)
        return whole

    def _read(self, table: int, key: str, rows: list[tuple[int, Any]]) -> tuple[ProductStatement | None, list[Problem]]:
        if table == PUSHED:
            line, record = rows[-1]
            statement, found = from_record(record, self._context, line)
            return statement, found
        sheet = self._feed.sheets[table]
        assert sheet.plan is not None
        return normalise(Group(key, rows, sheet.name), sheet.plan)


@dataclass(frozen=True, slots=True)
class ComparedChunk:
    """A chunk and how it compares with what is stored in its range of keys."""

    chunk: Chunk
    key_range: KeyRange
    diff: FingerprintDiff


@dataclass(frozen=True, slots=True)
class FeedChunks:
    """The chunks of a spooled feed, by number; nobody else changes its source's fingerprints meanwhile."""

    uow: UnitOfWork
    tenant: Tenant
    context: AuditContext
    source: str
    feed: SpooledFeed
    builder: ChunkBuilder
    buckets: Sequence[range]

    async def compare(self, number: int) -> ComparedChunk:
        """Hold the chunk's fingerprints against the store, writing nothing."""
        buckets = self.buckets[number]
        chunk = await asyncio.to_thread(self.builder.gather, buckets)
        key_range = KeyRange(self.source, self.feed.stream, *slots_of(buckets, self.feed.buckets))
        async with self.uow.scratch(self.tenant, self.context) as tx:
            diff = await tx.catalogue.compare(key_range, list(chunk.fingerprints.values()))
        return ComparedChunk(chunk, key_range, diff)
