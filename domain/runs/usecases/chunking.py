"""One chunk of a run: what its buckets hold, compared with what is stored, and the statements of what changed."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from domain.catalogue.batch import FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.ingestion.ports import FeedReader
from domain.ingestion.reading import SpooledRows, Stated
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.chunks import chunks_of, slot_of, slots_of
from domain.runs.usecases.spooling import ProblemLog
from ports.unit_of_work import UnitOfWork


@dataclass(slots=True)
class Feed:
    """What a run knows of the feed that its reader has put aside."""

    stream: Stream
    rows: int
    held: Sequence[int]
    slots: "array[int]"
    places: frozenset[str] | None
    problems: ProblemLog
    names_products: bool = True

    @property
    def buckets(self) -> int:
        """How many buckets the rows are put aside in."""
        return len(self.held)

    def chunks(self) -> list[range]:
        """The buckets that make up each chunk."""
        return chunks_of(self.held, self.stream)

    def has(self, key: str) -> bool:
        """Whether the feed names the product key (known by its slot, so one key in two thousand million is mistaken)."""
        slot = slot_of(key, Stream.CATALOGUE)
        place = bisect_left(self.slots, slot)
        return place < len(self.slots) and self.slots[place] == slot


def feed_of(spooled: SpooledRows, stream: Stream) -> Feed:
    """The feed that a reader has put aside."""
    problems = ProblemLog(list(spooled.problems), spooled.problem_count)
    slots = array("I", spooled.slots)
    return Feed(stream, spooled.rows, spooled.held, slots, spooled.places, problems, spooled.names_products)


@dataclass(slots=True)
class Chunk:
    """The keys of a chunk: a fingerprint of each, the line it is first named on, and its rows (long ones several times)."""

    buckets: range
    fingerprints: dict[str, RowFingerprint] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparedChunk:
    """A chunk and how it compares with what is stored in its range of keys."""

    chunk: Chunk
    key_range: KeyRange
    diff: FingerprintDiff


@dataclass(frozen=True, slots=True)
class FeedChunks:
    """The chunks of a feed, by number; nobody else changes its source's fingerprints meanwhile."""

    uow: UnitOfWork
    tenant: Tenant
    context: AuditContext
    source: str
    feed: Feed
    reader: FeedReader
    buckets: Sequence[range]

    async def compare(self, number: int) -> ComparedChunk:
        """Hold the chunk's fingerprints against the store, writing nothing."""
        buckets = self.buckets[number]
        gathered = await self.reader.gather(buckets)
        chunk = Chunk(buckets)
        for fingerprint, line, rows in zip(gathered.fingerprints, gathered.lines, gathered.rows, strict=True):
            chunk.fingerprints[fingerprint.key] = fingerprint
            chunk.lines[fingerprint.key] = line
            chunk.rows[fingerprint.key] = rows
        key_range = KeyRange(self.source, self.feed.stream, *slots_of(buckets, self.feed.buckets))
        async with self.uow.scratch(self.tenant, self.context) as tx:
            diff = await tx[CatalogueStore].compare(key_range, list(chunk.fingerprints.values()))
        return ComparedChunk(chunk, key_range, diff)

    async def states(self, chunk: Chunk, keys: Collection[str]) -> Stated:
        """What the feed states under those of the chunk's keys."""
        return await self.reader.states(chunk.buckets, keys) if keys else Stated((), ())
