"""People, their sessions and their links in PostgreSQL: they lie in one place, with the coordinator."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from adapters.postgres.coordinator_store import CoordinatorStore, Row
from adapters.postgres.orgs import organisation_of
from adapters.postgres.sqlfile import statements
from domain.access.model import ROLES, Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.people.model import (
    Method,
    OneTimeLink,
    Purpose,
    SecurityEvent,
    Session,
    SessionKind,
    SignedIn,
    User,
    email_key,
)
from domain.sso.model import is_barred

SQL = statements("people")


class _People(CoordinatorStore):
    """With these statements."""

    _sql = SQL


class PostgresPeople(_People):
    """People."""

    async def get(self, id: str) -> User | None:
        rows = await self._rows("user", id=id)
        return User(*rows[0]) if rows else None

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        return {row[0]: User(*row) for row in await self._rows("several", ids=list(ids))}

    async def by_email(self, email: str) -> User | None:
        rows = await self._rows("by_email", email_key=email_key(email))
        return User(*rows[0]) if rows else None

    async def add(self, user: User) -> User:
        values = {field.name: getattr(user, field.name) for field in fields(user)}
        if await self._run("add_user", **values, email_key=user.email_key):
            return user
        return await self.by_email(user.email) or user

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        values = {field.name: getattr(user, field.name) for field in fields(user)}
        return await self._run("set_up_user", **values, email_key=user.email_key, password=encoded, now=now) == 1

    async def change(self, user: User) -> None:
        await self._run("change_user", id=user.id, name=user.name, verified_at=user.verified_at)

    async def password(self, user: str) -> str | None:
        rows = await self._rows("password", id=user)
        return rows[0][0] if rows else None

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        await self._run("set_password", id=user, password=encoded, now=now)

    async def note(self, event: SecurityEvent) -> None:
        await self._run("note", **{field.name: getattr(event, field.name) for field in fields(event)})

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        return [SecurityEvent(*row) for row in await self._rows("events", user=user, limit=limit)]

    async def forget_events(self, before: datetime) -> int:
        return await self._run("forget_events", before=before)


class PostgresSessions(_People):
    """Sessions."""

    async def add(self, session: Session) -> None:
        await self._run("add_session", **_values(session))

    async def find(self, digest: bytes) -> SignedIn | None:
        found = await self._found([digest])
        return found[0] if found else None

    async def of_user(self, user: str) -> Sequence[Session]:
        return [_session(row) for row in await self._rows("sessions_of", user=user)]

    async def save(self, session: Session) -> None:
        await self._run("save_session", **_values(session))

    async def seen(self, id: str, now: datetime) -> None:
        await self._run("seen_session", id=id, now=now)

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        return await self._run("revoke_sessions", ids=list(ids), now=now)

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {
            one.session.digest: (one.session, one.principal)
            for one in await self._found(digests)
            if one.principal is not None and one.session.kind is SessionKind.TOKEN
        }

    async def forget(self, before: datetime) -> int:
        return await self._run("forget_sessions", before=before) + await self._run("forget_links", before=before)

    async def _found(self, digests: Collection[bytes]) -> list[SignedIn]:
        return [
            _signed_in(row) for row in await self._rows("found", digests=list(digests), token=str(SessionKind.TOKEN))
        ]


class PostgresOneTimeLinks(_People):
    """OneTimeLinks."""

    async def add(self, link: OneTimeLink) -> None:
        values = {field.name: getattr(link, field.name) for field in fields(link)}
        async with self._pool.system() as system, system.connection.transaction():
            await system.cursor.execute(SQL["supersede_links"], values)
            await system.cursor.execute(SQL["add_link"], values)

    async def withdraw(self, user: str) -> None:
        await self._run("withdraw_links", user=user)

    async def find(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        return await self._link("link", digest=digest, purpose=purpose, now=now)

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        return await self._link("use_link", digest=digest, purpose=purpose, now=now)

    async def _link(self, statement: str, **values: Any) -> OneTimeLink | None:
        row = await self._one(statement, **values)
        if row is None:
            return None
        digest, purpose, *rest = row
        return OneTimeLink(bytes(digest), Purpose(purpose), *rest)


def _values(session: Session) -> dict[str, Any]:
    values = {field.name: getattr(session, field.name) for field in fields(session)}
    return values | {"methods": [str(method) for method in session.methods], "kind": str(session.kind)}


def _session(row: Row) -> Session:
    id_, user, org, livemode, digest, kind, methods, *rest = row
    return Session(
        id_, user, org, livemode, bytes(digest), SessionKind(kind), tuple(Method(one) for one in methods), *rest
    )


def _signed_in(row: Row) -> SignedIn:
    session, user, role, obliged = _session(row[:14]), User(*row[14:19]), row[19], row[20]
    if role is None or (obliged and is_barred(role, session.methods)):
        return SignedIn(session, user, None)
    return SignedIn(session, user, Principal(
        tenant=Tenant(row[21], session.livemode), actor=Actor("user", user.id), via="console", role=role, scopes=ROLES[role],
        organisation=organisation_of(row[21:]), person=True, session=True, mode_fixed=False,
    ))  # fmt: skip
