"""Worker or API process that crashes at a given place: `python -m tests.faults.crash_points worker|api PLACE [SIGNAL]`.

Places of a worker, in the order of a run:

- `fetch`: half of the file is read.
- `counted`, `written`: the snapshot is counted, is written.
- `fetched`: the snapshot is committed.
- `parse`: some rows are parsed.
- `chunk:N`, `stored:N`: the N-th chunk is written, is committed.
- `end`, `ended`: the end of the run is written, is committed.
- `exporting`: half of a file of an export is written.
- `exported`: all files of an export are written, its end is not committed.
- `fetch`: half of a file of a scheduled export is read, to be sent.

Places of an API:

- `write`, `written`: before and after the commit of the first POST /v1/sources.
- `before:OPERATION`, `after:OPERATION`: before and after the commit of an operation, except in dry runs.
- `exporting`: half of a file is stored.

`none` is no place.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from adapters.arq.worker import ArqLaneSource, limit_arq_logging
from adapters.files.workspaces import FileWorkspaces
from domain.exports.model import EXECUTE_EXPORT
from domain.ingestion.model import FeedTable
from domain.ingestion.ports import Connectors as InstalledConnectors
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobDispatcher, JobStore
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.jobs.usecases.polling import DatabaseLaneSource
from domain.jobs.usecases.worker import FailoverLaneSource, Worker
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs import chunks
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.run_queue import EXECUTE_RUN
from domain.runs.usecases import execution
from domain.secrets.ports import Vault
from entrypoints.api.server import serve
from entrypoints.areas import exports, probes
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.logs import configure_logging
from entrypoints.operations.operation import create_handlers
from entrypoints.settings import Settings, read_settings
from entrypoints.stop_signals import catch_stop_signals
from ports.objects import ObjectStore as StoredObjects
from ports.signals import Signals
from ports.unit_of_work import Tx, UnitOfWork
from tests.support.readers import create_in_process_readers

LEASE = timedelta(seconds=float(os.environ.get("TRAP_LEASE", "1")))
vars(chunks)["BUCKET_BYTES"], vars(chunks)["CHUNK_ROWS"] = (
    1024,
    {"catalogue": 50, "stock": 50},
)  # a small file has many chunks


@dataclass
class CrashPoint:
    """Crash of the process at one place, once."""

    place: str
    signal_number: signal.Signals = signal.SIGKILL
    chunks: int = 0

    def reach(self, place: str) -> None:
        """Crash if this is the place."""
        if place == self.place:
            self.place = "none"
            os.kill(os.getpid(), self.signal_number)


class _Wrapper:
    """Wrapper that overrides some methods."""

    def __init__(self, inner: Any, trap: CrashPoint) -> None:
        self._inner, self._trap = inner, trap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class CrashingRunStore(_Wrapper):
    """Run store that records the stage in which the transaction leaves the run."""

    stage = ""

    async def save(self, run: Run) -> None:
        self.stage = run.stage
        await self._inner.save(run)


class CrashingJobStore(_Wrapper):
    """Job store with crash points before the commit."""

    runs: CrashingRunStore
    ending = False

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> None:
        await self._inner.renew_lease(job, lease)
        if self.runs.stage == "store":
            self._trap.chunks += 1
            self._trap.reach(f"chunk:{self._trap.chunks}")

    async def finish(self, job: ClaimedJob) -> None:
        await self._inner.finish(job)
        self.ending = True
        self._trap.reach("end")


class CrashingUnitOfWork(_Wrapper):
    """Units of work with crash points around their commits."""

    @asynccontextmanager
    async def begin(self, tenant: Tenant, call: AuditContext) -> AsyncIterator[Tx]:
        async with self._inner.begin(tenant, call) as tx:
            runs = tx._stores[RunStore] = CrashingRunStore(tx[RunStore], self._trap)
            jobs = tx._stores[JobStore] = CrashingJobStore(tx[JobStore], self._trap)
            jobs.runs = runs
            yield tx
            if call.operation == "sources.create":
                self._trap.reach("write")
            if not tx.is_dry_run:
                self._trap.reach(f"before:{call.operation}")
        if call.operation == "sources.create":
            self._trap.reach("written")
        if tx.is_dry_run:
            return
        self._trap.reach(f"after:{call.operation}")
        if jobs.ending:
            self._trap.reach("ended")
        elif runs.stage == "parse":
            self._trap.reach("fetched")
        elif runs.stage == "store":
            self._trap.reach(f"stored:{self._trap.chunks}")


class CrashingObjectStore(_Wrapper):
    """Object store with crash points during a read, and around a write."""

    async def read(self, key: str) -> AsyncIterator[bytes]:
        async for chunk in self._inner.read(key):
            yield chunk[: len(chunk) // 2]
            self._trap.reach("fetch")
            yield chunk[len(chunk) // 2 :]

    async def put_file(self, key: str, path: Path) -> None:
        self._trap.reach("counted")
        await self._inner.put_file(key, path)
        self._trap.reach("written")

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        async def passed() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                yield chunk[: len(chunk) // 2]
                self._trap.reach("exporting")
                yield chunk[len(chunk) // 2 :]

        await self._inner.put_stream(key, passed())
        if "manifest" in key:
            self._trap.reach("exported")


class CrashingConnectors(_Wrapper):
    """Connectors with a crash point after some rows of a table."""

    def parse_tables(self, *given: Any, **named: Any) -> Iterator[FeedTable]:
        for table in self._inner.parse_tables(*given, **named):
            yield replace(table, rows=self._rows(table.rows))

    def _rows(self, rows: Iterator[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number == 100:
                self._trap.reach("parse")
            yield row


async def run_worker(container: Dependencies, settings: Settings, trap: CrashPoint) -> None:
    """Run a worker with a short lease."""
    limit_arq_logging()
    run_execution = execution.RunExecution(
        CrashingUnitOfWork(container[UnitOfWork], trap), container[InstalledConnectors], CrashingObjectStore(container[StoredObjects], trap),
        container[Vault], create_in_process_readers(CrashingConnectors(container[InstalledConnectors], trap)), FileWorkspaces(), lease=LEASE,
    )  # fmt: skip
    probing = create_handlers([probes.AREA], container)
    container[StoredObjects] = CrashingObjectStore(container[StoredObjects], trap)
    exporting = dict(create_handlers([exports.AREA], container))
    exporting[EXECUTE_EXPORT] = replace(exporting[EXECUTE_EXPORT], lease=LEASE)  # type: ignore[type-var]
    drain = LaneProcessor(container[JobDispatcher], {EXECUTE_RUN: run_execution, **probing, **exporting}, lease=LEASE)
    database = DatabaseLaneSource(container[JobDispatcher], container[Signals])
    source = FailoverLaneSource(ArqLaneSource(settings.redis_url), database, 1.0) if settings.redis_url else database
    with catch_stop_signals() as stop:
        await Worker(source, drain, max_lanes=4).run(stop)


async def run_api(container: Dependencies, settings: Settings, trap: CrashPoint) -> None:
    """Run the API process."""
    container[UnitOfWork] = CrashingUnitOfWork(container[UnitOfWork], trap)
    container[StoredObjects] = CrashingObjectStore(container[StoredObjects], trap)
    await serve(container, settings)


async def main(what: str, place: str = "none", number: str = "SIGKILL") -> None:
    """Run the requested process."""
    settings = read_settings()
    configure_logging(settings.log_level)
    trap = CrashPoint(place, signal.Signals[number])
    async with open_dependencies(settings) as container:
        await (run_worker if what == "worker" else run_api)(container, settings, trap)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
