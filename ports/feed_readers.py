"""Reading snapshots where a hostile file can do no harm: what it takes is bounded, and it takes nobody along."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from domain.catalogue.statements import ProductStatement
from domain.ingestion.mapping.learned import KnownMapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, Sample, SpooledRows, Stated
from domain.kernel.problems import Problem

ReadingSettings: TypeAlias = FeedSettings
DEFAULTS: Final = FeedSettings()


class ReaderDied(Exception):
    """What read the feed ended without a word, or took too long; the message tells how."""


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """A snapshot to be read: the file's path, the connector that reads it with its settings, and the stream.

    `folder` is where rows may be put aside, by `buckets`, `room` bytes at most; `settings` say how values are read. `pushed`: the snapshot
    holds records, which are to be merged unless they are the source's `whole` catalogue. `may_be_stock`: a file that states
    stock alone raises StockSheet. `known` is what people have confirmed of headers (ingestion.mapping.learned.bounded), the source's
    own first. `limit`: no more rows are read than that.
    """

    snapshot: str
    folder: str
    connector: str
    config: Mapping[str, Any]
    stream: str
    settings: FeedSettings = DEFAULTS
    buckets: int = 1
    room: int = 1 << 30
    pushed: bool = False
    may_be_stock: bool = False
    known: tuple[KnownMapping, ...] = ()
    whole: bool = True
    limit: int | None = None


Place: TypeAlias = "tuple[str | None, int]"
"""A line of a feed: its sheet, where it has sheets, and the number that people count it by."""
Told = Callable[[int], Awaitable[None]]
"""Told now and then how many rows are read."""


class FeedReader(Protocol):
    """One snapshot being read. Every call may raise ReaderDied, after which there is nothing more to be had."""

    async def spool(self, told: Told) -> SpooledRows:
        """Read the whole snapshot, map its columns and put its rows aside, once.

        Raises ParseFailed, NeedsMapping when no table can be keyed, StockSheet when the order allows for it.
        """
        ...

    async def gather(self, buckets: range) -> Gathered:
        """What is put aside in these buckets, by key."""
        ...

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        """What the feed states under those of the buckets' keys."""
        ...

    async def sample(self, count: int) -> Sample:
        """The snapshot's first `count` records, read without putting anything aside."""
        ...

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        """The first `most` rows of which a cell is one of the texts; the order's `limit` bounds how many are looked at.

        Of pushed records those that go by one of them. Raises ParseFailed.
        """
        ...

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Those lines as the feed has them, with `beside` lines before and after each. Raises ParseFailed."""
        ...


class FeedReaders(Protocol):
    """Where readers are had."""

    async def warm(self) -> None:
        """Be ready before the first snapshot comes."""
        ...

    def open(self, order: ReadingOrder) -> AbstractAsyncContextManager[FeedReader]:
        """A reader of that snapshot, stopped on leaving the context whatever it does. Raises ReaderDied."""
        ...


class SnapshotReader(Protocol):
    """The same reading, in the calling thread: what stands behind a FeedReader."""

    @property
    def rows(self) -> int:
        """How many rows are read so far; another thread may ask."""
        ...

    def spool(self) -> SpooledRows:
        """As FeedReader.spool."""
        ...

    def gather(self, buckets: range) -> Gathered:
        """As FeedReader.gather."""
        ...

    def statements(self, buckets: range, keys: Collection[str], problems: list[Problem]) -> Iterator[ProductStatement]:
        """What the feed states under those of the buckets' keys, one by one; `problems` gets what cannot be read."""
        ...

    def sample(self, count: int) -> Sample:
        """As FeedReader.sample."""
        ...

    def find(self, texts: Collection[str], most: int) -> FoundRows:
        """As FeedReader.find."""
        ...

    def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """As FeedReader.excerpt."""
        ...

    def close(self) -> None:
        """Let go of what was put aside."""
        ...


OpenSnapshot = Callable[[ReadingOrder], SnapshotReader]
"""Opens a snapshot for reading in the calling thread."""
