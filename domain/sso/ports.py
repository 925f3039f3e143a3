"""Ports of single sign-on: identity providers (OpenID Connect with PKCE), DNS look-ups and storage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from domain.orgs.model import Member
from domain.sso.model import Identity, LinkedIdentity, MailDomain, OidcClient, SsoAttempt, SsoConnection


class ProviderFault(Exception):
    """The identity provider cannot be used, or its response is invalid.

    The text may be shown, and contains no secret.
    """


class IdentityProviders(Protocol):
    """Client of identity providers at any public address. The client verifies the providers' responses."""

    async def check_issuer(self, issuer: str) -> str:
        """Check the metadata of an issuer; return the issuer as the metadata spells it. Raises ProviderFault."""
        ...

    async def build_authorization_url(self, client: OidcClient, attempt: SsoAttempt, email: str) -> str:
        """Return the provider's URL to which the browser is redirected for the sign-in.

        Raises ProviderFault.

        Args:
            client: The organisation's OAuth client at the provider.
            attempt: The started sign-in. If it limits the time of the authentication, the provider must authenticate
                the person again.
            email: The email address that the person entered.
        """
        ...

    async def verify_identity(
        self, client: OidcClient, attempt: SsoAttempt, response_params: Mapping[str, str]
    ) -> Identity:
        """Verify the provider's response; return the identity of the person.

        Raises ProviderFault, also if the person authenticated earlier than the attempt permits.

        Args:
            client: The organisation's OAuth client at the provider.
            attempt: The started sign-in.
            response_params: The parameters of the URL to which the provider redirected the browser.
        """
        ...


RecordKind = Literal["TXT", "A", "AAAA", "MX", "PTR"]


class DnsUnavailable(Exception):
    """The DNS server did not respond in time, or failed."""


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """DNS record.

    `value` is a text, an address, or a name without the final dot; `preference` is for MX records only.
    """

    value: bytes
    preference: int = 0


class DnsResolver(Protocol):
    """DNS look-ups, which block and are therefore called in a thread."""

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...]:
        """Return the DNS records of a kind for a name, following aliases; empty if there are none.

        Raises DnsUnavailable if the DNS server fails or does not respond within `seconds`.
        """
        ...


class SsoStore(Protocol):
    """Storage of an organisation's single sign-on in a tenant's transaction, the same in both modes."""

    async def find_connection(self) -> SsoConnection | None:
        """Return the organisation's connection, or None."""
        ...

    async def save_connection(self, connection: SsoConnection) -> None:
        """Store the connection, replacing an existing one."""
        ...

    async def delete_connection(self) -> None:
        """Delete the connection and the linked identities, but not the mail domains."""
        ...

    async def list_domains(self) -> Sequence[MailDomain]:
        """Return the organisation's mail domains, sorted by name."""
        ...

    async def save_domain(self, domain: MailDomain) -> None:
        """Store a new or changed mail domain.

        Raises Conflict if the domain is verified and another organisation has verified it as well.
        """
        ...

    async def delete_domain(self, domain: str) -> bool:
        """Delete a mail domain; return False if there is no such domain."""
        ...

    async def find_linked_identity(self, issuer: str, subject: str) -> LinkedIdentity | None:
        """Return the linked identity with this subject at the issuer, or None."""
        ...

    async def find_linked_identity_by_user(self, issuer: str, user: str) -> LinkedIdentity | None:
        """Return the user's linked identity at the issuer, or None."""
        ...

    async def save_linked_identity(self, identity: LinkedIdentity) -> None:
        """Store a linked identity, which replaces another one of the same user at the same issuer."""
        ...

    async def find_member(self, user: str) -> Member | None:
        """Return the user's membership, or None."""
        ...

    async def list_members_in_domains(self, domains: Collection[str]) -> Sequence[Member]:
        """Return the members whose email address is in one of the domains."""
        ...


class SsoDirectory(Protocol):
    """Look-up of single sign-on connections and of mail domains, for all tenants."""

    async def find_by_domain(self, domain: str) -> SsoConnection | None:
        """Return the enabled connection of the organisation that has verified the domain, or None."""
        ...

    async def list_domains_to_check(self, before: datetime, limit: int) -> Sequence[MailDomain]:
        """Return up to `limit` verified domains that were last checked before `before`, in order of that check."""
        ...
