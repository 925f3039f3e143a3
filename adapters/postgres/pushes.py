"""The parts of pushed batches in PostgreSQL."""

from datetime import datetime

from adapters.postgres.runs import RUNS
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.runs.model import Run, RunStatus, RunTrigger
from domain.storage.model import METER, StoredKind, push_key

SQL = statements("pushes", run=RUNS.columns())


class PostgresPushStore:
    """The tenant's pushed parts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def collecting(self, source: str, batch: str) -> Run | None:
        where = {"source": source, "batch": batch, "status": RunStatus.QUEUED, "trigger": RunTrigger.PUSH}
        row = await self._session.one(SQL["collecting"], **where)
        return RUNS.row_of(row) if row else None

    async def newest(self, source: str, batch: str) -> Run | None:
        row = await self._session.one(SQL["newest"], source=source, batch=batch)
        return RUNS.row_of(row) if row else None

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime | None = None) -> bool:
        part = {"run": run, "sequence": sequence, "records": records, "bytes": len(records) + 1, "meter": METER}
        if await self._session.run(SQL["add_part"], **part) != 1:
            return False
        if free_after is not None:
            key = push_key(self._session.tenant, run)
            entry = {"key": key, "kind": StoredKind.PUSH, "free_after": free_after, "now": self._session.now}
            await self._session.run(SQL["keep_batch"], run=run, **entry)
        return True

    async def part(self, run: str, sequence: int) -> bytes | None:
        row = await self._session.one(SQL["part"], run=run, sequence=sequence)
        return row[0] if row else None

    async def forget(self, run: str) -> None:
        await self._session.run(SQL["forget"], run=run, key=push_key(self._session.tenant, run))
