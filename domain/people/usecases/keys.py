"""API keys, as people make and end them in the console: never more than their own role, and the secret shown once."""

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
"""Roles that make keys, each of what it may do itself."""
LONGEST_NAME = 100
MOST_NETWORKS = 20
MOST_KEYS = 100
"""Keys in force of an organisation and mode."""
LONGEST_LIFE = 3650
"""Days after which a key that ends by itself ends at the latest."""
_MAKERS_ONLY = "Only owners, admins and developers make API keys."


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key shall be. `scopes` None: all that its maker's role holds; `days` until it ends, None for never."""

    name: str
    restricted: bool = False
    scopes: frozenset[str] | None = None
    networks: tuple[str, ...] = ()
    days: int | None = None


@dataclass(frozen=True, slots=True)
class ListedKeys:
    """A page of keys, and when those of them were last used that ever were."""

    page: Page[ApiKey]
    used: Mapping[str, datetime]


class KeyService:
    """The keys of one organisation and mode."""

    def __init__(self, access: AccessService) -> None:
        self._access = access

    async def list_keys(self, tx: Tx, page_request: PageRequest, *, ended: bool = False) -> ListedKeys:
        """Keys in force and expired ones, or those that were revoked; the newest first."""
        page = await tx[KeyStore].page(page_request, ended=ended)
        return ListedKeys(page, await tx[KeyStore].used([key.id for key in page.items]))

    async def create(self, tx: Tx, asked: NewKey) -> tuple[ApiKey, str]:
        """Create an API key and return its secret once; it never has scopes that its creator's role lacks.

        Raises PermissionDenied; InvalidRequest by field; Conflict for a name in use, and for too many.
        """
        maker = await _maker(tx)
        wanted = ROLES[maker.role] if asked.scopes is None else asked.scopes
        request = KeyRequest(
            name=_name(asked.name),
            restricted=asked.restricted,
            scopes=_scopes(wanted, maker.role),
            role=maker.role,
            networks=networks_of(asked.networks),
            expires_at=_expiry(asked.days, tx.now),
            member=maker.user,
        )
        await _refuse_crowd(tx, request.name)
        key, secret = await self._access.issue_key(tx, request)
        after = {
            "name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4,
            "networks": list(key.networks), "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        }  # fmt: skip
        await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
        return key, secret

    async def revoke(self, tx: Tx, id: str) -> ApiKey:
        """End a key: within a second nobody takes it. Managers end any, others their own.

        Raises PermissionDenied; NotFound for one that is unknown or revoked already.
        """
        maker = await _maker(tx)
        key = await tx[KeyStore].get(id)
        if key is None or key.revoked_at is not None:
            raise NotFound("There is no such key in force.")
        if not maker.manages and key.member != maker.user:
            raise PermissionDenied("Only owners and admins revoke keys that somebody else has made.")
        await tx[KeyStore].revoke(id)
        await tx[AuditLog].add(Change("api_key", id, "update", {"revoked": False}, {"revoked": True}))
        return key


async def _maker(tx: Tx) -> Member:
    """Return the acting member if their current role may create keys. Raises PermissionDenied."""
    found = (await tx[OrgStore].hold_members((acting(tx),))).get(acting(tx))
    if found is None or found.role not in KEY_MAKERS:
        raise PermissionDenied(_MAKERS_ONLY)
    return found


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name:
        raise InvalidRequest.of("name", "required", "Give it a name that tells what uses it.")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidRequest.of("name", "too_long", f"Use at most {LONGEST_NAME} printable characters.")
    return name


def _scopes(wanted: frozenset[str], role: str) -> frozenset[str]:
    if unknown := wanted - SCOPES:
        raise InvalidRequest.of("scopes", "invalid_value", f"There are no scopes {', '.join(sorted(unknown))}.")
    if not (held := wanted & ROLES[role]):
        raise InvalidRequest.of("scopes", "required", "Choose at least one thing that the key may do.")
    return held


def networks_of(blocks: Sequence[str]) -> tuple[str, ...]:
    """Addresses and CIDR blocks, written plainly and once each. Raises InvalidRequest."""
    found: dict[str, None] = {}
    for text in blocks:
        try:
            found[str(ipaddress.ip_network(text.strip(), strict=False))] = None
        except ValueError:
            told = "Write addresses or blocks, one a line, such as 203.0.113.7 or 203.0.113.0/24."
            raise InvalidRequest.of("networks", "invalid_format", told) from None
    if len(found) > MOST_NETWORKS:
        raise InvalidRequest.of("networks", "too_many", f"At most {MOST_NETWORKS} blocks.")
    return tuple(found)


def _expiry(days: int | None, now: datetime) -> datetime | None:
    if days is None:
        return None
    if not 0 < days <= LONGEST_LIFE:
        raise InvalidRequest.of("expires", "invalid_value", f"Choose 1 to {LONGEST_LIFE} days, or no end.")
    return now + timedelta(days=days)


async def _refuse_crowd(tx: Tx, name: str) -> None:
    keys = (await tx[KeyStore].page(PageRequest(limit=MOST_KEYS))).items
    if any(key.name == name and (key.expires_at is None or key.expires_at > tx.now) for key in keys):
        raise Conflict.of("name", "duplicate", "There is a key of this name already; choose another name.")
    if len(keys) >= MOST_KEYS:
        raise Conflict(f"There are {MOST_KEYS} keys, the most there may be in one mode; revoke some first.")
