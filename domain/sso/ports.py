"""Identity providers (OpenID Connect, authorization code with PKCE), DNS records, and storage of single sign-on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from domain.orgs.model import Member
from domain.sso.model import Attempt, Client, Connection, Domain, Identity, Subject


class ProviderFault(Exception):
    """The provider is unusable, or its response invalid. The text may be shown and contains no secret."""


class IdentityProviders(Protocol):
    """Identity providers at any reachable address; their responses are verified."""

    async def issuer(self, issuer: str) -> str:
        """Return the issuer as its own metadata spells it, after checking the metadata. Raises ProviderFault."""
        ...

    async def authorization_url(self, client: Client, attempt: Attempt, hint: str) -> str:
        """Return the URL to redirect the browser to; `hint` is the address that was entered.

        An attempt with `again_since` requests renewed authentication. Raises ProviderFault.
        """
        ...

    async def identity(self, client: Client, attempt: Attempt, answer: Mapping[str, str]) -> Identity:
        """Return the verified identity from the parameters that the browser returned.

        Raises ProviderFault, also for an authentication older than the attempt's `again_since`.
        """
        ...


RecordKind = Literal["TXT", "A", "AAAA", "MX", "PTR"]


class NamesUnavailable(Exception):
    """DNS did not respond in time, or failed."""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """A DNS record: a text's bytes, an address, or a name without its last dot; `preference` of mail exchangers."""

    value: bytes
    preference: int = 0


class NameRecords(Protocol):
    """DNS look-ups; blocking, to be called off the event loop."""

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        """Return the records of that name, following aliases; empty if there are none.

        Raises NamesUnavailable, after `seconds` at the latest.
        """
        ...


class SsoStore(Protocol):
    """The organisation's single sign-on in a tenant's transaction, independent of mode."""

    async def connection(self) -> Connection | None:
        """Return the connection, or None."""
        ...

    async def save(self, connection: Connection) -> None:
        """Store the connection, replacing an existing one."""
        ...

    async def remove(self) -> None:
        """Delete the connection and its subjects; domains remain."""
        ...

    async def domains(self) -> Sequence[Domain]:
        """Return all domains, by name."""
        ...

    async def put_domain(self, domain: Domain) -> None:
        """Store a new or changed domain.

        Raises Conflict if it is to be proven and another organisation's proof is valid.
        """
        ...

    async def remove_domain(self, domain: str) -> bool:
        """Delete the domain; return whether it existed."""
        ...

    async def subject(self, issuer: str, subject: str) -> Subject | None:
        """Return the subject, or None."""
        ...

    async def subject_of(self, issuer: str, user: str) -> Subject | None:
        """Return the user's subject at that issuer, or None."""
        ...

    async def bind(self, subject: Subject) -> None:
        """Store the subject, replacing another subject of the same issuer and user."""
        ...

    async def member(self, user: str) -> Member | None:
        """Return the membership of that user, or None."""
        ...

    async def members_of(self, domains: Collection[str]) -> Sequence[Member]:
        """Return the members whose address is in one of the domains."""
        ...


class SsoDirectory(Protocol):
    """Look-up of connections by domain, across tenants."""

    async def of_domain(self, domain: str) -> Connection | None:
        """Return the enabled connection of the organisation that has proven the domain, or None."""
        ...

    async def due(self, before: datetime, limit: int) -> Sequence[Domain]:
        """Return proven domains last checked before then, longest ago first."""
        ...
