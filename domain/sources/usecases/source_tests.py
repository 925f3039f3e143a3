"""Execution of source tests: fetching a feed as a run does, and reading the first records without storing them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import (
    DEFAULT_FEED_SETTINGS,
    Connectors,
    ConnectorTask,
    FeedReaderFactory,
    FeedReaderFailed,
    FetchFailed,
    FetchResponse,
    ParseFailed,
    ReadRequest,
)
from domain.sources.source_test import (
    MAX_FETCHED_BYTES,
    MAX_PROBLEMS,
    MAX_RECORDS,
    MAX_SUBMITTED_BYTES,
    TIMEOUT_SECONDS,
    SourceTest,
    TestFailure,
)
from ports.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class SourceTestExecution:
    """Source test that runs without a database connection.

    Attributes:
        task: The task for the connector.
        settings: The settings for reading values.
        has_records: Whether the data consists of records (docs/push.md).
    """

    connectors: Connectors
    readers: FeedReaderFactory
    workspaces: Workspaces
    connector: str
    task: ConnectorTask
    settings: FeedSettings = DEFAULT_FEED_SETTINGS
    read_submitted: Callable[[], AsyncIterator[bytes]] | None = None
    """Function that reads submitted data; None if the data must be fetched."""
    has_records: bool = False

    async def run(self) -> SourceTest:
        """Run the test and return the result; a failure is part of the result and not raised."""
        started, result = monotonic(), SourceTest(ok=False, duration_ms=0)
        with self.workspaces.create_folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS), self._open_feed() as (result, chunks):
                    bytes_read, is_complete = await write_prefix(
                        chunks, path, MAX_SUBMITTED_BYTES if self.read_submitted else MAX_FETCHED_BYTES
                    )
                result = replace(result, bytes_read=bytes_read)
                result = replace(result, ok=True, **await self._read_sample(path, is_complete))
            except FetchFailed as error:
                result = replace(result, failure=TestFailure(error.code, str(error)))
                if (response := error.response) is not None:
                    result = replace(
                        result, status=response.status, final_url=response.final_url, content_type=response.content_type
                    )
            except (ParseFailed, FeedReaderFailed) as error:
                result = replace(result, failure=TestFailure("parse_failed", str(error)))
            except TimeoutError:
                result = replace(
                    result, failure=TestFailure("fetch_failed", f"The test took longer than {TIMEOUT_SECONDS} seconds.")
                )
        return replace(result, duration_ms=round((monotonic() - started) * 1000))

    @asynccontextmanager
    async def _open_feed(self) -> AsyncIterator[tuple[SourceTest, AsyncIterator[bytes]]]:
        """Yield a preliminary result, with the metadata of the response if data is fetched, and the feed's chunks."""
        if self.read_submitted is not None:
            yield SourceTest(ok=False, duration_ms=0), self.read_submitted()
            return
        async with self.connectors.fetch(self.connector, self.task) as response:
            yield _create_result(response), response.chunks

    async def _read_sample(self, path: Path, is_complete: bool) -> dict[str, Any]:
        """Return the first records, the mapping and the problems as fields of the result.

        Raises ParseFailed if a complete file cannot be read to the end. In an incomplete file, the truncation may be
        the cause, so the records before the error are returned.
        """
        task = self.task
        request = ReadRequest(
            str(path),
            str(path.parent),
            self.connector,
            task.config,
            task.stream,
            self.settings,
            has_records=self.has_records,
        )
        async with self.readers.open(request) as reader:
            sample = await reader.read_sample(MAX_RECORDS)
        if sample.failure is not None and is_complete:
            raise ParseFailed(sample.failure)
        return {
            "sample": [dict(record) for record in sample.records],
            "mapping": _mapping_to_json(sample.mapping) if sample.mapping else None,
            "problems": tuple(sample.problems[:MAX_PROBLEMS]),
        }


def _mapping_to_json(mapping: Any) -> dict[str, Any]:
    """Return a HeaderMapping as a JSON object."""
    columns = [{"column": one.column, "field": one.field, "tier": one.tier} for one in mapping.columns]
    unmapped = [{"column": one.column, "reason": one.reason} for one in mapping.unmapped]
    return {"columns": columns, "unmapped": unmapped, "missing": list(mapping.missing)}


def _create_result(response: FetchResponse) -> SourceTest:
    return SourceTest(
        ok=False,
        duration_ms=0,
        status=response.status,
        served_by=response.served_by,
        final_url=response.final_url,
        content_type=response.content_type,
    )


async def write_prefix(chunks: AsyncIterator[bytes], path: Path, max_bytes: int) -> tuple[int, bool]:
    """Write the first bytes of a feed, at most `max_bytes`, to a file.

    Returns the number of bytes written, and whether the file contains the whole feed.
    """
    read = 0
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk[: max_bytes - read])
            read += min(len(chunk), max_bytes - read)
            if read == max_bytes:
                return read, False
    return read, True
