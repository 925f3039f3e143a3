"""What was measured of the service's own health, one row a component and day, and its incidents."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import Any, Final

from psycopg.types.json import Jsonb

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import statements
from domain.kernel.paging import Page, PageRequest
from domain.kernel.plain import plain
from domain.platform.incidents import Incident, IncidentUpdate, OpenedBy
from domain.platform.instances import HEARTBEAT_TIMEOUT, Instance
from domain.platform.model import ComponentState, OperatingFigures
from domain.platform.ports import Check, DayCount
from domain.sources.model import RUNNABLE, STALE_INTERVALS

SQL = statements("platform")
COUNTED: Final = 50_000
"""Most waiting deliveries that are counted on a node."""


class PostgresPlatformChecks:
    """Across tenants; the scheduler writes, everybody reads."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, checks: Sequence[Check]) -> None:
        async with self._pool.system() as link, link.connection.transaction():
            for check in checks:
                values = {
                    "component": check.component,
                    "day": check.at.date(),
                    "passed": int(check.passed),
                    "failed": int(not check.passed),
                    "state": check.state,
                    "at": check.at,
                }
                await link.cursor.execute(SQL["record"], values)

    async def latest(self) -> Sequence[Check]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["latest"])
            rows = await cursor.fetchall()
        return [Check(component, at, ComponentState(state)) for component, at, state in rows]

    async def days(self, since: date) -> Sequence[DayCount]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["days"], {"since": since})
            return [DayCount(*row) for row in await cursor.fetchall()]

    async def forget(self, before: datetime) -> int:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["forget"], {"day": before.date()})
            return int(cursor.rowcount)


class PostgresInstances:
    """Instances."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def beat(self, instance: Instance) -> None:
        async with self._pool.system() as link:
            await link.cursor.execute(SQL["beat"], plain(instance))

    async def leave(self, instance: str) -> None:
        async with self._pool.system() as link:
            await link.cursor.execute(SQL["leave"], {"instance": instance})

    async def list_alive(self) -> Sequence[Instance]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["alive"], {"alive": HEARTBEAT_TIMEOUT})
            return [Instance(*row) for row in await cursor.fetchall()]


class PostgresOperatingFigures:
    """OperatingFiguresReader; the figures of all nodes are added up. A node that does not answer in time is left out."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self) -> OperatingFigures:
        async with self._pool.system() as link:
            row = await (await link.cursor.execute(SQL["figures"])).fetchone()
        assert row is not None
        mails, oldest_mail, backup_age = row
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


async def _figures(link: PooledConnection) -> tuple[Any, ...]:
    values = {"runnable": sorted(RUNNABLE), "stale": STALE_INTERVALS, "counted": COUNTED}
    async with link.connection.transaction():
        await link.cursor.execute("SET LOCAL statement_timeout = '3s'")
        row = await (await link.cursor.execute(link.here(SQL["figures_of_tenants"]), values)).fetchone()
    assert row is not None
    return row


class PostgresIncidents:
    """Incidents."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def open(self) -> Sequence[Incident]:
        return [_incident(row) for row in await self._rows("open_incidents")]

    async def get(self, id: str) -> Incident | None:
        rows = await self._rows("incident", id=id)
        return _incident(rows[0]) if rows else None

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        values = {field.name: getattr(incident, field.name) for field in fields(incident)}
        values["updates"] = Jsonb(plain(incident.updates))
        values["known"] = len(before.updates) if before else 0
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["save_incident"], values)
            return cursor.rowcount == 1

    async def page(self, page_request: PageRequest) -> Page[Incident]:
        rows = await self._rows("incidents", before=page_request.key or "~", limit=page_request.limit + 1)
        found = [_incident(row) for row in rows]
        items, has_more = tuple(found[: page_request.limit]), len(found) > page_request.limit
        return Page(items, has_more, items[-1].id if has_more else None)

    async def _rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL[statement], values)
            return await cursor.fetchall()


def _incident(row: tuple[Any, ...]) -> Incident:
    id_, component, state, title, opened_by, updates, *moments = row
    told = [
        IncidentUpdate(datetime.fromisoformat(one["at"]), ComponentState(one["state"]), one["text"]) for one in updates
    ]
    return Incident(id_, component, ComponentState(state), title, OpenedBy(opened_by), tuple(told), *moments)
