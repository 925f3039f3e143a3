"""Feed readers in separate processes, so that a file affects no other reader."""

import asyncio
import signal
import threading
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from adapters.processes.forks import LARGE, Fork, ForkServerHandle, ResultTooLarge
from adapters.processes.protocol import Functions, Raised, Signature, decode
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.ports import ParseFailed, Place, ReaderDied, ReadingOrder, Told
from domain.ingestion.reading import (
    Excerpt,
    FoundRows,
    Gathered,
    NeedsMapping,
    ReadTables,
    Sample,
    SpooledRows,
    Stated,
    StockSheet,
)
from domain.kernel.problems import Problem
from domain.runs.usecases.reading import SnapshotReading
from ports.codec import Codec

REUSED_BELOW = 4 << 20
"""Snapshot size below which a process may be reused."""
USES = 100
"""Maximum snapshots of one process."""
REPORT_SECONDS = 2.0
"""Seconds between two progress reports."""
METHODS = ("begin", "spool", "gather", "states", "sample", "find", "excerpt")
"""Methods of a session that the parent may call."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Limits: address space in MiB, CPU seconds a snapshot, seconds a request (`sample`: a sample), bytes a result."""

    memory: int = 1024
    cpu: int = 1200
    wall: float = 1800.0
    sample: float = 30.0
    answer: int = 256 << 20


class ReaderFailed(Exception):
    """Internal error of the reader; the message has its class and line, without any value."""


class Unmapped(Exception):
    """NeedsMapping, with its data as arguments."""


class ReaderSession:
    """Functions of a child for its parent, which read one snapshot after the other.

    Exact numbers are passed as the codec's JSON.
    """

    def __init__(self, open_snapshot: Callable[[ReadingOrder], SnapshotReading], codec: Codec) -> None:
        self._open, self._codec = open_snapshot, codec
        self._opened: SnapshotReading | None = None

    @property
    def functions(self) -> Functions:
        """The methods that the parent calls, by name."""
        return {name: getattr(self, name) for name in METHODS}

    @property
    def _reader(self) -> SnapshotReading:
        assert self._opened is not None
        return self._opened

    def begin(self, order: ReadingOrder, config: bytes) -> None:
        """Close the last snapshot, and open another."""
        if self._opened is not None:
            with suppress(OSError):
                self._opened.close()
        self._opened = None
        self._opened = self._open(replace(order, config=self._codec.decode(config)))

    def spool(self, told: Callable[[int], None]) -> tuple[SpooledRows, bytes]:
        """Read all rows; the slots are returned separately, as unsigned 32-bit integers in native byte order."""
        reader, over = self._reader, threading.Event()

        def report() -> None:
            while not over.wait(REPORT_SECONDS):
                with suppress(OSError):
                    told(reader.rows)

        thread = threading.Thread(target=report, daemon=True)
        thread.start()
        try:
            spooled = reader.spool()
        except NeedsMapping as error:
            raise Unmapped(str(error), error.tables) from None
        finally:
            over.set()
            thread.join()
        return replace(spooled, slots=()), array("I", spooled.slots).tobytes()

    def gather(self, start: int, stop: int) -> Gathered:
        """Return the keys of those buckets."""
        return self._reader.gather(range(start, stop))

    def states(self, start: int, stop: int, keys: list[str]) -> tuple[list[bytes], list[Problem]]:
        """Return what the feed states under those keys of the buckets."""
        problems: list[Problem] = []
        statements = self._reader.statements(range(start, stop), keys, problems)
        return [self._codec.encode(statement) for statement in statements], problems

    def sample(self, count: int) -> tuple[bytes, Sample]:
        """Read the first `count` records."""
        sample = self._reader.sample(count)
        return self._codec.encode(sample.records), replace(sample, records=())

    def find(self, texts: list[str], most: int) -> FoundRows:
        """Find the first `most` rows that have one of the texts as a cell."""
        return self._reader.find(texts, most)

    def excerpt(self, lines: list[tuple[str | None, int]], beside: int) -> list[Excerpt]:
        """Read those lines, with `beside` lines around each."""
        return list(self._reader.excerpt(lines, beside))


_SIGNATURES = {name: Signature.of(getattr(ReaderSession, name)) for name in METHODS}


class ProcessFeedReader:
    """FeedReader over a ReaderSession in a fork."""

    def __init__(self, fork: Fork, codec: Codec, limits: ReaderLimits) -> None:
        self.fork, self._codec, self._limits = fork, codec, limits
        self.uses = 0
        self.is_sound = True
        self._turn = asyncio.Lock()

    async def begin(self, order: ReadingOrder) -> None:
        """Start work on this snapshot."""
        self.uses += 1
        config = self._codec.encode(order.config)
        await self._call("begin", replace(order, config={}), config, cpu=self._limits.cpu)

    async def spool(self, told: Told) -> SpooledRows:
        spooled, packed = await self._call("spool", None, told=told)
        slots = array("I")
        slots.frombytes(packed)
        whole: SpooledRows = replace(spooled, slots=slots)
        return whole

    async def gather(self, buckets: range) -> Gathered:
        gathered: Gathered = await self._call("gather", buckets.start, buckets.stop)
        return gathered

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        encoded, problems = await self._call("states", buckets.start, buckets.stop, list(keys))
        return Stated(await asyncio.to_thread(self._statements, encoded), problems)

    def _statements(self, encoded: Sequence[bytes]) -> list[ProductStatement]:
        return [_product(self._codec.decode(statement)) for statement in encoded]

    async def sample(self, count: int) -> Sample:
        records, sample = await self._call("sample", count, seconds=self._limits.sample)
        whole: Sample = replace(sample, records=self._codec.decode(records))
        return whole

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        found: FoundRows = await self._call("find", list(texts), most, seconds=self._limits.sample)
        return found

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        tables: list[Excerpt] = await self._call("excerpt", list(lines), beside, seconds=self._limits.sample)
        return tables

    def close(self) -> None:
        """Kill the process."""
        self.fork.kill()

    async def _call(
        self,
        name: str,
        *args: Any,
        seconds: float | None = None,
        cpu: int = 0,
        told: Callable[[int], Awaitable[None]] | None = None,
    ) -> Any:
        """Return the session's result; any failure makes this reader unusable."""
        seconds = seconds or self._limits.wall
        signature, most = _SIGNATURES[name], self._limits.answer
        async with self._turn:
            was_sound, self.is_sound = self.is_sound, False
            if not was_sound:
                raise ReaderDied("It had ended before.")
            try:
                async with asyncio.timeout(seconds):
                    reply = await self.fork.call(name, signature, args, most=most, cpu=cpu, call_back=told)
            except TimeoutError:
                raise ReaderDied(f"It took longer than {seconds:,.0f} seconds.") from None
            except ResultTooLarge as error:
                raise ReaderDied(f"What it read fills {error.length >> 20} MiB at a time.") from None
            except (ConnectionError, EOFError):
                raise await self._death() from None
            if isinstance(reply, Raised):
                raise self._failure(reply)
            result = await _decoded(reply, signature.result)
            self.is_sound = True
            return result

    async def _death(self) -> Exception:
        """Return the error for the end of the process."""
        try:
            async with asyncio.timeout(5):
                status = await asyncio.shield(self.fork.ended)
        except TimeoutError:
            return ReaderDied("It went away.")
        if status is None:
            return ReaderFailed("the fork server is gone, and its readers with it")
        if status == -signal.SIGXCPU:
            return ParseFailed(f"Reading the feed takes more than {self._limits.cpu:,} seconds of computing; split it.")
        return ReaderDied(
            f"It was ended by {signal.Signals(-status).name}." if status < 0 else f"It ended with {status}."
        )

    def _failure(self, raised: Raised) -> Exception:
        match raised.kind:
            case "ParseFailed":
                return ParseFailed(*decode(raised.arguments, type=tuple[str]))
            case "Unmapped":
                return NeedsMapping(*decode(raised.arguments, type=tuple[str, ReadTables]))
            case "StockSheet":
                return StockSheet()
            case "MemoryError":
                return ParseFailed(f"Reading the feed takes more than {self._limits.memory:,} MiB of memory; split it.")
            case "OSError":
                return OSError(*decode(raised.arguments, type=tuple[int, str]))
        return ReaderFailed(f"{raised.kind} at {raised.place}")


def _size(path: str) -> int:
    return Path(path).stat().st_size


async def _decoded(reply: msgspec.Raw, kind: Any) -> Any:
    if len(bytes(reply)) > LARGE:
        return await asyncio.to_thread(decode, reply, type=kind)
    return decode(reply, type=kind)


class ProcessFeedReaders:
    """FeedReaders: at most `most` at a time; `command` runs the fork server. A reader of small snapshots is reused."""

    def __init__(self, command: Sequence[str], codec: Codec, *, most: int, limits: ReaderLimits | None = None) -> None:
        self._server, self._codec, self._limits = ForkServerHandle(command), codec, limits or ReaderLimits()
        self._room = asyncio.Semaphore(most)
        self._idle: list[ProcessFeedReader] = []

    @asynccontextmanager
    async def open(self, order: ReadingOrder) -> AsyncIterator[ProcessFeedReader]:
        async with self._room:
            reader = await self._ready(order)
            is_small = _size(order.snapshot) < REUSED_BELOW
            try:
                yield reader
            finally:
                if is_small and reader.is_sound and reader.uses < USES and not reader.fork.ended.done():
                    self._idle.append(reader)
                else:
                    reader.close()

    async def warm(self) -> None:
        """Start the fork server ahead of the first file."""
        await self._server.start()

    async def close(self) -> None:
        """End every reader."""
        for reader in self._idle:
            reader.close()
        self._idle.clear()
        await self._server.close()

    async def _ready(self, order: ReadingOrder) -> ProcessFeedReader:
        """Return a reader of the snapshot: a living idle one, else a new one, in two attempts."""
        while self._idle:
            reader = self._idle.pop()
            if not reader.fork.ended.done():
                with suppress(ReaderDied, ReaderFailed):
                    return await self._begun(reader, order)
        for retries in (1, 0):
            try:
                return await self._begun(ProcessFeedReader(await self._server.fork(), self._codec, self._limits), order)
            except (ConnectionError, ReaderDied, ReaderFailed) as error:
                if not retries:
                    raise ReaderDied(f"It could not be started ({error}).") from error
        raise AssertionError("the last try returns or raises")

    @staticmethod
    async def _begun(reader: ProcessFeedReader, order: ReadingOrder) -> ProcessFeedReader:
        try:
            await reader.begin(order)
        except BaseException:
            reader.close()
            raise
        return reader


def _product(plain: dict[str, Any]) -> ProductStatement:
    variants = [
        VariantStatement(
            **variant
            | {
                "offers": [OfferStatement(**offer | _blank(offer)) for offer in variant["offers"]],
                "cartons": _carton_cells(variant["cartons"]),
            }
            | _blank(variant)
        )
        for variant in plain["variants"]
    ]
    return ProductStatement(**plain | {"variants": variants} | _blank(plain))


def _blank(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {"blank": frozenset(plain["blank"])}


def _carton_cells(plain: Mapping[str, Any] | None) -> CartonCells | None:
    if plain is None:
        return None
    parts = {int(number): frozenset(names) for number, names in plain["parts"].items()}
    return CartonCells(parts, tuple(plain["stated"]))
