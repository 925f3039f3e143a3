"""The jobs table in PostgreSQL: queued in the tenant's transaction, claimed by lease, fenced by attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncClientCursor

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import Session, jsonb, lock_number
from adapters.postgres.sqlfile import statements
from domain.jobs.model import (
    LANES_OF_ONE,
    Backlog,
    ClaimedJob,
    NewJob,
    bounded_run_at,
    lane_of,
    parted,
    with_trace,
    without_trace,
)
from domain.kernel.clock import now
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
            args=jsonb(with_trace(job.args, session.trace)),
            run_at=bounded_run_at(job.run_at or session.now, session.now),
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
        if not await self._session.run(
            SQL["put_off"], id=job.id, attempt=job.attempt, run_at=bounded_run_at(run_at, self._session.now)
        ):
            raise LeaseLost
        await self._session.run("NOTIFY " + CHANNEL)


@dataclass(frozen=True, slots=True)
class _Due:
    """A lane with due jobs, and the node where they were found."""

    node: Node
    turn: int
    at: datetime
    org: str
    lane: str
    lapsed: bool


class PostgresDispatch:
    """Across tenants, each call a transaction of its own: what relay and workers need.

    What is due is read node by node, and written where each organisation is.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def lanes_due(self, limit: int) -> Sequence[str]:
        async def look(link: PooledConnection) -> list[_Due]:
            cursor = await link.cursor.execute(link.here(SQL["lanes_due"]), {"limit": limit, "most": LANES_OF_ONE})
            return [_Due(link.node, *row) for row in await cursor.fetchall()]

        found = await self._pool.scatter_best_effort(look)
        chosen = sorted((due for dues in found for due in dues), key=lambda due: (due.turn, due.at))[:limit]
        given = {(due.org, due.lane) for due in chosen if due.lapsed}
        for node in {due.node for due in chosen}:
            given |= await self._mark(node, [due for due in chosen if due.node == node])
        told = dict.fromkeys((due.org, due.lane) for due in chosen if (due.org, due.lane) in given)
        return [lane_of(org, lane) for org, lane in told | dict.fromkeys(given)]

    async def _mark(self, node: Node, lanes: Sequence["_Due"]) -> set[tuple[str, str]]:
        """Mark the jobs of these lanes as dispatched; answers those lanes that nobody else was quicker with."""
        values = {"orgs": [due.org for due in lanes], "lanes": [due.lane for due in lanes]}
        async with self._pool.at(node) as link:
            cursor = await link.cursor.execute(SQL["mark_dispatched"], values)
            return {(org, lane) for org, lane in await cursor.fetchall()}

    async def next_due(self) -> datetime | None:
        found = await self._pool.scatter_best_effort(reading(SQL["next_due"]))
        return min((rows[0][0] for rows in found if rows[0][0] is not None), default=None)

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        org, name = parted(lane)
        if org is not None:
            claimed = await self._claim(org, name, limit, lease)
            if not claimed and await self._pool.has_moved(org):
                claimed = await self._claim(org, name, limit, lease)
            return claimed
        owners = await self._pool.scatter_best_effort(reading(SQL["orgs_of_lane"], lane=name))
        orgs = sorted({row[0] for rows in owners for row in rows})
        return [job for org in orgs for job in await self._claim(org, name, limit, lease)]

    async def _claim(self, org: str, lane: str, limit: int, lease: timedelta) -> list[ClaimedJob]:
        """Take due jobs of the lane, oldest first, unless another worker holds some of it; attempts rise by one.

        Lock and claim go in one message: a worker that is frozen between two would keep the lane from everybody.
        """
        params = {"lock": lock_number("lane", lane), "org": org, "lane": lane, "limit": limit, "lease": lease}
        async with self._pool.home(org) as link, AsyncClientCursor(link.connection) as cursor:
            await cursor.execute(SQL["lock_lane"] + ";" + SQL["claim"], params)
            cursor.nextset()
            rows = sorted(await cursor.fetchall())
        return [_claimed(*row) for row in rows]

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        return await self._pool.run(job.tenant, SQL["renew"], _of(job) | {"lease": lease}) == 1

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._pool.run(job.tenant, SQL["put_off"], _of(job) | {"run_at": bounded_run_at(run_at, now())})
        await self._pool.run(job.tenant, "NOTIFY " + CHANNEL, {})

    async def backlog(self, most: int | None = None) -> Sequence[Backlog]:
        found: dict[str, list[Backlog]] = {}
        left = most  # each node answers up to `most`
        for rows in await self._pool.scatter_best_effort(reading(SQL["backlog"], most=most)):
            for lanes, waiting, held, oldest in rows:
                if left is not None:
                    waiting = min(waiting, left)
                    held = min(held, left - waiting)
                    left -= waiting + held
                if waiting or held:
                    found.setdefault(lanes, []).append(Backlog(lanes, waiting, held, oldest))
        return [Backlog.of(parts) for _, parts in sorted(found.items())]

    async def reset_dispatched(self) -> None:
        await self._pool.scatter_best_effort(_reset)


def _claimed(
    id_: str, kind: str, lane: str, org: str, livemode: bool, stored: Mapping[str, Any], attempt: int, lapsed: bool
) -> ClaimedJob:
    args, trace = without_trace(stored)
    return ClaimedJob(id_, kind, lane, Tenant(org, livemode), args, attempt, lapsed, trace)


async def _reset(link: PooledConnection) -> None:
    cursor = await link.cursor.execute(link.here(SQL["dispatched"]))
    if orgs := [org for (org,) in await cursor.fetchall()]:
        await link.cursor.execute(SQL["reset_dispatched"], {"orgs": orgs})
