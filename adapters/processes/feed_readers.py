"""Feed readers in processes of their own: what a file does to them, it does to nobody else."""

import asyncio
import signal
from array import array
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from adapters.processes import messages
from adapters.processes.forks import Fork, ForkServerHandle
from adapters.processes.messages import (
    Cut,
    Draw,
    Drawn,
    Excerpts,
    Failed,
    Find,
    Found,
    Gather,
    Keys,
    Order,
    Progress,
    Reply,
    Request,
    Spool,
    Spooled,
    State,
    Statements,
)
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.ports import ParseFailed, Place, ReaderDied, ReadingOrder, Told
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, NeedsMapping, Sample, SpooledRows, Stated, StockSheet
from ports.codec import Codec

R = TypeVar("R", bound=Reply)

LARGE: Final = 256 << 10
"""Bytes of an answer that is decoded beside the event loop."""
REUSED_BELOW: Final = 4 << 20
"""A process that has read less than so many bytes may read another snapshot."""
USES: Final = 100
"""After so many snapshots a process has served."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Address space in MiB, seconds of processor time a snapshot, seconds a request (`sample`: a sample), bytes an answer."""

    memory: int = 1024
    cpu: int = 1200
    wall: float = 1800.0
    sample: float = 30.0
    answer: int = 256 << 20


class ReaderFailed(Exception):
    """The reader met an error of its own; the message names it and where it was, without any value."""


class ProcessFeedReader:
    """FeedReader over a fork's socket."""

    def __init__(self, fork: Fork, codec: Codec, limits: ReaderLimits) -> None:
        self.fork, self._codec, self._limits = fork, codec, limits
        self.uses = 0
        self.sound = True
        self._turn = asyncio.Lock()
        self._input: asyncio.StreamReader
        self._output: asyncio.StreamWriter

    async def connect(self) -> None:
        """Open the streams."""
        self._input, self._output = await asyncio.open_connection(sock=self.fork.connection, limit=1 << 20)

    async def begin(self, order: ReadingOrder) -> None:
        """Have the process work on this snapshot from now on."""
        self.uses += 1
        await self._write(
            Order(
                snapshot=order.snapshot,
                folder=order.folder,
                connector=order.connector,
                config=self._codec.encode(order.config),
                stream=order.stream,
                settings=order.settings,
                buckets=order.buckets,
                room=order.room,
                pushed=order.pushed,
                may_be_stock=order.may_be_stock,
                known=order.known,
                whole=order.whole,
                limit=order.limit,
                cpu=self._limits.cpu,
            )
        )

    async def spool(self, told: Told) -> SpooledRows:
        got = await self._asked(Spool(), Spooled, self._limits.wall, told)
        slots = array("I")
        slots.frombytes(got.slots)
        places = None if got.places is None else frozenset(got.places)
        problems = got.problems, got.problem_count
        return SpooledRows(got.rows, got.held, slots, places, *problems, got.tables, got.names_products)

    async def gather(self, buckets: range) -> Gathered:
        got = await self._asked(Gather(buckets.start, buckets.stop), Keys, self._limits.wall)
        return Gathered(got.fingerprints, got.lines, got.rows)

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        got = await self._asked(State(buckets.start, buckets.stop, list(keys)), Statements, self._limits.wall)
        return Stated(await asyncio.to_thread(self._statements, got.statements), got.problems)

    def _statements(self, encoded: Sequence[bytes]) -> list[ProductStatement]:
        return [_product(self._codec.decode(statement)) for statement in encoded]

    async def sample(self, count: int) -> Sample:
        got = await self._asked(Draw(count), Drawn, self._limits.sample)
        return Sample(self._codec.decode(got.records), got.failure, got.mapping, got.problems)

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        return (await self._asked(Find(list(texts), most), Found, self._limits.sample)).found

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        return (await self._asked(Cut(list(lines), beside), Excerpts, self._limits.sample)).tables

    def close(self) -> None:
        """Kill it, whatever it does."""
        self.fork.kill()
        self._output.close()

    async def _asked(self, request: Request, answer: type[R], seconds: float, told: Told | None = None) -> R:
        """The answer to a request; whatever else happens, this reader is not asked again."""
        async with self._turn:
            sound, self.sound = self.sound, False
            if not sound:
                raise ReaderDied("It had ended before.")
            try:
                async with asyncio.timeout(seconds):
                    await self._write(request)
                    while isinstance(reply := await self._read(), Progress):
                        if told is not None:
                            await told(reply.rows)
            except TimeoutError:
                raise ReaderDied(f"It took longer than {seconds:,.0f} seconds.") from None
            except (ConnectionError, asyncio.IncompleteReadError):
                raise await self._death() from None
            if isinstance(reply, Failed):
                raise self._failure(reply)
            if not isinstance(reply, answer):
                raise ReaderFailed(f"{type(reply).__name__} is no answer to {type(request).__name__}")
            self.sound = True
            return reply

    async def _write(self, message: Request) -> None:
        self._output.writelines(messages.framed(message))
        await self._output.drain()

    async def _read(self) -> Reply:
        length = int.from_bytes(await self._input.readexactly(messages.LENGTH))
        if length > self._limits.answer:
            raise ReaderDied(f"What it read fills {length >> 20} MiB at a time.")
        body = await self._input.readexactly(length)
        reply: Reply = await asyncio.to_thread(messages.reply, body) if length > LARGE else messages.reply(body)
        return reply

    async def _death(self) -> Exception:
        """What ended the process."""
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

    def _failure(self, failed: Failed) -> Exception:
        match failed.kind:
            case "parse":
                return ParseFailed(failed.message)
            case "mapping":
                return NeedsMapping(failed.message, failed.tables)
            case "stock":
                return StockSheet()
            case "memory":
                return ParseFailed(f"Reading the feed takes more than {self._limits.memory:,} MiB of memory; split it.")
            case "os":
                return OSError(failed.errno, failed.message)
        return ReaderFailed(failed.message)


class ProcessFeedReaders:
    """FeedReaders: at most `most` at a time; `command` runs the fork server. One that has read little is used again."""

    def __init__(self, command: Sequence[str], codec: Codec, *, most: int, limits: ReaderLimits | None = None) -> None:
        self._server, self._codec, self._limits = ForkServerHandle(command), codec, limits or ReaderLimits()
        self._room = asyncio.Semaphore(most)
        self._idle: list[ProcessFeedReader] = []

    @asynccontextmanager
    async def open(self, order: ReadingOrder) -> AsyncIterator[ProcessFeedReader]:
        async with self._room:
            reader = await self._ready(order)
            small = _small(order.snapshot)
            try:
                yield reader
            finally:
                if small and reader.sound and reader.uses < USES and not reader.fork.ended.done():
                    self._idle.append(reader)
                else:
                    reader.close()

    async def warm(self) -> None:
        """Have the fork server ready before the first file comes."""
        await self._server.start()

    async def close(self) -> None:
        """End every reader."""
        for reader in self._idle:
            reader.close()
        self._idle.clear()
        await self._server.close()

    async def _ready(self, order: ReadingOrder) -> ProcessFeedReader:
        """A reader that has begun; an idle one may have ended meanwhile."""
        while self._idle:
            reader = self._idle.pop()
            with suppress(ConnectionError):
                if not reader.fork.ended.done():
                    await reader.begin(order)
                    return reader
        for left in (1, 0):
            try:
                reader = ProcessFeedReader(await self._server.fork(), self._codec, self._limits)
                await reader.connect()
                await reader.begin(order)
            except ConnectionError as error:
                if not left:
                    raise ReaderDied(f"It could not be started ({error}).") from error
            else:
                return reader
        raise AssertionError("the last try returns or raises")


def _small(snapshot: str) -> bool:
    return Path(snapshot).stat().st_size < REUSED_BELOW


def _product(plain: Mapping[str, Any]) -> ProductStatement:
    variants = [
        VariantStatement(
            variant["key"],
            variant["data"],
            [
                OfferStatement(offer["location"], offer["data"], frozenset(offer["blank"]))
                for offer in variant["offers"]
            ],
            variant["restated"],
            frozenset(variant["blank"]),
            variant["covers_locations"],
            variant["states_status"],
            _carton_cells(variant["cartons"]),
        )
        for variant in plain["variants"]
    ]
    marks = (
        plain["discontinued"],
        plain["restated"],
        plain["alone"],
        frozenset(plain["blank"]),
        plain["names_product"],
    )
    return ProductStatement(plain["key"], plain["data"], variants, *marks)


def _carton_cells(plain: Mapping[str, Any] | None) -> CartonCells | None:
    if plain is None:
        return None
    parts = {int(number): frozenset(names) for number, names in plain["parts"].items()}
    return CartonCells(parts, tuple(plain["stated"]))
