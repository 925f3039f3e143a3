"""The jobs table in PostgreSQL: queued in the tenant's transaction, claimed by lease, fenced by attempt."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncClientCursor

from adapters.postgres.pool import Pool
from adapters.postgres.session import Session, jsonb, lock_number
from adapters.postgres.sqlfile import statements
from domain.jobs.model import LANES_OF_ONE, ClaimedJob, NewJob
from domain.kernel.errors import LeaseLost
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

SQL = statements("jobs")
CHANNEL = "joinery_jobs"


def _of(job: ClaimedJob) -> dict[str, Any]:
    return {"org": job.tenant.org, "livemode": job.tenant.livemode, "id": job.id, "attempt": job.attempt}


class PostgresJobStore:
    """In a tenant's transaction: queue work, finish work, put it off."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, job: NewJob) -> str:
        session, id_ = self._session, new_id("job")
        session.recorded.jobs.append(job)
        added = await session.run(
            SQL["add"],
            id=id_,
            kind=job.kind,
            lane=job.lane,
            key=job.key,
            args=jsonb(job.args),
            run_at=job.run_at or session.now,
            now=session.now,
        )
        if added:
            await session.run("NOTIFY " + CHANNEL)
            return id_
        row = await session.one(SQL["by_key"], kind=job.kind, key=job.key)
        return str(row[0]) if row else id_

    async def hold(self, job: ClaimedJob, lease: timedelta) -> None:
        if not await self._session.run(SQL["renew"], id=job.id, attempt=job.attempt, lease=lease):
            raise LeaseLost

    async def finish(self, job: ClaimedJob) -> None:
        if not await self._session.run(SQL["finish"], id=job.id, attempt=job.attempt):
            raise LeaseLost

    async def put_off(self, job: ClaimedJob, run_at: datetime) -> None:
        if not await self._session.run(SQL["put_off"], id=job.id, attempt=job.attempt, run_at=run_at):
            raise LeaseLost
        await self._session.run("NOTIFY " + CHANNEL)


class PostgresDispatch:
    """Across tenants, each call a transaction of its own: what relay and workers need."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def lanes_due(self, limit: int) -> Sequence[str]:
        return [row[0] for row in await self._rows(SQL["lanes_due"], {"limit": limit, "most": LANES_OF_ONE})]

    async def next_due(self) -> datetime | None:
        moment: datetime | None = (await self._rows(SQL["next_due"], {}))[0][0]
        return moment

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        """Take due jobs of the lane, oldest first, unless another worker holds some of it; attempts rise by one.

        Lock and claim go in one message: a worker that is frozen between two would keep the lane from everybody.
        """
        params = {"lock": lock_number("lane", lane), "lane": lane, "limit": limit, "lease": lease}
        async with self._pool.system() as link, AsyncClientCursor(link.connection) as cursor:
            await cursor.execute(SQL["lock_lane"] + ";" + SQL["claim"], params)
            cursor.nextset()
            rows = sorted(await cursor.fetchall())
        return [
            ClaimedJob(id_, kind, lane_, Tenant(org, livemode), args, attempt, lapsed)
            for id_, kind, lane_, org, livemode, args, attempt, lapsed in rows
        ]

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        return await self._count(SQL["renew"], _of(job) | {"lease": lease}) == 1

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._count(SQL["put_off"], _of(job) | {"run_at": run_at})
        await self._count("NOTIFY " + CHANNEL, {})

    async def reset_dispatched(self) -> None:
        await self._count(SQL["reset_dispatched"], {})

    async def _rows(self, sql: Any, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(sql, values)
            rows: list[tuple[Any, ...]] = await cursor.fetchall()
            return rows

    async def _count(self, sql: Any, values: dict[str, Any]) -> int:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(sql, values)
            return int(cursor.rowcount)
