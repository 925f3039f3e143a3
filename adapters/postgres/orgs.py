"""Organisations, members and plans in PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import rendered, statements
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Member, Meter, Organisation, Plan

SQL = statements("orgs")


def plan_of(row: tuple[Any, ...]) -> Plan:
    """A plan from the columns code to request_log_days."""
    code, name, tier, currency, monthly, features, meters, delivery_days, log_days = row
    read = {meter: Meter(**numbers) for meter, numbers in meters.items()}
    return Plan(code, name, tier, currency, monthly, frozenset(features), read, delivery_days, log_days)


def organisation_of(row: tuple[Any, ...]) -> Organisation:
    """An organisation from its columns followed by its plan's."""
    id_, name, kind, api_version, live, test, created_at = row[:7]
    return Organisation(id_, name, kind, plan_of(row[7:]), api_version, (live, test), created_at)


class PostgresOrgStore:
    """The tenant's own organisation."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def own(self) -> Organisation:
        row = await self._session.one(SQL["own"], id=self._session.tenant.org)
        assert row is not None, "a tenant without an organisation"
        return organisation_of(row)

    async def add_member(self, member: Member) -> None:
        async with self._session.owning():
            await self._session.run(
                SQL["add_member"],
                user=member.user,
                email=member.email,
                email_key=member.email.casefold(),
                role=member.role,
                created_at=member.created_at,
            )

    async def member(self, email: str) -> Member | None:
        row = await self._session.one(SQL["member"], email_key=email.casefold())
        return Member(*row) if row else None

    async def plans(self) -> Sequence[Plan]:
        return [plan_of(row) for row in await self._session.all(SQL["plans"])]


class PostgresMemberships:
    """Across tenants: a person belongs to many."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of_user(self, user: str, page_request: PageRequest) -> Page[Organisation]:
        statement = rendered(SQL["of_user"], page_names(page_request), page_request.limit + 1)
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(statement, {"user": user, **page_params(page_request)})
            rows = await cursor.fetchall()
        return page_of([organisation_of(row) for row in rows], page_request, lambda organisation: organisation.id)


class PostgresOrgRegistry:
    """Across tenants: for operators."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create(self, organisation: Organisation) -> None:
        values = {
            "id": organisation.id,
            "name": organisation.name,
            "kind": organisation.kind,
            "plan": organisation.plan.code,
            "api_version": organisation.api_version,
            "live": organisation.catalogues[0],
            "test": organisation.catalogues[1],
            "created_at": organisation.created_at,
        }
        async with self._pool.owner() as link:  # processes may not make organisations, nor choose their plans
            await link.cursor.execute(SQL["add"], values)

    async def find(self, id_or_name: str) -> Organisation | None:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["own"], {"id": id_or_name})
            row = await cursor.fetchone()
        if row is not None:
            return organisation_of(row)
        named = await self.named(id_or_name) if id_or_name else ()
        return named[0] if len(named) == 1 else None

    async def named(self, name: str) -> Sequence[Organisation]:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["named"], {"name": name})
            return [organisation_of(row) for row in await cursor.fetchall()]

    async def change_plan(self, id: str, plan: Plan) -> None:
        async with self._pool.owner() as link:
            await link.cursor.execute(SQL["change_plan"], {"id": id, "plan": plan.code})

    async def plan(self, code: str) -> Plan | None:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["plan"], {"code": code})
            row = await cursor.fetchone()
            return plan_of(row) if row else None
