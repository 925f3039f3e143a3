"""Trying a source out: it is reached once as a run would, its first records are read, and nothing is stored."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from domain.sources.testing import BYTES, RECORDS, SECONDS, Failure, SourceTest
from ports.connectors import Answer, Connectors, FetchFailed, Job, ParseFailed
from ports.feed_readers import FeedReaders, ReaderDied, ReadingOrder
from ports.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Trial:
    """One try, to be run when no connection is held. What goes wrong on the way stands in the test's `failure`."""

    connectors: Connectors
    readers: FeedReaders
    workspaces: Workspaces
    connector: str
    job: Job

    async def run(self) -> SourceTest:
        """Reach the source."""
        started, seen = monotonic(), SourceTest(ok=False, duration_ms=0)
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(SECONDS), self.connectors.fetch(self.connector, self.job) as answer:
                    seen = _answered(answer)
                    read, whole = await _read(answer.chunks, path)
                seen = replace(seen, bytes_read=read)
                sample = await self._sample(path, whole)
                seen = replace(seen, ok=True, sample=sample)
            except FetchFailed as error:
                seen = replace(seen, failure=Failure(error.code, str(error)))
            except (ParseFailed, ReaderDied) as error:
                seen = replace(seen, failure=Failure("parse_failed", str(error)))
            except TimeoutError:
                seen = replace(seen, failure=Failure("fetch_failed", f"It took longer than {SECONDS} seconds."))
        return replace(seen, duration_ms=round((monotonic() - started) * 1000))

    async def _sample(self, path: Path, whole: bool) -> list[dict[str, Any]]:
        """The first records of the snapshot; one that was cut short may end in the middle of one."""
        order = ReadingOrder(str(path), str(path.parent), self.connector, self.job.config, self.job.stream)
        async with self.readers.open(order) as reader:
            sample = await reader.sample(RECORDS)
        if sample.failure is not None and whole:
            raise ParseFailed(sample.failure)
        return [dict(record) for record in sample.records]


def _answered(answer: Answer) -> SourceTest:
    return SourceTest(
        ok=False,
        duration_ms=0,
        status=answer.status,
        served_by=answer.served_by,
        final_url=answer.final_url,
        content_type=answer.content_type,
    )


async def _read(chunks: AsyncIterator[bytes], path: Path) -> tuple[int, bool]:
    """Keep the first BYTES of the feed; answers how many bytes that were and whether it was the whole."""
    read = 0
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk[: BYTES - read])
            read += min(len(chunk), BYTES - read)
            if read == BYTES:
                return read, False
    return read, True
