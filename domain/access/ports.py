"""Storage of API keys, and look-up of credentials."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.access.model import ApiKey, Credential, Principal
from domain.kernel.paging import Page, PageRequest


class KeyStore(Protocol):
    """Storage of the organisation's API keys in a tenant's transaction."""

    async def add(self, key: ApiKey) -> None:
        """Store a new key."""
        ...

    async def revoke(self, id: str) -> bool:
        """Revoke a key immediately; return False if no active key has this ID."""
        ...

    async def get(self, id: str) -> ApiKey | None:
        """Return the key with the current role of its creator, even if the key is revoked or expired; None if unknown."""
        ...

    async def page(self, page_request: PageRequest, *, revoked: bool = False) -> Page[ApiKey]:
        """Return a page of the revoked keys (`revoked` True) or of all other keys, including expired ones, newest first."""
        ...

    async def get_last_uses(self, ids: Collection[str]) -> Mapping[str, datetime]:
        """Return the time of each key's last use, to the minute; keys that were never used are omitted."""
        ...

    async def revoke_by_member(self, member: str) -> Sequence[str]:
        """Revoke the keys that a member created, in both modes; return their IDs."""
        ...


class TokenLookup(Protocol):
    """Look-up of tokens of one kind, for all tenants."""

    async def find_tokens(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return tokens and their principals by keyed hash, including revoked and expired tokens.

        Unknown tokens, and those of users who are no longer members, are omitted.
        """
        ...


class CredentialLookup(Protocol):
    """Look-up of the credentials in requests, for all tenants."""

    async def find_keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        """Return API keys and their principals by keyed hash, including revoked and expired keys.

        Unknown keys are omitted.
        """
        ...

    async def pin_version(self, org: str, version: str) -> str:
        """Set the organisation's API version to `version` if none is set; return the organisation's API version."""
        ...
