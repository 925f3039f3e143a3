"""API keys in store."""

from collections.abc import Collection, Mapping
from typing import Protocol

from domain.access.model import ApiKey, Credential, Principal


class KeyStore(Protocol):
    """In a tenant's transaction: the organisation's API keys."""

    async def add(self, key: ApiKey) -> None:
        """Keep a new key."""
        ...

    async def revoke(self, id: str) -> bool:
        """End a key at once; False when there is no such key in force."""
        ...


class TokenProofs(Protocol):
    """Across tenants: what presented tokens of one kind prove."""

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """The tokens with those keyed hashes and the principals that they make, also when revoked or expired (the caller judges).

        Unknown ones, and those whose person is no member any more, are left out.
        """
        ...


class Credentials(Protocol):
    """Across tenants: what a presented credential proves."""

    async def key(self, digest: bytes) -> tuple[ApiKey, Principal] | None:
        """The key with that keyed hash and the principal it makes, also when revoked or expired (the caller judges)."""
        ...

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        """The same for many at once, by digest; unknown ones are left out."""
        ...

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation's API version unless one is pinned; answers the pinned one."""
        ...
