"""Test of a source: the feed is requested as by a run and its first records are read; nothing is stored."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import (
    DEFAULTS,
    Answer,
    Connectors,
    FeedReaders,
    FetchFailed,
    Job,
    ParseFailed,
    ReaderDied,
    ReadingOrder,
)
from domain.sources.testing import BYTES, HANDED_IN_BYTES, PROBLEMS, RECORDS, SECONDS, Failure, SourceTest
from ports.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Trial:
    """A test to run without holding a connection. Errors are reported in `failure` of the result."""

    connectors: Connectors
    readers: FeedReaders
    workspaces: Workspaces
    connector: str
    job: Job
    settings: FeedSettings = DEFAULTS
    handed_in: Callable[[], AsyncIterator[bytes]] | None = None
    """The uploaded or sent bytes, if nothing is fetched."""
    pushed: bool = False

    async def run(self) -> SourceTest:
        """Run the test and return its result."""
        started, seen = monotonic(), SourceTest(ok=False, duration_ms=0)
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(SECONDS), self._opened() as (seen, chunks):
                    read, whole = await keep_beginning(chunks, path, HANDED_IN_BYTES if self.handed_in else BYTES)
                seen = replace(seen, bytes_read=read)
                seen = replace(seen, ok=True, **await self._sample(path, whole))
            except FetchFailed as error:
                seen = replace(seen, failure=Failure(error.code, str(error)))
                if (head := error.response) is not None:
                    seen = replace(seen, status=head.status, final_url=head.final_url, content_type=head.content_type)
            except (ParseFailed, ReaderDied) as error:
                seen = replace(seen, failure=Failure("parse_failed", str(error)))
            except TimeoutError:
                seen = replace(seen, failure=Failure("fetch_failed", f"It took longer than {SECONDS} seconds."))
        return replace(seen, duration_ms=round((monotonic() - started) * 1000))

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[SourceTest, AsyncIterator[bytes]]]:
        """Yield the start of the result, and the bytes of the feed."""
        if self.handed_in is not None:
            yield SourceTest(ok=False, duration_ms=0), self.handed_in()
            return
        async with self.connectors.fetch(self.connector, self.job) as answer:
            yield _answered(answer), answer.chunks

    async def _sample(self, path: Path, whole: bool) -> dict[str, Any]:
        """Read a sample of the first records; a truncated file may end within a record."""
        job = self.job
        order = ReadingOrder(
            str(path), str(path.parent), self.connector, job.config, job.stream, self.settings, pushed=self.pushed
        )
        async with self.readers.open(order) as reader:
            sample = await reader.sample(RECORDS)
        if sample.failure is not None and whole:
            raise ParseFailed(sample.failure)
        return {
            "sample": [dict(record) for record in sample.records],
            "mapping": _mapping(sample.mapping) if sample.mapping else None,
            "problems": tuple(sample.problems[:PROBLEMS]),
        }


def _mapping(mapping: Any) -> dict[str, Any]:
    """Return a HeaderMapping as plain values."""
    columns = [{"column": one.column, "field": one.field, "tier": one.tier} for one in mapping.columns]
    unmapped = [{"column": one.column, "reason": one.reason} for one in mapping.unmapped]
    return {"columns": columns, "unmapped": unmapped, "missing": list(mapping.missing)}


def _answered(answer: Answer) -> SourceTest:
    return SourceTest(
        ok=False,
        duration_ms=0,
        status=answer.status,
        served_by=answer.served_by,
        final_url=answer.final_url,
        content_type=answer.content_type,
    )


async def keep_beginning(chunks: AsyncIterator[bytes], path: Path, most: int) -> tuple[int, bool]:
    """Write the first `most` bytes of the feed to a file. Return their number, and whether the feed is complete."""
    read = 0
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk[: most - read])
            read += min(len(chunk), most - read)
            if read == most:
                return read, False
    return read, True
