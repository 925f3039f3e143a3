"""Runs, parts of pushed batches, and exports in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    earliest,
    every,
    first,
    gathered,
    rendered,
    statements,
    value,
)
from adapters.postgres.table import Column, Table, TableStore, as_json
from domain.catalogue.model import Stream
from domain.exports.model import OPEN as OPEN_EXPORTS
from domain.exports.model import Export, ExportStatus
from domain.exports.ports import ExportStore, ExportUpkeep
from domain.runs.model import (
    CONCLUDED,
    MOST_RUNS,
    OPEN,
    CheckInput,
    NewestRun,
    PushInput,
    Run,
    RunDay,
    RunStatus,
    RunTrigger,
    UploadInput,
    newest_first,
)
from domain.runs.ports import PushStore, RunStore
from domain.storage.model import METER, StoredKind, push_key


def _input(value: Mapping[str, Any]) -> UploadInput | PushInput | CheckInput:
    if "check" in value:
        return CheckInput(**value)
    return UploadInput(**value) if "upload" in value else PushInput(**value)


RUNS = Table(
    Run,
    "runs",
    exceptions={"input": Column("input", as_json, _input)},
    beside={"trace": None},
    conflicts={"runs_open": "The source already has an open run of this stream. Wait until it ends."},
)
EXPORTS = Table(Export, "exports")
SQL = statements("runs", run=RUNS.columns(), export=EXPORTS.columns())


def _newest_run(source: str, id: str, status: str) -> NewestRun:
    return NewestRun(source, id, RunStatus(status))


class PostgresRunStore(TableStore[Run], RunStore):
    """Runs of the tenant. A run's row holds its trace context, to which later work such as deliveries is linked."""

    _sql, _table = SQL, RUNS
    newest = every(_newest_run, "newest_of")
    open_checks = every(RUNS.row_of)
    days = every(RunDay, most=MOST_RUNS)

    async def add(self, row: Run, **more: Any) -> None:
        await super().add(row, trace=self._session.trace, **more)

    async def save(self, row: Run, *, expected_version: int | None = None, **more: Any) -> None:
        if self._session.trace is not None:
            more["trace"] = self._session.trace
        await super().save(row, expected_version=expected_version, **more)

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        return await self._newest(source, stream, OPEN, "whole")

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        return await self._newest(source, stream, [RunStatus.SUCCEEDED], "snapshot")

    async def replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        mapped_next = await self._newest(source, stream, [RunStatus.NEEDS_MAPPING], "snapshot")
        return newest_first(mapped_next, await self.last_good(source, stream))

    async def refused(self, source: str, stream: Stream) -> Run | None:
        ended = await self._newest(source, stream, CONCLUDED, "snapshot")
        return ended if ended is not None and ended.was_refused else None

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        return await self._newest(source, stream, CONCLUDED, "read")

    async def _newest(
        self, source: str, stream: Stream | None, statuses: Collection[RunStatus], which: str
    ) -> Run | None:
        """Return the newest run with one of the statuses: any (`whole`), with a `snapshot`, or one that `read` data."""
        statement = rendered(SQL["newest"], frozenset({"stream", which} if stream else {which}))
        row = await self._session.one(statement, source=source, stream=stream, statuses=sorted(statuses))
        return self._table.row_of(*row) if row else None


class PostgresPushStore(TenantStore, PushStore):
    """Pushed parts of the tenant's batches."""

    _sql = SQL
    collecting = first(RUNS.row_of, status=RunStatus.QUEUED, trigger=RunTrigger.PUSH)
    newest = first(RUNS.row_of, "newest_batch")
    part = value()

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime | None = None) -> bool:
        part = {"run": run, "sequence": sequence, "records": records, "bytes": len(records) + 1, "meter": METER}
        if await self._run("add_part", **part) != 1:
            return False
        if free_after is not None:
            key = push_key(self._session.tenant, run)
            entry = {"key": key, "kind": StoredKind.PUSH, "free_after": free_after}
            await self._run("keep_batch", run=run, **entry)
        return True

    async def forget(self, run: str) -> None:
        await self._run("forget_parts", run=run, key=push_key(self._session.tenant, run))


class PostgresExportStore(TableStore[Export], ExportStore):
    """Exports of the tenant."""

    _sql, _table = SQL, EXPORTS
    open = first(int, "open_exports", open=sorted(OPEN_EXPORTS))
    kept = every(EXPORTS.row_of, "kept_exports", status=ExportStatus.SUCCEEDED)

    async def take_turns(self) -> None:
        await self._session.take_turn("exports")


class PostgresExportUpkeep(CoordinatorStore, ExportUpkeep):
    """Due exports of all tenants, for the scheduler."""

    _sql = SQL
    due = gathered("due_exports")
    waiting_since = earliest()
