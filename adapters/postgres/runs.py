"""Runs in PostgreSQL."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from adapters.postgres.listing import newest_first, page_of, page_params
from adapters.postgres.session import Fetched, Session, jsonb
from adapters.postgres.sqlfile import statements
from domain.kernel.paging import Page, PageRequest
from domain.kernel.problems import Problem
from domain.runs.model import Run, RunError, Waiting

SQL = statements("runs")
_COLUMNS = (
    "id", "source", "trigger", "stream", "status", "created_at", "stage", "served_by", "stats", "error", "waiting",
    "problems", "started_at", "finished_at", "snapshot", "input", "accept_shrink",
)  # fmt: skip
_NEWEST = " ORDER BY id DESC LIMIT 1"


def _waiting(value: dict[str, Any] | None) -> Waiting | None:
    return Waiting(**(value | {"until": datetime.fromisoformat(value["until"])})) if value else None


def _run(row: Fetched) -> Run:
    values = dict(zip(_COLUMNS, row, strict=True))
    error = values["error"]
    values["error"] = RunError(**error) if error else None
    values["waiting"] = _waiting(values["waiting"])
    values["problems"] = tuple(Problem(**entry) for entry in values["problems"])
    return Run(**values)


def _values(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "source": run.source,
        "trigger": run.trigger,
        "stream": run.stream,
        "status": run.status,
        "stage": run.stage,
        "served_by": run.served_by,
        "stats": jsonb(run.stats),
        "error": jsonb(asdict(run.error)) if run.error else None,
        "waiting": jsonb(asdict(run.waiting) | {"until": run.waiting.until.isoformat()}) if run.waiting else None,
        "problems": jsonb([asdict(problem) for problem in run.problems]),
        "snapshot": run.snapshot,
        "input": jsonb(run.input),
        "accept_shrink": run.accept_shrink,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


class PostgresRunStore:
    """The tenant's runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, id: str) -> Run | None:
        """One run."""
        return await self._first(SQL["columns"] + " AND id = %(id)s", id=id)

    async def add(self, run: Run) -> None:
        """Keep a new run. Raises Conflict while another run of the source and stream is open."""
        await self._session.run(SQL["add"], **_values(run))

    async def save(self, run: Run) -> None:
        """Keep the run's new state."""
        await self._session.run(SQL["save"], **_values(run))

    async def page(self, source: str, page_request: PageRequest) -> Page[Run]:
        """A source's runs, newest first."""
        where, order = newest_first(page_request)
        statement = SQL["columns"] + " AND source = %(source)s" + where + order
        rows = await self._session.all(statement, source=source, **page_params(page_request))
        return page_of([_run(row) for row in rows], page_request, lambda run: run.id)

    async def open(self, source: str, stream: str | None = None) -> Run | None:
        """The source's open run of that stream, or of any."""
        statement = (
            SQL["columns"] + " AND source = %(source)s AND status IN ('queued', 'running', 'waiting')"
            " AND (%(stream)s::text IS NULL OR stream = %(stream)s)"
        )
        return await self._first(statement + _NEWEST, source=source, stream=stream)

    async def last_good(self, source: str, stream: str) -> Run | None:
        """The newest succeeded run of the stream that kept a snapshot."""
        statement = (
            SQL["columns"] + " AND source = %(source)s AND stream = %(stream)s AND status = 'succeeded'"
            " AND snapshot IS NOT NULL"
        )
        return await self._first(statement + _NEWEST, source=source, stream=stream)

    async def last_ended(self, source: str, stream: str) -> Run | None:
        """The newest run of the stream that ended, well or not."""
        statement = (
            SQL["columns"] + " AND source = %(source)s AND stream = %(stream)s AND status IN ('succeeded', 'failed')"
        )
        return await self._first(statement + _NEWEST, source=source, stream=stream)

    async def _first(self, statement: Any, **values: Any) -> Run | None:
        row = await self._session.one(statement, **values)
        return _run(row) if row else None
