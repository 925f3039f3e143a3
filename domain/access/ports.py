"""API keys in store."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.access.model import ApiKey, Credential, Principal
from domain.kernel.paging import Page, PageRequest


class KeyStore(Protocol):
    """In a tenant's transaction: the organisation's API keys."""

    async def add(self, key: ApiKey) -> None:
        """Keep a new key."""
        ...

    async def revoke(self, id: str) -> bool:
        """End a key at once; False when there is no such key in force."""
        ...

    async def get(self, id: str) -> ApiKey | None:
        """One key, also when it is over; its role is its member's now."""
        ...

    async def page(self, page_request: PageRequest, *, ended: bool = False) -> Page[ApiKey]:
        """Those not revoked, or those that are; the newest first. Expired ones are not revoked."""
        ...

    async def used(self, ids: Collection[str]) -> Mapping[str, datetime]:
        """When keys were last used, to a minute; those that never were are left out."""
        ...

    async def revoke_of(self, member: str) -> Sequence[str]:
        """End the keys that a member has made, in both modes; answers their ids."""
        ...


class TokenProofs(Protocol):
    """Across tenants: what presented tokens of one kind prove."""

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return the tokens with the keyed hashes and their principals, also revoked or expired ones (the caller decides).

        Unknown ones, and those whose person is no member any more, are left out.
        """
        ...


class Credentials(Protocol):
    """Across tenants: what a presented credential proves."""

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        """Return the keys with the keyed hashes and their principals, also revoked or expired ones (the caller decides).

        Unknown ones are left out.
        """
        ...

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation's API version unless one is pinned; answers the pinned one."""
        ...
