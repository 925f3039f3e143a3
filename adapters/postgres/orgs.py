"""Organisations, members and plans in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import rendered, statements
from domain.kernel.mail_addresses import address_key
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Invitation, Invited, Member, Meter, Organisation, Plan

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


def _invitation(row: tuple[Any, ...]) -> Invitation:
    id_, org, email, role, invited_by, digest, *times = row
    return Invitation(id_, org, email, role, invited_by, bytes(digest), *times)


class PostgresOrgStore:
    """The tenant's own organisation."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def own(self) -> Organisation:
        row = await self._session.one(SQL["own"], id=self._session.tenant.org)
        assert row is not None, "a tenant without an organisation"
        return organisation_of(row)

    async def change(self, name: str, api_version: str | None) -> None:
        async with self._session.owning():
            await self._session.run(SQL["change"], name=name, api_version=api_version)

    async def add_member(self, member: Member) -> None:
        async with self._session.owning():
            await self._session.run(
                SQL["add_member"],
                user=member.user,
                email=member.email,
                email_key=address_key(member.email),
                role=member.role,
                created_at=member.created_at,
            )

    async def member(self, email: str) -> Member | None:
        row = await self._session.one(SQL["member"], email_key=address_key(email))
        return Member(*row) if row else None

    async def members(self, page_request: PageRequest) -> Page[Member]:
        statement = rendered(SQL["members"], page_names(page_request), page_request.limit + 1)
        rows = await self._session.all(statement, **page_params(page_request))
        return page_of([Member(*row) for row in rows], page_request, lambda member: member.user)

    async def hold_members(self, users: Collection[str]) -> Mapping[str, Member]:
        async with self._session.owning():
            rows = await self._session.all(SQL["hold_members"], users=list(users))
        return {row[0]: Member(*row) for row in rows}

    async def change_role(self, user: str, role: str) -> None:
        async with self._session.owning():
            await self._session.run(SQL["change_role"], user=user, role=role)

    async def remove_member(self, user: str) -> None:
        async with self._session.owning():
            await self._session.run(SQL["remove_member"], user=user)

    async def invite(self, invitation: Invitation) -> None:
        async with self._session.owning():
            await self._session.run(
                SQL["invite"],
                id=invitation.id,
                email=invitation.email,
                email_key=invitation.email_key,
                role=invitation.role,
                invited_by=invitation.invited_by,
                digest=invitation.digest,
                created_at=invitation.created_at,
                expires_at=invitation.expires_at,
            )

    async def invitations(self, now: datetime, page_request: PageRequest) -> Page[Invitation]:
        statement = rendered(SQL["invitations"], page_names(page_request), page_request.limit + 1)
        rows = await self._session.all(statement, now=now, **page_params(page_request))
        return page_of([_invitation(row) for row in rows], page_request, lambda one: one.id)

    async def invitation(self, id: str) -> Invitation | None:
        async with self._session.owning():
            row = await self._session.one(SQL["invitation"], id=id)
        return _invitation(row) if row else None

    async def settle_invitation(
        self, id: str, *, accepted_at: datetime | None = None, revoked_at: datetime | None = None
    ) -> None:
        async with self._session.owning():
            await self._session.run(SQL["settle_invitation"], id=id, accepted_at=accepted_at, revoked_at=revoked_at)

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

    async def invited(self, digest: bytes) -> Invited | None:
        async with self._pool.reference() as link:
            row = await (await link.cursor.execute(SQL["invited"], {"digest": digest})).fetchone()
        return Invited(_invitation(row[:10]), organisation_of(row[10:])) if row else None

    async def forget_invitations(self, before: datetime) -> int:
        async with self._pool.system() as link, link.connection.transaction(), link.owning():
            return (await link.cursor.execute(SQL["forget_invitations"], {"before": before})).rowcount


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
