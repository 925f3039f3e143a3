"""Jobs in PostgreSQL: added in the tenant's transaction, and claimed by workers for the duration of a lease.

Jobs of one lane (such as all jobs of a source) run one after the other. SQL statements of an attempt that has lost the
job's lease have no effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncClientCursor

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import compute_lock_number, encode_jsonb
from adapters.postgres.stores import CoordinatorStore, TenantStore, build_tenant_params, load_statements
from domain.jobs.model import (
    MAX_LANES_PER_ORG,
    Backlog,
    ClaimedJob,
    NewJob,
    build_lane_name,
    limit_run_at,
    split_lane_name,
    split_trace,
    with_trace,
)
from domain.jobs.ports import JobStore
from domain.kernel.clock import now
from domain.kernel.errors import LeaseLost
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

SQL = load_statements("jobs")
CHANNEL = "joinery_jobs"


def _build_job_params(job: ClaimedJob) -> dict[str, Any]:
    return build_tenant_params(job.tenant) | {"id": job.id, "attempt": job.attempt}


class PostgresJobStore(TenantStore, JobStore):
    """Job store of the tenant, for adding and updating jobs in the tenant's transaction."""

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
            args=encode_jsonb(with_trace(job.args, session.trace)),
            run_at=limit_run_at(job.run_at or session.now, session.now),
        )
        if added:
            await session.run("NOTIFY " + CHANNEL)
            return id_
        return str(await self._fetch_scalar("find_by_key", id_, kind=job.kind, key=job.key))

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> None:
        await self._run_fenced("renew_lease", job, lease=lease)

    async def finish(self, job: ClaimedJob) -> None:
        await self._run_fenced("finish", job)

    async def reschedule(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._run_fenced("reschedule", job, run_at=limit_run_at(run_at, self._session.now))
        await self._session.run("NOTIFY " + CHANNEL)

    async def _run_fenced(self, statement: str, job: ClaimedJob, **values: Any) -> None:
        """Execute an SQL statement on the job if this attempt still holds the job's lease. Raises LeaseLost otherwise."""
        if not await self._run(statement, id=job.id, attempt=job.attempt, **values):
            raise LeaseLost


@dataclass(frozen=True, slots=True)
class _DueLane:
    """Lane (group of jobs that run one after the other) with due jobs.

    Attributes:
        node: Node that stores the jobs.
        rank: Rank of the lane among the due lanes of its organisation, from 1.
        at: Earliest due time of the jobs.
        org: Organisation of the jobs.
        lane: Name of the lane.
        has_expired_lease: Whether the lease of a job has expired.
    """

    node: Node
    rank: int
    at: datetime
    org: str
    lane: str
    has_expired_lease: bool


class PostgresDispatch(CoordinatorStore):
    """Dispatch of the jobs of all tenants, for the relay and the workers. Each call is a separate transaction.

    Due jobs are read on all nodes, and updated on the node of their organisation.
    """

    _sql = SQL

    async def dispatch_due_lanes(self, limit: int) -> Sequence[str]:
        async def find(connection: PooledConnection) -> list[_DueLane]:
            return [
                _DueLane(connection.node, *row)
                for row in await connection.fetch_rows(
                    connection.expand_shards(SQL["list_due_lanes"]), {"limit": limit, "max_lanes": MAX_LANES_PER_ORG}
                )
            ]

        found = await self._pool.scatter_best_effort(find)
        chosen = sorted((due for dues in found for due in dues), key=lambda due: (due.rank, due.at))[:limit]
        lanes = {(due.org, due.lane) for due in chosen if due.has_expired_lease}
        for node in {due.node for due in chosen}:
            lanes |= await self._mark_dispatched(node, [due for due in chosen if due.node == node])
        in_order = dict.fromkeys((due.org, due.lane) for due in chosen if (due.org, due.lane) in lanes)
        return [build_lane_name(org, lane) for org, lane in in_order | dict.fromkeys(lanes)]

    async def _mark_dispatched(self, node: Node, lanes: Sequence["_DueLane"]) -> set[tuple[str, str]]:
        """Mark the due jobs of lanes as dispatched.

        Returns:
            Organisation and name of each lane, except lanes whose jobs another process had already marked.
        """
        values = {"orgs": [due.org for due in lanes], "lanes": [due.lane for due in lanes]}
        async with self._pool.connect_to(node) as connection:
            return {(org, lane) for org, lane in await connection.fetch_rows(SQL["mark_dispatched"], values)}

    async def find_next_due(self) -> datetime | None:
        return await self._gather_earliest("find_next_due")

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        org, name = split_lane_name(lane)
        if org is not None:
            claimed = await self._claim_on_node(org, name, limit, lease)
            if not claimed and await self._pool.router.has_moved(org):
                claimed = await self._claim_on_node(org, name, limit, lease)
            return claimed
        orgs = sorted({owner for (owner,) in await self._gather("list_orgs_of_lane", lane=name)})
        return [job for org in orgs for job in await self._claim_on_node(org, name, limit, lease)]

    async def _claim_on_node(self, org: str, lane: str, limit: int, lease: timedelta) -> list[ClaimedJob]:
        """Claim the lane's due jobs, oldest first, and increment their attempts; claim none if a worker holds the lane."""
        params = {"lock": compute_lock_number("lane", lane), "org": org, "lane": lane, "limit": limit, "lease": lease}
        node = await self._pool.router.find_node(org)
        async with self._pool.connect_to(node) as connection, AsyncClientCursor(connection.driver_connection) as cursor:
            # one message, because a worker that freezes between lock and claim would block the lane
            await cursor.execute(SQL["lock_lane"] + ";" + SQL["claim"], params)
            cursor.nextset()
            rows = sorted(await cursor.fetchall())
        return [_build_claimed_job(row) for row in rows]

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> bool:
        return await self._pool.run(job.tenant, SQL["renew_lease"], _build_job_params(job) | {"lease": lease}) == 1

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        await self._pool.run(
            job.tenant, SQL["reschedule"], _build_job_params(job) | {"run_at": limit_run_at(run_at, now())}
        )
        await self._pool.run(job.tenant, "NOTIFY " + CHANNEL, {})

    async def count_backlog(self, max_jobs: int | None = None) -> Sequence[Backlog]:
        found: dict[str, list[Backlog]] = {}
        remaining = max_jobs  # each node counts up to `max_jobs`
        for lanes, waiting, running, oldest in await self._gather("count_backlog", max_jobs=max_jobs):
            if remaining is not None:
                waiting = min(waiting, remaining)
                running = min(running, remaining - waiting)
                remaining -= waiting + running
            if waiting or running:
                found.setdefault(lanes, []).append(Backlog(lanes, waiting, running, oldest))
        return [Backlog.combine(parts) for _, parts in sorted(found.items())]

    async def reset_dispatched(self) -> None:
        await self._pool.scatter_best_effort(_reset_dispatched_on)


def _build_claimed_job(row: DatabaseRow) -> ClaimedJob:
    id_, kind, lane, org, livemode, stored, attempt, has_expired_lease = row
    args, trace = split_trace(stored)
    return ClaimedJob(id_, kind, lane, Tenant(org, livemode), args, attempt, has_expired_lease, trace)


async def _reset_dispatched_on(connection: PooledConnection) -> None:
    if orgs := [
        org for (org,) in await connection.fetch_rows(connection.expand_shards(SQL["list_orgs_with_dispatched"]))
    ]:
        await connection.run(SQL["reset_dispatched"], {"orgs": orgs})
