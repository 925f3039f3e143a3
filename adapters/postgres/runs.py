"""Runs in PostgreSQL."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.session import Session, jsonb
from adapters.postgres.sqlfile import rendered, statements
from domain.catalogue.model import Stream
from domain.kernel.paging import Page, PageRequest
from domain.kernel.problems import Problem
from domain.runs.model import (
    CONCLUDED,
    OPEN,
    Checkpoint,
    Fetched,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    RunStatus,
    RunTrigger,
    UploadInput,
    Waiting,
    WaitingReason,
)

SQL = statements("runs")
_FIELDS = tuple(field.name for field in fields(Run))
"""As the columns of SQL["list"] are ordered."""


def _run(row: tuple[Any, ...]) -> Run:
    values = dict(zip(_FIELDS, row, strict=True))
    error, waiting, fetched, checkpoint = (values[name] for name in ("error", "waiting", "fetched", "checkpoint"))
    values |= {
        "trigger": RunTrigger(values["trigger"]),
        "stream": Stream(values["stream"]),
        "status": RunStatus(values["status"]),
        "stage": RunStage(values["stage"]),
        "error": error and RunError(RunErrorCode(error["code"]), error["message"]),
        "waiting": waiting and _waiting(**waiting),
        "problems": tuple(Problem(**entry) for entry in values["problems"]),
        "input": values["input"] and _input(values["input"]),
        "fetched": fetched and Fetched(**fetched),
        "checkpoint": checkpoint and Checkpoint(**checkpoint),
    }
    return Run(**values)


def _waiting(reason: str, until: str, attempt: int, detail: str) -> Waiting:
    return Waiting(WaitingReason(reason), datetime.fromisoformat(until), attempt, detail)


def _input(value: Mapping[str, Any]) -> UploadInput | PushInput:
    return UploadInput(**value) if "upload" in value else PushInput(**value)


def _values(run: Run) -> dict[str, Any]:
    values = {name: getattr(run, name) for name in _FIELDS}
    for name in ("error", "waiting", "input", "fetched", "checkpoint"):
        values[name] = values[name] and asdict(values[name])
    if run.waiting:
        values["waiting"]["until"] = run.waiting.until.isoformat()
    values["problems"] = [asdict(problem) for problem in run.problems]
    for name in ("stats", "error", "waiting", "problems", "input", "fetched", "checkpoint"):
        values[name] = jsonb(values[name])
    return values


class PostgresRunStore:
    """The tenant's runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, id: str) -> Run | None:
        """One run."""
        return await self._first({"id"}, id=id)

    async def add(self, run: Run) -> None:
        """Keep a new run. Raises Conflict while another run of the source and stream is open."""
        await self._session.run(SQL["add"], **_values(run))

    async def save(self, run: Run) -> None:
        """Keep the run's new state."""
        await self._session.run(SQL["save"], **_values(run))

    async def page(self, source: str, page_request: PageRequest) -> Page[Run]:
        """A source's runs, newest first."""
        statement = rendered(SQL["list"], page_names(page_request) | {"source"}, page_request.limit + 1)
        rows = await self._session.all(statement, source=source, **page_params(page_request))
        return page_of([_run(row) for row in rows], page_request, lambda run: run.id)

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        """The source's open run of that stream, or of any."""
        names = {"source", "statuses"} | ({"stream"} if stream else set())
        return await self._first(names, source=source, stream=stream, statuses=sorted(OPEN))

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        """The newest succeeded run of the stream that kept a snapshot."""
        names = {"source", "stream", "statuses", "snapshot"}
        return await self._first(names, source=source, stream=stream, statuses=[RunStatus.SUCCEEDED])

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """The newest run of the stream that ended, well or not."""
        names = {"source", "stream", "statuses"}
        return await self._first(names, source=source, stream=stream, statuses=sorted(CONCLUDED))

    async def _first(self, names: set[str], **values: Any) -> Run | None:
        row = await self._session.one(rendered(SQL["list"], frozenset({"forwards", *names}), 1), **values)
        return _run(row) if row else None
