"""Runs in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from adapters.postgres.columns import Column, as_json
from adapters.postgres.sqlfile import rendered, statements
from adapters.postgres.table import Table, TableStore
from domain.catalogue.model import Stream
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
    UploadInput,
    newest_first,
)


def _input(value: Mapping[str, Any]) -> UploadInput | PushInput | CheckInput:
    if "check" in value:
        return CheckInput(**value)
    return UploadInput(**value) if "upload" in value else PushInput(**value)


RUNS: Final = Table(
    Run,
    "runs",
    exceptions={"input": Column("input", as_json, _input)},
    beside={"trace": None},
    conflicts={"runs_open": "The source already has an open run of this stream; wait for it to end."},
)
SQL = statements("runs", run=RUNS.columns())


class PostgresRunStore(TableStore[Run]):
    """The tenant's runs. What follows from one later, such as a delivery, finds in its row what it was traced as."""

    async def add(self, row: Run, **more: Any) -> None:
        await super().add(row, trace=self.session.trace, **more)

    async def save(self, row: Run, *, expected_version: int | None = None, **more: Any) -> None:
        if self.session.trace is not None:
            more["trace"] = self.session.trace
        await super().save(row, expected_version=expected_version, **more)

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        statement = rendered(SQL["newest"], frozenset({"stream", "whole"} if stream else {"whole"}))
        return await self.first(statement, source=source, stream=stream, statuses=sorted(OPEN))

    async def open_checks(self, source: str, limit: int) -> Sequence[Run]:
        found = await self.session.all(SQL["open_checks"], source=source, most=limit)
        return [self.table.row_of(row) for row in found]

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        statement = rendered(SQL["newest"], frozenset({"stream", "snapshot"}))
        return await self.first(statement, source=source, stream=stream, statuses=[RunStatus.SUCCEEDED])

    async def replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        statement = rendered(SQL["newest"], frozenset({"stream", "snapshot"}))
        asked = [RunStatus.NEEDS_MAPPING]
        asking = await self.first(statement, source=source, stream=stream, statuses=asked)
        return newest_first(asking, await self.last_good(source, stream))

    async def refused(self, source: str, stream: Stream) -> Run | None:
        statement = rendered(SQL["newest"], frozenset({"stream", "snapshot"}))
        ended = await self.first(statement, source=source, stream=stream, statuses=sorted(CONCLUDED))
        return ended if ended is not None and ended.was_refused else None

    async def days(self, since: datetime) -> Sequence[RunDay]:
        found = await self.session.all(SQL["days"], since=since, most=MOST_RUNS)
        return [RunDay(*row) for row in found]

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        statement = rendered(SQL["newest"], frozenset({"stream", "read"}))
        return await self.first(statement, source=source, stream=stream, statuses=sorted(CONCLUDED))

    async def newest(self, sources: Collection[str], since: datetime) -> Sequence[NewestRun]:
        found = await self.session.all(SQL["newest_of"], sources=sorted(sources), since=since)
        return [NewestRun(row[0], row[1], RunStatus(row[2])) for row in found]
