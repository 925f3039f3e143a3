"""Health checks, incidents, running processes and workload, across tenants; expensive statements have a timeout."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.errors import QueryCanceled

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.stores import CoordinatorStore, every, first, paged, run, statements
from adapters.postgres.table import Record
from domain.kernel.errors import Unavailable
from domain.kernel.ids import encode, uuid7
from domain.kernel.plain import plain
from domain.kernel.tenancy import Tenant
from domain.platform import workload
from domain.platform.incidents import Incident
from domain.platform.instances import HEARTBEAT_TIMEOUT, Instance
from domain.platform.model import OperatingFigures
from domain.platform.ports import Check, DayCount, Incidents, Instances, PlatformChecks
from domain.platform.workload import SourceLoad, TenantLoad
from domain.sources.model import RUNNABLE, STALE_INTERVALS, SourceStatus

SQL = statements("platform")
COUNTED = 50_000
"""Maximum number of waiting deliveries that are counted per node."""
_TIMEOUT = "SET LOCAL statement_timeout = '3s'"
TROUBLED = (SourceStatus.DEGRADED, SourceStatus.BLOCKED)
_CHECKS = Record(Check)
_INCIDENTS = Record(Incident)


class PostgresPlatformChecks(CoordinatorStore, PlatformChecks):
    """Results of health checks; the scheduler writes them."""

    _sql = SQL
    latest = every(_CHECKS.row_of)
    days = every(DayCount)

    async def record(self, checks: Sequence[Check]) -> None:
        async with self._transaction() as link:
            for check in checks:
                passed = {"passed": int(check.passed), "failed": int(not check.passed)}
                values = {**_CHECKS.values(check), "day": check.at.date(), **passed}
                await link.run(SQL["record"], values)

    async def forget(self, before: datetime) -> int:
        return await self._run("forget", day=before.date())


class PostgresInstances(CoordinatorStore, Instances):
    """Running processes by heartbeat."""

    _sql = SQL
    beat = run(values=plain)
    leave = run()
    list_alive = every(Instance, "alive", alive=HEARTBEAT_TIMEOUT)


class PostgresOperatingFigures(CoordinatorStore):
    """Operating figures, summed over the nodes that answer in time."""

    _sql = SQL

    async def read(self) -> OperatingFigures:
        [(mails, oldest_mail, backup_age)] = await self._rows("figures")
        rows = await self._pool.scatter_best_effort(_figures)
        scheduled, stale, succeeded, disabled, waiting, oldest, cost = zip(*rows, strict=True)
        return OperatingFigures(
            sources_scheduled=sum(scheduled),
            sources_stale=sum(stale),
            last_success_age=min((age for age in succeeded if age is not None), default=None),
            deliveries_waiting=sum(waiting),
            oldest_delivery_age=max(oldest),
            endpoints_disabled=sum(disabled),
            mail_waiting=mails,
            oldest_mail_age=oldest_mail,
            backup_age=backup_age,
            model_cost_dollars=sum(cost),
        )


async def _rows_with_timeout(link: PooledConnection, statement: str, **values: Any) -> list[Fetched]:
    """Return the rows of a statement about the tenants on a node, with a timeout of three seconds."""
    async with link.connection.transaction():
        await link.run(_TIMEOUT)
        return await link.rows(link.here(SQL[statement]), values)


async def _figures(link: PooledConnection) -> Fetched:
    values = {"runnable": sorted(RUNNABLE), "stale": STALE_INTERVALS, "counted": COUNTED}
    [row] = await _rows_with_timeout(link, "figures_of_tenants", **values)
    return row


class PostgresIncidents(CoordinatorStore, Incidents):
    """Incidents of the service."""

    _sql = SQL
    page = paged(_INCIDENTS.row_of, "incidents")
    open = every(_INCIDENTS.row_of, "open_incidents")
    get = first(_INCIDENTS.row_of, "incident")

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        known = len(before.updates) if before else 0
        return await self._run("save_incident", **_INCIDENTS.values(incident), known=known) == 1


class PostgresWorkload(CoordinatorStore):
    """Workload by tenant and source."""

    _sql = SQL

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        since = now - workload.WINDOW
        milliseconds = int(since.timestamp() * 1000)
        rows = await self._read(
            "tenants", day=now.date(), since=since, position=f"{milliseconds:013d}", counted=workload.COUNTED,
            looked=workload.LOOKED_AT, id=f"dlv_{encode(uuid7(milliseconds, 0))}",
        )  # fmt: skip
        busiest = sorted(rows, key=lambda row: (row[4] + row[5], row[2], row[3]), reverse=True)[: workload.TENANTS]
        async with self._pool.any_node() as link:
            names = {
                id_: (name, plan)
                for id_, name, plan in await link.rows(SQL["names"], {"orgs": sorted({row[0] for row in busiest})})
            }
        return [
            TenantLoad(org, livemode, *names[org], int(records), int(stored), requests, deliveries)
            for org, livemode, records, stored, requests, deliveries in busiest
            if org in names
        ]

    async def slowest(self) -> Sequence[SourceLoad]:
        loads = await self._sources("slowest", looked=workload.LOOKED_SOURCES)
        return sorted(loads, key=lambda load: load.seconds or 0.0, reverse=True)[: workload.SOURCES]

    async def troubled(self) -> Sequence[SourceLoad]:
        loads = await self._sources("troubled", statuses=list(TROUBLED))
        return sorted(loads, key=lambda load: load.failures, reverse=True)[: workload.SOURCES]

    async def tenant_of_source(self, id: str) -> Tenant | None:
        rows = await self._read("tenant_of_source", id=id)
        return Tenant(*rows[0]) if rows else None

    async def _sources(self, statement: str, **values: Any) -> list[SourceLoad]:
        return [SourceLoad(*row) for row in await self._read(statement, limit=workload.SOURCES, **values)]

    async def _read(self, statement: str, /, **values: Any) -> list[Fetched]:
        async def read(link: PooledConnection) -> list[Fetched]:
            try:
                return await _rows_with_timeout(link, statement, **values)
            except QueryCanceled:  # the timeout, on a reachable node
                raise TimeoutError from None

        try:
            parts = await self._pool.scatter_best_effort(read)
        except TimeoutError:
            raise Unavailable("The query took longer than three seconds.") from None
        return [row for rows in parts for row in rows]
