"""API keys of people: never more than their creator's role, with the secret shown once."""

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
from domain.orgs.usecases.service import acting
from ports.unit_of_work import Tx

KEY_MAKERS = frozenset({"owner", "admin", "developer"})
"""Roles that may create keys, up to their own permissions."""
LONGEST_NAME = 100
MOST_NETWORKS = 20
MOST_KEYS = 100
"""Maximum active keys of an organisation and mode."""
LONGEST_LIFE = 3650
"""Maximum days until a key's expiry."""
_MAKERS_ONLY = "Only owners, admins and developers can create API keys."


@dataclass(frozen=True, slots=True)
class NewKey:
    """Properties of a new key. `scopes` None: all of its creator's role; `days` until expiry, None for never."""

    name: str
    restricted: bool = False
    scopes: frozenset[str] | None = None
    networks: tuple[str, ...] = ()
    days: int | None = None


@dataclass(frozen=True, slots=True)
class ListedKeys:
    """A page of keys, and the last use of those that were used."""

    page: Page[ApiKey]
    used: Mapping[str, datetime]


class KeyService:
    """The keys of one organisation and mode."""

    def __init__(self, access: AccessService) -> None:
        self._access = access

    async def list_keys(self, tx: Tx, page_request: PageRequest, *, ended: bool = False) -> ListedKeys:
        """Return active and expired keys, or revoked ones, newest first."""
        page = await tx[KeyStore].page(page_request, ended=ended)
        return ListedKeys(page, await tx[KeyStore].used([key.id for key in page.items]))

    async def create(self, tx: Tx, requested: NewKey) -> tuple[ApiKey, str]:
        """Create a key; return it and its secret.

        It never exceeds the scopes of its creator's present role. Raises PermissionDenied; InvalidRequest by field;
        Conflict for a duplicate name or too many keys.
        """
        maker = await _maker(tx)
        wanted = ROLES[maker.role] if requested.scopes is None else requested.scopes
        request = KeyRequest(
            name=_name(requested.name),
            restricted=requested.restricted,
            scopes=_scopes(wanted, maker.role),
            role=maker.role,
            networks=networks_of(requested.networks),
            expires_at=_expiry(requested.days, tx.now),
            member=maker.user,
        )
        await _refuse_duplicate(tx, request.name)
        key, secret = await self._access.issue_key(tx, request)
        after = {
            "name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4,
            "networks": list(key.networks), "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        }  # fmt: skip
        await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
        return key, secret

    async def revoke(self, tx: Tx, id: str) -> ApiKey:
        """Revoke a key, which takes effect within a second.

        Managers can revoke any key, others their own. Raises PermissionDenied; NotFound if it is unknown or revoked.
        """
        maker = await _maker(tx)
        key = await tx[KeyStore].get(id)
        if key is None or key.revoked_at is not None:
            raise NotFound("There is no such active key.")
        if not maker.manages and key.member != maker.user:
            raise PermissionDenied("Only owners and admins can revoke keys of other members.")
        await tx[KeyStore].revoke(id)
        await tx[AuditLog].add(Change("api_key", id, "update", {"revoked": False}, {"revoked": True}))
        return key


async def _maker(tx: Tx) -> Member:
    """Return the acting person if their present role may create keys. Raises PermissionDenied."""
    found = (await tx[OrgStore].hold_members((acting(tx),))).get(acting(tx))
    if found is None or found.role not in KEY_MAKERS:
        raise PermissionDenied(_MAKERS_ONLY)
    return found


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name:
        raise InvalidRequest.of("name", "required", "Enter a name that says what uses the key.")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidRequest.of("name", "too_long", f"Use at most {LONGEST_NAME} printable characters.")
    return name


def _scopes(wanted: frozenset[str], role: str) -> frozenset[str]:
    if unknown := wanted - SCOPES:
        raise InvalidRequest.of("scopes", "invalid_value", f"Unknown scopes: {', '.join(sorted(unknown))}.")
    if not (held := wanted & ROLES[role]):
        raise InvalidRequest.of("scopes", "required", "Select at least one permission.")
    return held


def networks_of(blocks: Sequence[str]) -> tuple[str, ...]:
    """Return addresses and CIDR blocks, normalised and without duplicates. Raises InvalidRequest."""
    found: dict[str, None] = {}
    for text in blocks:
        try:
            found[str(ipaddress.ip_network(text.strip(), strict=False))] = None
        except ValueError:
            detail = "Enter addresses or blocks, one per line, such as 203.0.113.7 or 203.0.113.0/24."
            raise InvalidRequest.of("networks", "invalid_format", detail) from None
    if len(found) > MOST_NETWORKS:
        raise InvalidRequest.of("networks", "too_many", f"At most {MOST_NETWORKS} blocks.")
    return tuple(found)


def _expiry(days: int | None, now: datetime) -> datetime | None:
    if days is None:
        return None
    if not 0 < days <= LONGEST_LIFE:
        raise InvalidRequest.of("expires", "invalid_value", f"Enter 1 to {LONGEST_LIFE} days, or no expiry.")
    return now + timedelta(days=days)


async def _refuse_duplicate(tx: Tx, name: str) -> None:
    keys = (await tx[KeyStore].page(PageRequest(limit=MOST_KEYS))).items
    if any(key.name == name and (key.expires_at is None or key.expires_at > tx.now) for key in keys):
        raise Conflict.of("name", "duplicate", "A key with this name exists. Choose another name.")
    if len(keys) >= MOST_KEYS:
        raise Conflict(f"There are {MOST_KEYS} keys, the maximum in one mode. Revoke some first.")
