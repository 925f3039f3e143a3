"""Storage of API keys and look-up of credentials."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.access.model import ApiKey, Credential, Principal
from domain.kernel.paging import Page, PageRequest


class KeyStore(Protocol):
    """The organisation's API keys, in a tenant's transaction."""

    async def add(self, key: ApiKey) -> None:
        """Store a new key."""
        ...

    async def revoke(self, id: str) -> bool:
        """Revoke a key at once; return False if there is no such active key."""
        ...

    async def get(self, id: str) -> ApiKey | None:
        """Return a key, also a revoked or expired one, with its member's present role."""
        ...

    async def page(self, page_request: PageRequest, *, ended: bool = False) -> Page[ApiKey]:
        """Return a page of the keys that are not revoked, or of those that are (`ended`), newest first.

        Expired keys are not revoked.
        """
        ...

    async def used(self, ids: Collection[str]) -> Mapping[str, datetime]:
        """Return when the keys were last used, to the minute; keys that were never used are omitted."""
        ...

    async def revoke_of(self, member: str) -> Sequence[str]:
        """Revoke the keys that a member created, in both modes; return their ids."""
        ...


class TokenProofs(Protocol):
    """Look-up of tokens of one kind, across tenants."""

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return the tokens with these keyed hashes and their principals, revoked and expired ones included.

        Unknown tokens, and those of people who are no longer members, are omitted.
        """
        ...


class Credentials(Protocol):
    """Look-up of presented credentials, across tenants."""

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        """Return the keys with these keyed hashes and their principals, revoked and expired ones included.

        Unknown keys are omitted.
        """
        ...

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation's API version unless one is pinned; return the pinned version."""
        ...
