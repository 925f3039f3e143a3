"""Single sign-on in PostgreSQL: what is asked lies on every node, and is written as organisations and members are."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.orgs.model import Member
from domain.sso.model import Connection, Domain, Subject

SQL = statements("sso")


class PostgresSsoStore:
    """SsoStore."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def connection(self) -> Connection | None:
        row = await self._session.one(SQL["connection"])
        return _connection(row) if row else None

    async def save(self, connection: Connection) -> None:
        await self._write("save", _values(connection))

    async def remove(self) -> None:
        await self._write("remove", {})
        await self._write("remove_subjects", {})

    async def domains(self) -> Sequence[Domain]:
        return [Domain(*row) for row in await self._session.all(SQL["domains"])]

    async def put_domain(self, domain: Domain) -> None:
        await self._write("put_domain", _values(domain))

    async def remove_domain(self, domain: str) -> bool:
        return await self._write("remove_domain", {"domain": domain}) == 1

    async def subject(self, issuer: str, subject: str) -> Subject | None:
        row = await self._session.one(SQL["subject"], issuer=issuer, subject=subject)
        return Subject(*row) if row else None

    async def subject_of(self, issuer: str, user: str) -> Subject | None:
        row = await self._session.one(SQL["subject_of"], issuer=issuer, user=user)
        return Subject(*row) if row else None

    async def bind(self, subject: Subject) -> None:
        await self._write("unbind", _values(subject))
        await self._write("bind", _values(subject))

    async def member(self, user: str) -> Member | None:
        row = await self._session.one(SQL["member"], user=user)
        return Member(*row) if row else None

    async def members_of(self, domains: Collection[str]) -> Sequence[Member]:
        return [Member(*row) for row in await self._session.all(SQL["members_of"], domains=list(domains))]

    async def _write(self, statement: str, values: dict[str, Any]) -> int:
        async with self._session.owning():
            return await self._session.run(SQL[statement], **values)


class PostgresSsoDirectory:
    """SsoDirectory."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of_domain(self, domain: str) -> Connection | None:
        async with self._pool.reference() as link:
            row = await (await link.cursor.execute(SQL["of_domain"], {"domain": domain})).fetchone()
        return _connection(row) if row else None

    async def due(self, before: datetime, limit: int) -> Sequence[Domain]:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["due"], {"before": before, "limit": limit})
            return [Domain(*row) for row in await cursor.fetchall()]


def _values(kept: Connection | Domain | Subject) -> dict[str, Any]:
    return {field.name: getattr(kept, field.name) for field in fields(kept) if field.name != "org"}


def _connection(row: tuple[Any, ...]) -> Connection:
    org, issuer, client_id, sealed, *rest = row
    return Connection(org, issuer, client_id, bytes(sealed), *rest)
