"""Runs, parts of pushed batches, and exports in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    fetch_all,
    fetch_first,
    fetch_scalar,
    gather_due,
    gather_earliest,
    load_statements,
    render_statement,
)
from adapters.postgres.table import ColumnCodec, Table, TableStore, encode_json
from domain.catalogue.model import Stream
from domain.exports.model import OPEN as OPEN_EXPORTS
from domain.exports.model import Export, ExportStatus
from domain.exports.ports import ExportStore, ExportUpkeep, ScheduledExportStore, ScheduledExportUpkeep
from domain.exports.schedules import ScheduledExport
from domain.runs.model import (
    MAX_COUNTED_RUNS,
    MAX_LISTED_SUMMARIES,
    OPEN_STATUSES,
    SUCCEEDED_OR_FAILED_STATUSES,
    CheckInput,
    OpenReview,
    PushInput,
    Run,
    RunDay,
    RunStatus,
    RunSummary,
    RunTrigger,
    SourceRuns,
    UploadInput,
    list_replayable_runs,
)
from domain.runs.ports import PushStore, RunStore
from domain.storage.model import METER, StoredKind, build_push_key


def _decode_input(value: Mapping[str, Any]) -> UploadInput | PushInput | CheckInput:
    if "check" in value:
        return CheckInput(**value)
    return UploadInput(**value) if "upload" in value else PushInput(**value)


RUNS = Table(
    Run,
    "runs",
    special_codecs={
        "input": ColumnCodec("input", encode_json, _decode_input),
        "crashes": ColumnCodec("deaths"),
        "host_waits": ColumnCodec("turns"),
    },
    extra_columns={"trace": None},
    conflicts={"runs_open": "The source already has an open run of this stream. Wait until it ends."},
)
EXPORTS = Table(Export, "exports", special_codecs={"crashes": ColumnCodec("deaths")})
SCHEDULED_EXPORTS = Table(ScheduledExport, "scheduled_exports")
_SUMMARY = (
    "r.source, r.id, r.stream, r.status, r.created_at, r.started_at, r.finished_at, "
    "coalesce((r.fetched ->> 'at')::timestamptz, r.finished_at), r.stats, r.error ->> 'message'"
)
SQL = load_statements("runs", run=RUNS.build_column_list(), export=EXPORTS.build_column_list(), summary=_SUMMARY)


def _build_summary(source: str, id: str, stream: str, status: str, *others: Any) -> RunSummary:
    return RunSummary(source, id, Stream(stream), RunStatus(status), *others)


def _build_source_runs(source: str, succeeded: int, failed: int, rows: int, problems: int, read_at: Any) -> SourceRuns:
    return SourceRuns(source, succeeded, failed, int(rows), int(problems), tuple(read_at or ()))


class PostgresRunStore(TableStore[Run], RunStore):
    """Runs of the tenant, with the trace context to which later work such as deliveries is linked."""

    _sql, _table = SQL, RUNS
    list_summaries = fetch_all(_build_summary, max_runs=MAX_LISTED_SUMMARIES)
    summarise_by_source = fetch_all(_build_source_runs, max_runs=MAX_COUNTED_RUNS)
    list_open_checks = fetch_all(RUNS.build_from_row)
    list_open_reviews = fetch_all(OpenReview)
    count_by_day = fetch_all(RunDay, max_runs=MAX_COUNTED_RUNS)

    async def add(self, row: Run, **more: Any) -> None:
        await super().add(row, trace=self._session.trace, **more)

    async def save(self, row: Run, *, expected_version: int | None = None, **more: Any) -> None:
        if self._session.trace is not None:
            more["trace"] = self._session.trace
        await super().save(row, expected_version=expected_version, **more)

    async def find_open(self, source: str, stream: Stream | None = None) -> Run | None:
        return await self._find_newest(source, stream, OPEN_STATUSES, "not_stock_check")

    async def find_last_successful(self, source: str, stream: Stream) -> Run | None:
        return await self._find_newest(source, stream, [RunStatus.SUCCEEDED], "has_snapshot")

    async def list_newest(self, sources: Collection[str], *, ended: bool = False) -> Sequence[RunSummary]:
        statement = render_statement(SQL["list_newest"], frozenset({"ended"} if ended else ()))
        rows = await self._session.fetch_rows(statement, sources=list(sources))
        return [_build_summary(*row) for row in rows]

    async def list_replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        mapped_next = await self._find_newest(source, stream, [RunStatus.NEEDS_MAPPING], "has_snapshot")
        return list_replayable_runs(mapped_next, await self.find_last_successful(source, stream))

    async def find_run_over_removal_limit(self, source: str, stream: Stream) -> Run | None:
        ended = await self._find_newest(source, stream, SUCCEEDED_OR_FAILED_STATUSES, "has_snapshot")
        return ended if ended is not None and ended.has_exceeded_removal_limit else None

    async def find_last_succeeded_or_failed(self, source: str, stream: Stream) -> Run | None:
        return await self._find_newest(source, stream, SUCCEEDED_OR_FAILED_STATUSES, "is_import")

    async def _find_newest(
        self, source: str, stream: Stream | None, statuses: Collection[RunStatus], restriction: str
    ) -> Run | None:
        """Return the newest run of a source with one of the statuses, or None.

        Args:
            source: ID of the source.
            stream: The run's stream; None for both.
            statuses: Permitted statuses.
            restriction: Name of the statement's optional line that restricts the runs: `has_snapshot` to runs with a
                stored file, `not_stock_check` to all except stock checks, and `is_import` to all except stock checks
                and applications of category rules.
        """
        statement = render_statement(
            SQL["find_newest_run"], frozenset({"stream", restriction} if stream else {restriction})
        )
        row = await self._session.fetch_row(statement, source=source, stream=stream, statuses=sorted(statuses))
        return self._table.build_from_row(*row) if row else None


class PostgresPushStore(TenantStore, PushStore):
    """Pushed parts of the tenant's batches, each the records of one call."""

    _sql = SQL
    find_collecting = fetch_first(RUNS.build_from_row, status=RunStatus.QUEUED, trigger=RunTrigger.PUSH)
    find_newest = fetch_first(RUNS.build_from_row, "find_newest_batch")
    get_part = fetch_scalar()

    async def add_part(self, run: str, part_number: int, records: bytes, free_after: datetime | None = None) -> bool:
        params = {"run": run, "sequence": part_number, "records": records, "bytes": len(records) + 1, "meter": METER}
        if await self._run("add_part", **params) != 1:
            return False
        if free_after is not None:
            key = build_push_key(self._session.tenant, run)
            entry = {"key": key, "kind": StoredKind.PUSH, "free_after": free_after}
            await self._run("save_batch_entry", run=run, **entry)
        return True

    async def delete_parts(self, run: str) -> None:
        await self._run("delete_parts", run=run, key=build_push_key(self._session.tenant, run))


class PostgresExportStore(TableStore[Export], ExportStore):
    """Exports of the tenant."""

    _sql, _table = SQL, EXPORTS
    count_open = fetch_first(int, "count_open_exports", open=sorted(OPEN_EXPORTS))
    list_with_files = fetch_all(EXPORTS.build_from_row, "list_exports_with_files", status=ExportStatus.SUCCEEDED)

    async def lock_creation(self) -> None:
        await self._session.acquire_lock("exports")


class PostgresExportMaintenance(CoordinatorStore, ExportUpkeep):
    """Exports of all tenants that are waiting or must expire, for the scheduler."""

    _sql = SQL
    list_due = gather_due("list_due_exports")
    find_oldest_waiting = gather_earliest()


class PostgresScheduledExportStore(TableStore[ScheduledExport], ScheduledExportStore):
    """Scheduled exports of the tenant."""

    _sql, _table = SQL, SCHEDULED_EXPORTS
    count = fetch_first(int, "count_scheduled_exports")

    async def lock_creation(self) -> None:
        await self._session.acquire_lock("scheduled exports")


class PostgresScheduledExportMaintenance(CoordinatorStore, ScheduledExportUpkeep):
    """Scheduled exports of all tenants that are due, for the scheduler."""

    _sql = SQL
    list_due = gather_due("list_due_scheduled_exports")
