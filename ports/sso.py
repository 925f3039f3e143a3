"""Single sign-on in store: what an organisation has set up, and whose a domain is."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from domain.orgs.model import Member
from domain.sso.model import Connection, Domain, Subject


class SsoStore(Protocol):
    """In a tenant's transaction: its organisation's, whatever the mode."""

    async def connection(self) -> Connection | None:
        """What is set up."""
        ...

    async def save(self, connection: Connection) -> None:
        """Keep it, in the place of one that is there."""
        ...

    async def remove(self) -> None:
        """Forget the connection and whom it knows; domains stay."""
        ...

    async def domains(self) -> Sequence[Domain]:
        """Every domain, by name."""
        ...

    async def put_domain(self, domain: Domain) -> None:
        """Keep a domain, new or changed. Raises Conflict when it is to be proven, and another organisation's proof counts."""
        ...

    async def remove_domain(self, domain: str) -> bool:
        """Forget it; answers whether it was there."""
        ...

    async def subject(self, issuer: str, subject: str) -> Subject | None:
        """Who that is."""
        ...

    async def subject_of(self, issuer: str, user: str) -> Subject | None:
        """As whom that issuer knows the user."""
        ...

    async def bind(self, subject: Subject) -> None:
        """Keep who it is; another subject of the same issuer that was the same user is so no more."""
        ...

    async def member(self, user: str) -> Member | None:
        """The member who that user is."""
        ...

    async def members_of(self, domains: Collection[str]) -> Sequence[Member]:
        """Members whose address is in one of the domains."""
        ...


class SsoDirectory(Protocol):
    """Across tenants: whose a domain is, before anybody is known."""

    async def of_domain(self, domain: str) -> Connection | None:
        """The connection, enabled, of the organisation that has proven the domain."""
        ...

    async def due(self, before: datetime, limit: int) -> Sequence[Domain]:
        """Proven domains that were last looked at before then, the longest ago first."""
        ...
