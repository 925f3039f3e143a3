"""Use cases of API keys. A key never has more scopes than the role of its creator; the secret is shown once."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.access.model import ROLES, SCOPES, ApiKey
from domain.access.ports import KeyStore
from domain.access.usecases import AccessService, KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.orgs.usecases.service import require_person
from ports.unit_of_work import Tx

KEY_CREATOR_ROLES = frozenset({"owner", "admin", "developer"})
"""Roles that may create keys. A key has at most the scopes of its creator's role."""
MAX_NAME_CHARS = 100
MAX_NETWORKS = 20
MAX_ACTIVE_KEYS = 100
"""Maximum number of active keys of an organisation in one mode."""
MAX_LIFETIME_DAYS = 3650
"""Maximum number of days until a key expires."""
_CREATORS_ONLY = "Only owners, admins and developers can create API keys."


@dataclass(frozen=True, slots=True)
class NewKey:
    """Properties of a new key.

    Attributes:
        restricted: Whether the prefix of the key marks it as restricted.
        scopes: The scopes of the key; None for all scopes of the creator's role.
        networks: Addresses and CIDR blocks from which the key can be used; empty for any.
        days: Number of days until the key expires; None for never.
    """

    name: str
    restricted: bool = False
    scopes: frozenset[str] | None = None
    networks: tuple[str, ...] = ()
    days: int | None = None


@dataclass(frozen=True, slots=True)
class ListedKeys:
    """Page of API keys; `last_used_at` is the time of each key's last use by key ID, without unused keys."""

    page: Page[ApiKey]
    last_used_at: Mapping[str, datetime]


class KeyService:
    """Use cases of the API keys of one organisation in one mode."""

    def __init__(self, access: AccessService) -> None:
        self._access = access

    async def list_keys(self, tx: Tx, page_request: PageRequest, *, revoked: bool = False) -> ListedKeys:
        """Return a page of keys, newest first: revoked keys if `revoked`, else all others, including expired keys."""
        page = await tx[KeyStore].page(page_request, revoked=revoked)
        return ListedKeys(page, await tx[KeyStore].get_last_uses([key.id for key in page.items]))

    async def create(self, tx: Tx, requested: NewKey) -> tuple[ApiKey, str]:
        """Create a key; return the key and its secret. Scopes that the creator's current role lacks are omitted.

        Raises PermissionDenied, InvalidRequest with field errors, or Conflict for a duplicate name or too many keys.
        """
        creator = await _require_creator(tx)
        wanted = ROLES[creator.role] if requested.scopes is None else requested.scopes
        request = KeyRequest(
            name=_normalise_name(requested.name),
            restricted=requested.restricted,
            scopes=_select_scopes(wanted, creator.role),
            role=creator.role,
            networks=normalise_networks(requested.networks),
            expires_at=_compute_expiry(requested.days, tx.now),
            member=creator.user,
        )
        await _refuse_duplicate(tx, request.name)
        key, secret = await self._access.create_key(tx, request)
        after = {
            "name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4,
            "networks": list(key.networks), "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        }  # fmt: skip
        await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
        return key, secret

    async def revoke(self, tx: Tx, id: str) -> ApiKey:
        """Revoke a key; requests with the key are refused after at most a second.

        Owners and admins can revoke any key, other members only keys that they created. Raises PermissionDenied, or
        NotFound if the key is unknown or revoked.
        """
        creator = await _require_creator(tx)
        key = await tx[KeyStore].get(id)
        if key is None or key.revoked_at is not None:
            raise NotFound("This key does not exist or is no longer active.")
        if not creator.is_manager and key.member != creator.user:
            raise PermissionDenied("Only owners and admins can revoke keys of other members.")
        await tx[KeyStore].revoke(id)
        await tx[AuditLog].add(Change("api_key", id, "update", {"revoked": False}, {"revoked": True}))
        return key


async def _require_creator(tx: Tx) -> Member:
    """Return the caller's membership if their current role may create keys. Raises PermissionDenied."""
    found = (await tx[OrgStore].lock_members((require_person(tx),))).get(require_person(tx))
    if found is None or found.role not in KEY_CREATOR_ROLES:
        raise PermissionDenied(_CREATORS_ONLY)
    return found


def _normalise_name(text: str) -> str:
    name = " ".join(text.split())
    if not name:
        raise InvalidRequest.for_field(
            "name", "required", "Enter a name for the key, such as the program that uses it."
        )
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest.for_field("name", "too_long", f"Use at most {MAX_NAME_CHARS} printable characters.")
    return name


def _select_scopes(requested: frozenset[str], role: str) -> frozenset[str]:
    if unknown := requested - SCOPES:
        raise InvalidRequest.for_field("scopes", "invalid_value", f"Unknown scopes: {', '.join(sorted(unknown))}.")
    if not (permitted := requested & ROLES[role]):
        raise InvalidRequest.for_field("scopes", "required", "Select at least one permission.")
    return permitted


def normalise_networks(blocks: Sequence[str]) -> tuple[str, ...]:
    """Return IP addresses and CIDR blocks in canonical notation, without duplicates. Raises InvalidRequest."""
    found: dict[str, None] = {}
    for text in blocks:
        try:
            found[str(ipaddress.ip_network(text.strip(), strict=False))] = None
        except ValueError:
            detail = "Enter IP addresses or address ranges, one per line, such as 203.0.113.7 or 203.0.113.0/24."
            raise InvalidRequest.for_field("networks", "invalid_format", detail) from None
    if len(found) > MAX_NETWORKS:
        raise InvalidRequest.for_field(
            "networks", "too_many", f"Enter at most {MAX_NETWORKS} IP addresses or address ranges."
        )
    return tuple(found)


def _compute_expiry(days: int | None, now: datetime) -> datetime | None:
    if days is None:
        return None
    if not 0 < days <= MAX_LIFETIME_DAYS:
        raise InvalidRequest.for_field(
            "expires", "invalid_value", f"Enter 1 to {MAX_LIFETIME_DAYS} days, or no expiry."
        )
    return now + timedelta(days=days)


async def _refuse_duplicate(tx: Tx, name: str) -> None:
    keys = (await tx[KeyStore].page(PageRequest(limit=MAX_ACTIVE_KEYS))).items
    if any(key.name == name and (key.expires_at is None or key.expires_at > tx.now) for key in keys):
        raise Conflict.for_field("name", "duplicate", "A key with this name exists. Choose another name.")
    if len(keys) >= MAX_ACTIVE_KEYS:
        raise Conflict(f"There are {MAX_ACTIVE_KEYS} keys, the maximum in one mode. Revoke some first.")
