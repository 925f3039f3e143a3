"""Single sign-on in memory."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from adapters.memory.orgs import MEMBERS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction
from domain.orgs.model import Member
from domain.sso.model import Connection, Domain, Subject, domain_of

CONNECTIONS: Final = Table[Connection]("sso_connections", lambda one: one.org)
DOMAINS: Final = Table[Domain](
    "sso_domains",
    lambda one: f"{one.org}/{one.domain}",
    order=lambda one: one.domain,
    descending=False,
    unique=lambda one: one.domain if one.proven_at is not None else None,
    conflict="Another organisation has proven this domain.",
)
SUBJECTS: Final = Table[Subject]("sso_subjects", lambda one: f"{one.org}\0{one.issuer}\0{one.subject}")


def obliged(store: MemoryDatabase, member: Member) -> bool:
    """Whether the member has to come in by their organisation's provider."""
    connection, domain = store.committed(CONNECTIONS, EVERYWHERE).get(member.org), domain_of(member.email)
    proven = store.committed(DOMAINS, EVERYWHERE).get(f"{member.org}/{domain}")
    demanded = connection is not None and connection.enforced and connection.enabled
    return demanded and proven is not None and proven.proven_at is not None


class MemorySsoStore:
    """SsoStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._org = transaction.tenant.org
        self._connections = transaction.rows(CONNECTIONS, EVERYWHERE)
        self._domains = transaction.rows(DOMAINS, EVERYWHERE)
        self._subjects = transaction.rows(SUBJECTS, EVERYWHERE)
        self._members = transaction.rows(MEMBERS, EVERYWHERE)

    async def connection(self) -> Connection | None:
        return self._connections.get(self._org)

    async def save(self, connection: Connection) -> None:
        await self._connections.put(connection)

    async def remove(self) -> None:
        await self._connections.remove(self._org)
        for one in list(self._subjects.where(lambda one: one.org == self._org)):
            await self._subjects.remove(SUBJECTS.key(one))

    async def domains(self) -> Sequence[Domain]:
        return sorted(self._domains.where(lambda one: one.org == self._org), key=lambda one: one.domain)

    async def put_domain(self, domain: Domain) -> None:
        await self._domains.put(domain)

    async def remove_domain(self, domain: str) -> bool:
        return await self._domains.remove(f"{self._org}/{domain}")

    async def subject(self, issuer: str, subject: str) -> Subject | None:
        return self._subjects.get(f"{self._org}\0{issuer}\0{subject}")

    async def subject_of(self, issuer: str, user: str) -> Subject | None:
        sought = (self._org, issuer, user)
        return next(iter(self._subjects.where(lambda one: (one.org, one.issuer, one.user) == sought)), None)

    async def bind(self, subject: Subject) -> None:
        known = await self.subject_of(subject.issuer, subject.user)
        if known is not None and known.subject != subject.subject:
            await self._subjects.remove(SUBJECTS.key(known))
        await self._subjects.put(subject)

    async def member(self, user: str) -> Member | None:
        return self._members.get(f"{self._org}/{user}")

    async def members_of(self, domains: Collection[str]) -> Sequence[Member]:
        own = self._members.where(lambda one: one.org == self._org and domain_of(one.email) in domains)
        return sorted(own, key=lambda one: one.user)


class MemorySsoDirectory:
    """SsoDirectory."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def of_domain(self, domain: str) -> Connection | None:
        proven = [one for one in self._all() if one.domain == domain and one.proven_at is not None]
        connections = self._store.committed(CONNECTIONS, EVERYWHERE)
        found = [connections[one.org] for one in proven if one.org in connections]
        return next((one for one in found if one.enabled), None)

    async def due(self, before: datetime, limit: int) -> Sequence[Domain]:
        proven = [one for one in self._all() if one.proven_at is not None and one.looked_at and one.looked_at < before]
        return sorted(proven, key=lambda one: (one.looked_at, one.domain))[:limit]

    def _all(self) -> Sequence[Domain]:
        return list(self._store.committed(DOMAINS, EVERYWHERE).values())
