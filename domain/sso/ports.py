"""Asking an organisation's identity provider who somebody is (OpenID Connect, authorization code with PKCE)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from domain.orgs.model import Member
from domain.sso.model import Attempt, Client, Connection, Domain, Identity, Subject


class ProviderFault(Exception):
    """The provider cannot be used, or what it says does not hold. The sentence may be shown, and names no secret."""


class IdentityProviders(Protocol):
    """Providers of any address that may be reached; what they answer is theirs, and is checked."""

    async def issuer(self, issuer: str) -> str:
        """Return the issuer as its metadata document spells it, after validation. Raises ProviderFault."""
        ...

    async def authorization_url(self, client: Client, attempt: Attempt, hint: str) -> str:
        """Where to send the browser; `hint` is the address that somebody said is theirs. Raises ProviderFault.

        An attempt with `again_since` has the provider ask who it is, also of somebody whom it remembers.
        """
        ...

    async def identity(self, client: Client, attempt: Attempt, answer: Mapping[str, str]) -> Identity:
        """Who somebody is, of the parameters that the browser brought back. Raises ProviderFault.

        Of an attempt with `again_since`, also when the provider tells that they have shown it before that.
        """
        ...


RecordKind = Literal["TXT", "A", "AAAA", "MX", "PTR"]


class NamesUnavailable(Exception):
    """The name system did not answer in time, or answered that it cannot say."""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """One record: a text's bytes, an address, or a name without its last dot; `preference` of mail exchangers."""

    value: bytes
    preference: int = 0


class NameRecords(Protocol):
    """Blocks until there is an answer: to be asked off the event loop."""

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        """Return the DNS records of the name, following aliases; empty for an unknown name.

        Raises NamesUnavailable, after `seconds` at the latest.
        """
        ...


class SsoStore(Protocol):
    """In a tenant's transaction: its organisation's, whatever the mode."""

    async def connection(self) -> Connection | None:
        """Return the organisation's connection, or None."""
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
        """Return the user's membership, or None."""
        ...

    async def members_of(self, domains: Collection[str]) -> Sequence[Member]:
        """Members whose address is in one of the domains."""
        ...


class SsoDirectory(Protocol):
    """Across tenants: whose a domain is, before anybody is known."""

    async def of_domain(self, domain: str) -> Connection | None:
        """Return the enabled connection of the organisation that has verified the domain."""
        ...

    async def due(self, before: datetime, limit: int) -> Sequence[Domain]:
        """Proven domains that were last looked at before then, the longest ago first."""
        ...
