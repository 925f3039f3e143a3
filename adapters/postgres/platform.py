"""Health checks, incidents, running processes and workload in PostgreSQL, across tenants.

Expensive statements have a timeout.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.errors import QueryCanceled

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.stores import (
    CoordinatorStore,
    execute_count,
    fetch_all,
    fetch_first,
    fetch_page,
    load_statements,
)
from adapters.postgres.table import RowMapping
from domain.kernel.errors import Unavailable
from domain.kernel.ids import build_uuid7, encode_base62
from domain.kernel.json_values import to_json_value
from domain.kernel.tenancy import Tenant
from domain.platform import workload
from domain.platform.incidents import Incident
from domain.platform.instances import HEARTBEAT_TIMEOUT, Instance
from domain.platform.model import WorkloadMetrics
from domain.platform.ports import ComponentCheck, DayCount, Incidents, Instances, PlatformChecks
from domain.platform.workload import SourceLoad, TenantLoad
from domain.sources.model import RUNNABLE_STATUSES, STALE_INTERVALS, SourceStatus

SQL = load_statements("platform")
MAX_COUNTED_DELIVERIES = 50_000
"""Maximum number of waiting deliveries that are counted on each node."""
_TIMEOUT = "SET LOCAL statement_timeout = '3s'"
TROUBLED_STATUSES = (SourceStatus.DEGRADED, SourceStatus.BLOCKED)
_CHECKS = RowMapping(ComponentCheck)
_INCIDENTS = RowMapping(Incident)


class PostgresPlatformChecks(CoordinatorStore, PlatformChecks):
    """Results of the health checks, which the scheduler makes and stores."""

    _sql = SQL
    list_latest = fetch_all(_CHECKS.build_from_row)
    count_by_day = fetch_all(DayCount)

    async def record(self, checks: Sequence[ComponentCheck]) -> None:
        async with self._begin() as connection:
            for check in checks:
                passed = {"passed": int(check.has_passed), "failed": int(not check.has_passed)}
                values = {**_CHECKS.build_params(check), "day": check.at.date(), **passed}
                await connection.run(SQL["record_check"], values)

    async def delete_before(self, before: datetime) -> int:
        return await self._run("delete_checks", day=before.date())


class PostgresInstances(CoordinatorStore, Instances):
    """Running processes, each with the time of its last heartbeat."""

    _sql = SQL
    record_heartbeat = execute_count(values=to_json_value)
    remove = execute_count()
    list_alive = fetch_all(Instance, alive=HEARTBEAT_TIMEOUT)


class PostgresWorkloadMetrics(CoordinatorStore):
    """Workload metrics, summed over those nodes that respond in time."""

    _sql = SQL

    async def read(self) -> WorkloadMetrics:
        [(mails, oldest_mail, backup_age)] = await self._fetch_rows("read_coordinator_metrics")
        rows = await self._pool.scatter_best_effort(_read_workload)
        scheduled, stale, succeeded, disabled, waiting, oldest, cost = zip(*rows, strict=True)
        return WorkloadMetrics(
            streams_scheduled=sum(scheduled),
            streams_stale=sum(stale),
            last_success_age=min((age for age in succeeded if age is not None), default=None),
            deliveries_waiting=sum(waiting),
            oldest_delivery_age=max(oldest),
            endpoints_disabled=sum(disabled),
            mail_waiting=mails,
            oldest_mail_age=oldest_mail,
            backup_age=backup_age,
            model_cost_dollars=sum(cost),
        )


async def _fetch_rows_with_timeout(connection: PooledConnection, statement: str, **values: Any) -> list[DatabaseRow]:
    """Execute an SQL statement about the tenants on one node, with a timeout of three seconds, and return its rows."""
    async with connection.driver_connection.transaction():
        await connection.run(_TIMEOUT)
        return await connection.fetch_rows(connection.expand_shards(SQL[statement]), values)


async def _read_workload(connection: PooledConnection) -> DatabaseRow:
    values = {"runnable": sorted(RUNNABLE_STATUSES), "stale": STALE_INTERVALS, "max_counted": MAX_COUNTED_DELIVERIES}
    [row] = await _fetch_rows_with_timeout(connection, "read_tenant_metrics", **values)
    return row


class PostgresIncidents(CoordinatorStore, Incidents):
    """Incidents of the service."""

    _sql = SQL
    page = fetch_page(_INCIDENTS.build_from_row, "list_incidents")
    list_open = fetch_all(_INCIDENTS.build_from_row, "list_open_incidents")
    get = fetch_first(_INCIDENTS.build_from_row, "get_incident")

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        known = len(before.updates) if before else 0
        return await self._run("save_incident", **_INCIDENTS.build_params(incident), known=known) == 1


class PostgresWorkload(CoordinatorStore):
    """Workload by tenant and by source, over all nodes."""

    _sql = SQL

    async def list_tenants(self, now: datetime) -> Sequence[TenantLoad]:
        since = now - workload.COUNTED_PERIOD
        milliseconds = int(since.timestamp() * 1000)
        rows = await self._fetch_with_timeout(
            "list_busiest_tenants", day=now.date(), since=since, position=f"{milliseconds:013d}", max_counted=workload.MAX_COUNTED,
            max_examined=workload.MAX_EXAMINED_TENANTS, id=f"dlv_{encode_base62(build_uuid7(milliseconds, 0))}",
        )  # fmt: skip
        busiest = sorted(rows, key=lambda row: (row[4] + row[5], row[2], row[3]), reverse=True)[: workload.MAX_TENANTS]
        async with self._pool.connect_to_any() as connection:
            names = {
                id_: (name, plan)
                for id_, name, plan in await connection.fetch_rows(
                    SQL["list_organisation_names"], {"orgs": sorted({row[0] for row in busiest})}
                )
            }
        return [
            TenantLoad(org, livemode, *names[org], int(records), int(stored), requests, deliveries)
            for org, livemode, records, stored, requests, deliveries in busiest
            if org in names
        ]

    async def list_slowest_sources(self) -> Sequence[SourceLoad]:
        loads = await self._fetch_source_loads("list_slowest_sources", max_examined=workload.MAX_EXAMINED_SOURCES)
        return sorted(loads, key=lambda load: load.seconds or 0.0, reverse=True)[: workload.MAX_SOURCES]

    async def list_failing_sources(self) -> Sequence[SourceLoad]:
        loads = await self._fetch_source_loads("list_failing_sources", statuses=list(TROUBLED_STATUSES))
        return sorted(loads, key=lambda load: load.failures, reverse=True)[: workload.MAX_SOURCES]

    async def find_tenant_of_source(self, id: str) -> Tenant | None:
        rows = await self._fetch_with_timeout("find_tenant_of_source", id=id)
        return Tenant(*rows[0]) if rows else None

    async def _fetch_source_loads(self, statement: str, **values: Any) -> list[SourceLoad]:
        return [
            SourceLoad(*row) for row in await self._fetch_with_timeout(statement, limit=workload.MAX_SOURCES, **values)
        ]

    async def _fetch_with_timeout(self, statement: str, /, **values: Any) -> list[DatabaseRow]:
        async def read(connection: PooledConnection) -> list[DatabaseRow]:
            try:
                return await _fetch_rows_with_timeout(connection, statement, **values)
            except QueryCanceled:
                raise TimeoutError from None

        try:
            rows_by_node = await self._pool.scatter_best_effort(read)
        except TimeoutError:
            raise Unavailable(
                "The query took longer than three seconds. Try again when the database has less load."
            ) from None
        return [row for rows in rows_by_node for row in rows]
