"""Readers of feeds in child processes, so that a hostile file cannot affect the reading of other files."""

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

from adapters.processes.forks import MIN_THREADED_BYTES, ForkedChild, ForkServerHandle, ResultTooLarge
from adapters.processes.protocol import CallSignature, Functions, Raised, decode
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.ports import FeedLine, FeedReaderFailed, ParseFailed, ProgressCallback, ReadRequest
from domain.ingestion.snapshot_results import (
    BucketKeys,
    FeedExcerpt,
    FeedStatements,
    MappingRequired,
    RowSearchResult,
    SnapshotSample,
    SpoolResult,
    StockOnlySnapshot,
    TableSummary,
)
from domain.kernel.problems import Problem
from domain.runs.usecases.snapshot_reader import SnapshotReader
from ports.codec import Codec

MAX_SNAPSHOT_BYTES_FOR_REUSE = 4 << 20
"""Size of a snapshot in bytes from which its process is not reused for another snapshot."""
MAX_SNAPSHOTS_PER_PROCESS = 100
"""Maximum number of snapshots that one process reads."""
REPORT_SECONDS = 2.0
"""Seconds between two progress reports."""
READER_METHODS = ("begin", "spool", "load_keys", "load_statements", "read_sample", "find_rows", "read_excerpts")
"""Names of the methods of ReaderSession that the parent may call."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Limits of a child process that reads feeds.

    Attributes:
        memory_mib: Maximum address space in MiB.
        cpu_seconds: Maximum CPU time for one snapshot, in seconds.
        call_seconds: Maximum elapsed time of one call, in seconds.
        sample_seconds: Maximum elapsed time of a call that reads only some rows, in seconds.
        max_result_bytes: Maximum size of the encoded result of a call, in bytes.
    """

    memory_mib: int = 1024
    cpu_seconds: int = 1200
    call_seconds: float = 1800.0
    sample_seconds: float = 30.0
    max_result_bytes: int = 256 << 20


class ReaderFailed(Exception):
    """Internal error of a child process. The message has the error's class and line, but no data of the file."""


class EncodedMappingRequired(Exception):
    """MappingRequired in a form that can be sent between processes, with all data as constructor arguments."""


class ReaderSession:
    """Session of a child process that reads one snapshot after another. The parent calls the methods in READER_METHODS.

    The codec encodes values with exact numbers, such as settings and statements about products, as JSON.
    """

    def __init__(self, open_snapshot: Callable[[ReadRequest], SnapshotReader], codec: Codec) -> None:
        self._open, self._codec = open_snapshot, codec
        self._snapshot: SnapshotReader | None = None

    @property
    def functions(self) -> Functions:
        """Functions that the parent may call, by name."""
        return {name: getattr(self, name) for name in READER_METHODS}

    @property
    def _reader(self) -> SnapshotReader:
        """Reader of the snapshot that `begin` has opened."""
        assert self._snapshot is not None
        return self._snapshot

    def begin(self, request: ReadRequest, config: bytes) -> None:
        """Close the previous snapshot, and open the snapshot that `request` names. `config` are the encoded settings."""
        if self._snapshot is not None:
            with suppress(OSError):
                self._snapshot.close()
        self._snapshot = None
        self._snapshot = self._open(replace(request, config=self._codec.decode(config)))

    def spool(self, on_progress: Callable[[int], None]) -> tuple[SpoolResult, bytes]:
        """Read all rows and write them to numbered buckets. The slot, a hash of the item's key, determines the bucket.

        Args:
            on_progress: Function that is called every two seconds with the number of rows read so far.

        Returns:
            The result without `slots`, and the slots of all keys as unsigned 32-bit integers in native byte order.
        """
        reader, finished = self._reader, threading.Event()

        def report_progress() -> None:
            while not finished.wait(REPORT_SECONDS):
                with suppress(OSError):
                    on_progress(reader.row_count)

        thread = threading.Thread(target=report_progress, daemon=True)
        thread.start()
        try:
            result = reader.spool()
        except MappingRequired as error:
            raise EncodedMappingRequired(str(error), error.tables) from None
        finally:
            finished.set()
            thread.join()
        return replace(result, slots=()), array("I", result.slots).tobytes()

    def load_keys(self, start: int, stop: int) -> BucketKeys:
        """Return the keys of the items whose rows are in the buckets (see `spool`) from `start` to `stop` - 1."""
        return self._reader.load_keys(range(start, stop))

    def load_statements(self, start: int, stop: int, keys: list[str]) -> tuple[list[bytes], list[Problem]]:
        """Return the encoded statements of the feed about the items with these keys, and the items' problems.

        Only rows in the buckets (see `spool`) from `start` to `stop` - 1 are parsed.
        """
        problems: list[Problem] = []
        statements = self._reader.load_statements(range(start, stop), keys, problems)
        return [self._codec.encode(statement) for statement in statements], problems

    def read_sample(self, count: int) -> tuple[bytes, SnapshotSample]:
        """Return the first `count` records, encoded, and the sample without its records."""
        sample = self._reader.read_sample(count)
        return self._codec.encode(sample.records), replace(sample, records=())

    def find_rows(self, texts: list[str], max_results: int) -> RowSearchResult:
        """Return the first `max_results` rows that contain one of the texts as a cell."""
        return self._reader.find_rows(texts, max_results)

    def read_excerpts(self, lines: list[tuple[str | None, int]], context_rows: int) -> list[FeedExcerpt]:
        """Return excerpts of the file: each line with the `context_rows` rows before and after it.

        `lines` are pairs of a worksheet (or None) and a line number.
        """
        return list(self._reader.read_excerpts(lines, context_rows))


_SIGNATURES = {name: CallSignature.from_function(getattr(ReaderSession, name)) for name in READER_METHODS}


class ProcessFeedReader:
    """Reader of feeds that calls a ReaderSession in a child process, an implementation of the port FeedReader.

    Attributes:
        fork: The child process.
        snapshot_count: Number of snapshots that the process has opened.
        is_usable: Whether the process can be used further; false during a call and after a failed one.
    """

    def __init__(self, fork: ForkedChild, codec: Codec, limits: ReaderLimits) -> None:
        self.fork, self._codec, self._limits = fork, codec, limits
        self.snapshot_count = 0
        self.is_usable = True
        self._call_lock = asyncio.Lock()

    async def begin(self, request: ReadRequest) -> None:
        """Open the snapshot that `request` names in the child process."""
        self.snapshot_count += 1
        config = self._codec.encode(request.config)
        await self._call("begin", replace(request, config={}), config, cpu=self._limits.cpu_seconds)

    async def spool(self, on_progress: ProgressCallback) -> SpoolResult:
        spooled, slot_bytes = await self._call("spool", None, on_progress=on_progress)
        slots = array("I")
        slots.frombytes(slot_bytes)
        result: SpoolResult = replace(spooled, slots=slots)
        return result

    async def load_keys(self, buckets: range) -> BucketKeys:
        keys: BucketKeys = await self._call("load_keys", buckets.start, buckets.stop)
        return keys

    async def load_statements(self, buckets: range, keys: Collection[str]) -> FeedStatements:
        encoded, problems = await self._call("load_statements", buckets.start, buckets.stop, list(keys))
        return FeedStatements(await asyncio.to_thread(self._decode_statements, encoded), problems)

    def _decode_statements(self, encoded: Sequence[bytes]) -> list[ProductStatement]:
        return [_convert_product(self._codec.decode(statement)) for statement in encoded]

    async def read_sample(self, count: int) -> SnapshotSample:
        records, sample = await self._call("read_sample", count, seconds=self._limits.sample_seconds)
        result: SnapshotSample = replace(sample, records=self._codec.decode(records))
        return result

    async def find_rows(self, texts: Collection[str], max_results: int) -> RowSearchResult:
        found: RowSearchResult = await self._call(
            "find_rows", list(texts), max_results, seconds=self._limits.sample_seconds
        )
        return found

    async def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        tables: list[FeedExcerpt] = await self._call(
            "read_excerpts", list(lines), context_rows, seconds=self._limits.sample_seconds
        )
        return tables

    def close(self) -> None:
        """Kill the child process."""
        self.fork.kill()

    async def _call(
        self,
        name: str,
        *args: Any,
        seconds: float | None = None,
        cpu: int = 0,
        on_progress: Callable[[int], Awaitable[None]] | None = None,
    ) -> Any:
        """Call a method of the ReaderSession in the child process; return the decoded result.

        After a failure, the process cannot be used again.

        Args:
            name: Name of the method, one of READER_METHODS.
            args: Arguments of the method.
            seconds: Elapsed seconds after which the call fails; None for the default limit.
            cpu: Seconds of CPU time that the child may use from now on; 0 leaves the limit unchanged.
            on_progress: Function that receives the number of rows read so far.
        """
        seconds = seconds or self._limits.call_seconds
        signature, max_bytes = _SIGNATURES[name], self._limits.max_result_bytes
        async with self._call_lock:
            was_sound, self.is_usable = self.is_usable, False
            if not was_sound:
                raise FeedReaderFailed("The reader process has already failed.")
            try:
                async with asyncio.timeout(seconds):
                    reply = await self.fork.call(
                        name, signature, args, max_result_bytes=max_bytes, cpu_seconds=cpu, callback=on_progress
                    )
            except TimeoutError:
                raise FeedReaderFailed(f"The reader process took more than {seconds:,.0f} seconds.") from None
            except ResultTooLarge as error:
                raise FeedReaderFailed(
                    f"The reader process returned {error.length >> 20} MiB; the maximum is {max_bytes >> 20} MiB."
                ) from None
            except (ConnectionError, EOFError):
                raise await self._build_exit_error() from None
            if isinstance(reply, Raised):
                raise self._convert_error(reply)
            result = await _decode_reply(reply, signature.result)
            self.is_usable = True
            return result

    async def _build_exit_error(self) -> Exception:
        """Return the error to raise after the end of the child process, by the process's exit status."""
        try:
            async with asyncio.timeout(5):
                status = await asyncio.shield(self.fork.exit_status)
        except TimeoutError:
            return FeedReaderFailed("The reader process closed its connection.")
        if status is None:
            return ReaderFailed("the fork server exited, and its readers with it")
        if status == -signal.SIGXCPU:
            return ParseFailed(
                f"Parsing the feed takes more than {self._limits.cpu_seconds:,} seconds of CPU time; split the feed."
            )
        return FeedReaderFailed(
            f"The reader process was killed by {signal.Signals(-status).name}."
            if status < 0
            else f"The reader process ended with the exit status {status}."
        )

    def _convert_error(self, raised: Raised) -> Exception:
        match raised.kind:
            case "ParseFailed":
                return ParseFailed(*decode(raised.arguments, type=tuple[str]))
            case "EncodedMappingRequired":
                return MappingRequired(*decode(raised.arguments, type=tuple[str, TableSummary]))
            case "StockOnlySnapshot":
                return StockOnlySnapshot()
            case "MemoryError":
                return ParseFailed(
                    f"Parsing the feed takes more than {self._limits.memory_mib:,} MiB of memory; split the feed."
                )
            case "OSError":
                return OSError(*decode(raised.arguments, type=tuple[int, str]))
        return ReaderFailed(f"{raised.kind} at {raised.place}")


def _measure_file(path: str) -> int:
    return Path(path).stat().st_size


async def _decode_reply(reply: msgspec.Raw, kind: Any) -> Any:
    if len(bytes(reply)) > MIN_THREADED_BYTES:
        return await asyncio.to_thread(decode, reply, type=kind)
    return decode(reply, type=kind)


class ProcessFeedReaders:
    """Factory of readers in child processes, an implementation of the port FeedReaderFactory.

    A process that has read a small snapshot is reused for another snapshot.

    Args:
        command: Command that starts the fork server.
        codec: Codec of the values that are sent between the processes.
        max_readers: Maximum number of concurrent readers; further ones wait.
        limits: Limits of each reader.
    """

    def __init__(
        self, command: Sequence[str], codec: Codec, *, max_readers: int, limits: ReaderLimits | None = None
    ) -> None:
        self._server, self._codec, self._limits = ForkServerHandle(command), codec, limits or ReaderLimits()
        self._concurrency = asyncio.Semaphore(max_readers)
        self._idle: list[ProcessFeedReader] = []

    @asynccontextmanager
    async def open(self, request: ReadRequest) -> AsyncIterator[ProcessFeedReader]:
        async with self._concurrency:
            reader = await self._acquire_reader(request)
            is_small = _measure_file(request.snapshot) < MAX_SNAPSHOT_BYTES_FOR_REUSE
            try:
                yield reader
            finally:
                if (
                    is_small
                    and reader.is_usable
                    and reader.snapshot_count < MAX_SNAPSHOTS_PER_PROCESS
                    and not reader.fork.exit_status.done()
                ):
                    self._idle.append(reader)
                else:
                    reader.close()

    async def prepare(self) -> None:
        """Start the fork server, so that the first reader does not wait for the start."""
        await self._server.start()

    async def close(self) -> None:
        """End all readers and the fork server."""
        for reader in self._idle:
            reader.close()
        self._idle.clear()
        await self._server.close()

    async def _acquire_reader(self, request: ReadRequest) -> ProcessFeedReader:
        """Return an idle reader or a new one, after it has opened the snapshot. Raises FeedReaderFailed."""
        while self._idle:
            reader = self._idle.pop()
            if not reader.fork.exit_status.done():
                with suppress(FeedReaderFailed, ReaderFailed):
                    return await self._begin_reading(reader, request)
        for retries in (1, 0):
            try:
                return await self._begin_reading(
                    ProcessFeedReader(await self._server.fork(), self._codec, self._limits), request
                )
            except (ConnectionError, FeedReaderFailed, ReaderFailed) as error:
                if not retries:
                    raise FeedReaderFailed(f"The reader process could not be started ({error}).") from error
        raise AssertionError("internal error: the last attempt neither returned nor raised")

    @staticmethod
    async def _begin_reading(reader: ProcessFeedReader, request: ReadRequest) -> ProcessFeedReader:
        """Open the snapshot and return the reader; close the reader if the snapshot cannot be opened."""
        try:
            await reader.begin(request)
        except BaseException:
            reader.close()
            raise
        return reader


def _convert_product(values: dict[str, Any]) -> ProductStatement:
    variants = [
        VariantStatement(
            **variant
            | {
                "offers": [OfferStatement(**offer | _convert_blank_fields(offer)) for offer in variant["offers"]],
                "carton_cells": _convert_carton(variant["carton_cells"]),
            }
            | _convert_blank_fields(variant)
        )
        for variant in values["variants"]
    ]
    return ProductStatement(**values | {"variants": variants} | _convert_blank_fields(values))


def _convert_blank_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"blank_fields": frozenset(values["blank_fields"])}


def _convert_carton(values: Mapping[str, Any] | None) -> CartonCells | None:
    if values is None:
        return None
    parts = {int(number): frozenset(names) for number, names in values["parts"].items()}
    return CartonCells(parts, tuple(values["carton_indexes"]))
