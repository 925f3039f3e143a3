"""Jobs in PostgreSQL: queued in the tenant's transaction, claimed by lease, fenced by attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncClientCursor

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import jsonb, lock_number
from adapters.postgres.stores import CoordinatorStore, TenantStore, statements, tenant_values
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
from domain.jobs.ports import JobStore
from domain.kernel.clock import now
from domain.kernel.errors import LeaseLost
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

SQL = statements("jobs")
CHANNEL = "joinery_jobs"


def _identity(job: ClaimedJob) -> dict[str, Any]:
    return tenant_values(job.tenant) | {"id": job.id, "attempt": job.attempt}


class PostgresJobStore(TenantStore, JobStore):
    """Job store of the tenant's transaction."""

    _sql = SQL

    async def add(self, job: NewJob) -> str:
        session, id_ = self._session, new_id("job")
        session.recorded.jobs.append(job)
        added = await self._run(
            "add",
            id=id_,
            kind=job.kind,
            lane=job.lane,
            key=job.key,
            args=jsonb(with_trace(job.args, session.trace)),
            run_at=bounded_run_at(job.run_at or session.now, session.now),
        )
        if added:
            await session.run("NOTIFY " + CHANNEL)
            return id_
        return str(await self._value("by_key", id_, kind=job.kind, key=job.key))

    async def hold(self, job: ClaimedJob, lease: timedelta) -> None:
        await self._fenced("renew", job, lease=lease)

    async def finish(self, job: ClaimedJob) -> None:
        await self._fenced("finish", job)

    async def put_off(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._fenced("put_off", job, run_at=bounded_run_at(run_at, self._session.now))
        await self._session.run("NOTIFY " + CHANNEL)

    async def _fenced(self, statement: str, job: ClaimedJob, **values: Any) -> None:
        """Execute a statement on the job if this attempt still holds it. Raises LeaseLost."""
        if not await self._run(statement, id=job.id, attempt=job.attempt, **values):
            raise LeaseLost


@dataclass(frozen=True, slots=True)
class _Due:
    """Lane with due jobs, and the node that has them."""

    node: Node
    turn: int
    at: datetime
    org: str
    lane: str
    lapsed: bool


class PostgresDispatch(CoordinatorStore):
    """Dispatch of jobs across tenants, for relay and workers; each call is its own transaction.

    Due jobs are read from all nodes, and updated on each organisation's node.
    """

    _sql = SQL

    async def lanes_due(self, limit: int) -> Sequence[str]:
        async def find(link: PooledConnection) -> list[_Due]:
            return [
                _Due(link.node, *row)
                for row in await link.rows(link.here(SQL["lanes_due"]), {"limit": limit, "most": LANES_OF_ONE})
            ]

        found = await self._pool.scatter_best_effort(find)
        chosen = sorted((due for dues in found for due in dues), key=lambda due: (due.turn, due.at))[:limit]
        lanes = {(due.org, due.lane) for due in chosen if due.lapsed}
        for node in {due.node for due in chosen}:
            lanes |= await self._mark(node, [due for due in chosen if due.node == node])
        in_order = dict.fromkeys((due.org, due.lane) for due in chosen if (due.org, due.lane) in lanes)
        return [lane_of(org, lane) for org, lane in in_order | dict.fromkeys(lanes)]

    async def _mark(self, node: Node, lanes: Sequence["_Due"]) -> set[tuple[str, str]]:
        """Mark the lanes' jobs as dispatched; return the lanes that no other process has marked."""
        values = {"orgs": [due.org for due in lanes], "lanes": [due.lane for due in lanes]}
        async with self._pool.at(node) as link:
            return {(org, lane) for org, lane in await link.rows(SQL["mark_dispatched"], values)}

    async def next_due(self) -> datetime | None:
        return await self._earliest("next_due")

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        org, name = parted(lane)
        if org is not None:
            claimed = await self._claim(org, name, limit, lease)
            if not claimed and await self._pool.router.has_moved(org):
                claimed = await self._claim(org, name, limit, lease)
            return claimed
        orgs = sorted({owner for (owner,) in await self._gather("orgs_of_lane", lane=name)})
        return [job for org in orgs for job in await self._claim(org, name, limit, lease)]

    async def _claim(self, org: str, lane: str, limit: int, lease: timedelta) -> list[ClaimedJob]:
        """Claim due jobs of the lane, oldest first, unless another worker holds the lane; each attempt is incremented.

        Lock and claim are sent in one message, because a worker that freezes between two would block the lane.
        """
        params = {"lock": lock_number("lane", lane), "org": org, "lane": lane, "limit": limit, "lease": lease}
        node = await self._pool.router.home(org)
        async with self._pool.at(node) as link, AsyncClientCursor(link.connection) as cursor:
            await cursor.execute(SQL["lock_lane"] + ";" + SQL["claim"], params)
            cursor.nextset()
            rows = sorted(await cursor.fetchall())
        return [_claimed(row) for row in rows]

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        return await self._pool.run(job.tenant, SQL["renew"], _identity(job) | {"lease": lease}) == 1

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._pool.run(job.tenant, SQL["put_off"], _identity(job) | {"run_at": bounded_run_at(run_at, now())})
        await self._pool.run(job.tenant, "NOTIFY " + CHANNEL, {})

    async def backlog(self, most: int | None = None) -> Sequence[Backlog]:
        found: dict[str, list[Backlog]] = {}
        remaining = most  # each node returns up to `most`
        for lanes, waiting, held, oldest in await self._gather("backlog", most=most):
            if remaining is not None:
                waiting = min(waiting, remaining)
                held = min(held, remaining - waiting)
                remaining -= waiting + held
            if waiting or held:
                found.setdefault(lanes, []).append(Backlog(lanes, waiting, held, oldest))
        return [Backlog.of(parts) for _, parts in sorted(found.items())]

    async def reset_dispatched(self) -> None:
        await self._pool.scatter_best_effort(_reset)


def _claimed(row: Fetched) -> ClaimedJob:
    id_, kind, lane, org, livemode, stored, attempt, lapsed = row
    args, trace = without_trace(stored)
    return ClaimedJob(id_, kind, lane, Tenant(org, livemode), args, attempt, lapsed, trace)


async def _reset(link: PooledConnection) -> None:
    if orgs := [org for (org,) in await link.rows(link.here(SQL["dispatched"]))]:
        await link.run(SQL["reset_dispatched"], {"orgs": orgs})
