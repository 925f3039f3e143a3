"""Scopes, roles, API keys and the principal of an authenticated request (docs/conventions.md#authentication)."""

import ipaddress
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from domain.kernel.ids import ALPHABET
from domain.kernel.tenancy import Actor, Tenant
from domain.orgs.model import Organisation

SCOPES = frozenset(
    "products:read products:write sources:read sources:write exports:read exports:write webhooks:read webhooks:write "
    "proposals:read proposals:write audit:read audit:write request_logs:read usage:read analytics:read org:read "
    "agents:read agents:write agreements:read agreements:write billing:read billing:write brand:read brand:write "
    "catalogue:read catalogue:write demand:write assistant_memories:write assistant_settings:read "
    "assistant_settings:write".split()
)
_READS = frozenset(scope for scope in SCOPES if scope.endswith(":read"))
_EDITS = frozenset("products:write sources:write brand:write catalogue:write proposals:write demand:write".split())
ROLES: Final[dict[str, frozenset[str]]] = {
    "owner": SCOPES,
    "admin": SCOPES,
    "developer": _READS | {"webhooks:write", "exports:write", "sources:write"},
    "editor": _READS | _EDITS,
    "billing": frozenset({"org:read", "usage:read", "billing:read", "billing:write"}),
    "viewer": _READS - {"billing:read", "request_logs:read", "audit:read"},
}
"""The scopes of each role.

Owner and admin have the same scopes, but some operations are restricted to owners.
"""

KEY_PREFIXES = {
    (True, False): "svc_live_",
    (False, False): "svc_test_",
    (True, True): "svc_rk_live_",
    (False, True): "svc_rk_test_",
}
"""The prefix of an API key by (livemode, restricted)."""
TOKEN_PREFIXES = {
    "svc_person_": b"p",
    "svc_access_": b"a",
}
"""Prefixes of bearer credentials other than API keys: personal tokens and OAuth access tokens.

The value is the first byte of their stored digests, which selects the store to search.
"""
_BEARERS = (*KEY_PREFIXES.values(), *TOKEN_PREFIXES)
SESSION_PREFIX = "svc_session_"
"""The prefix of a console session's cookie, which is not a bearer credential."""


def compute_checksum(body: str) -> str:
    """Compute six base62 characters by which a mistyped credential is recognised without a query."""
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits.append(ALPHABET[rest])
    return "".join(reversed(digits))


def is_well_formed_secret(text: str, prefixes: Iterable[str]) -> bool:
    """Return whether the text consists of one of these prefixes, 32 characters, and the checksum of both."""
    for prefix in prefixes:
        body = text[len(prefix) :]
        if text.startswith(prefix) and len(body) == 38:
            return compute_checksum(prefix + body[:32]) == body[32:]
    return False


def is_well_formed_bearer(text: str) -> bool:
    """Return whether the text has the format of a bearer credential: an API key, a personal token or an access token."""
    return is_well_formed_secret(text, _BEARERS)


class Credential(Protocol):
    """Properties of a credential that are checked at each request: expiry, revocation and allowed networks."""

    @property
    def networks(self) -> tuple[str, ...]:
        """CIDR blocks from which the credential may be used; empty for any address."""
        ...

    @property
    def expires_at(self) -> datetime | None:
        """The time of expiry; None for never."""
        ...

    @property
    def revoked_at(self) -> datetime | None:
        """The time of revocation; None if it was not revoked."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """API key as it is stored, without the secret.

    Attributes:
        digest: The keyed hash of the secret.
        last4: The last four characters of the secret.
        restricted: Whether the key's prefix marks the key as restricted.
        role: The current role of the member who created the key; owner if an operator did.
        networks: CIDR blocks from which the key can be used; empty for any address.
        member: The member who created the key; None for an operator.
    """

    id: str
    tenant: Tenant
    name: str
    digest: bytes
    last4: str
    restricted: bool
    scopes: frozenset[str]
    role: str
    networks: tuple[str, ...]
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """Identity and permissions of an accepted credential (docs/conventions.md#authentication).

    Attributes:
        actor: The originator of the request, for the request log and the audit log.
        via: The kind of credential, for the request log.
        is_personal_token: Whether the credential is a personal token.
        is_console_session: Whether the credential is a console session.
        has_fixed_mode: Whether the credential determines the mode.
        audience: The only interface that accepts the credential, `v1` or `mcp`; None for all.
    """

    tenant: Tenant
    actor: Actor
    via: str
    role: str
    scopes: frozenset[str]
    organisation: Organisation
    is_personal_token: bool = False
    is_console_session: bool = False
    has_fixed_mode: bool = True
    audience: str | None = None

    @property
    def user(self) -> str | None:
        """The user behind the credential; None for an API key, or an app of the organisation itself."""
        return self.actor.responsible if self.is_personal_token or self.is_console_session else None


def limit_scopes_to_role(scopes: frozenset[str], role: str) -> frozenset[str]:
    """Return the given scopes that the role includes.

    A credential never has more scopes than the current role of its member.
    """
    return scopes & ROLES[role]


def is_address_allowed(networks: tuple[str, ...], address: str) -> bool:
    """Return whether the IP address is in one of the CIDR blocks; without blocks, every address is allowed.

    An invalid address is in no block.
    """
    if not networks:
        return True
    try:
        host = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped:
        host = host.ipv4_mapped
    return any(host in ipaddress.ip_network(block, strict=False) for block in networks)
