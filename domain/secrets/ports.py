"""Ports of secrets: encryption of values, storage of the key ring, and access to encrypted values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.secrets.model import EncryptedValue, EncryptedValueKind


class Vault(Protocol):
    """Authenticated encryption with AES-256-GCM and envelope keys.

    An encrypted value contains the ID of the secret with which it was encrypted. Its owner (the object to which the
    value belongs) and its destination (where the value may be sent) are associated data: the value can be decrypted
    only with the same owner and destination.
    """

    @property
    def secret_ids(self) -> tuple[str, ...]:
        """The IDs of the available secrets, the newest first."""
        ...

    @property
    def active_secret_id(self) -> str:
        """The ID of the active secret, with which values are encrypted."""
        ...

    @property
    def current_prefix(self) -> bytes:
        """The prefix of all values that are encrypted with the active secret in the current format."""
        ...

    def activate_secret(self, secret_id: str) -> None:
        """Make the secret with the ID `secret_id` the active one of this process."""
        ...

    def parse_secret_id(self, sealed: bytes) -> str:
        """Return the ID of the secret with which the value was encrypted. Raises ValueError for other bytes."""
        ...

    def encrypt(self, value: Mapping[str, Any], owner: str, destination: str = "", *, secret_id: str = "") -> bytes:
        """Return the encrypted value, which can be decrypted only with the same owner and destination.

        Args:
            value: A JSON object.
            owner: ID of the object to which the value belongs, such as a source; associated data of the encryption.
            destination: The only destination to which the value may be sent; empty if any.
            secret_id: ID of the secret; empty for the active one.
        """
        ...

    def decrypt(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        """Return the decrypted value.

        Values of old releases were encrypted without a destination and can be decrypted with any.

        Args:
            sealed: The encrypted value.
            owner: The owner with which the value was encrypted (`encrypt`).
            destination: The destination to which the value is to be sent; empty if it is not sent.

        Raises:
            ValueError: The value was changed or encrypted for another owner or destination, or its secret is not
                available.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredKeyRing:
    """Encrypted key ring, and the time of its last change."""

    ciphertext: bytes
    changed_at: datetime


class KeyRingStore(Protocol):
    """Storage of the deployment's key ring, and information on the processes that must be able to decrypt the key ring."""

    async def read(self) -> StoredKeyRing | None:
        """Return the stored key ring, or None."""
        ...

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        """Store the encrypted key ring `sealed`; return False, without storing it, unless the stored one is `expected`.

        `expected` None means that no key ring is stored.
        """
        ...

    async def has_api_keys(self) -> bool:
        """Return whether any API key exists."""
        ...

    async def count_outdated_connections(self, secret_id: str) -> int:
        """Return the number of database connections of processes that have not loaded the secret with the ID `secret_id`."""
        ...


class EncryptedValues(Protocol):
    """Access to the encrypted values of all tenants and users, for re-encryption."""

    async def list_outdated(
        self, kind: EncryptedValueKind, current_prefix: bytes, after: EncryptedValue | None, limit: int
    ) -> Sequence[EncryptedValue]:
        """Return values of the kind that lack the prefix `current_prefix`, and thus must be re-encrypted, in a fixed order.

        Args:
            kind: Kind of the values.
            current_prefix: Prefix of up-to-date values.
            after: Last value of the previous call, after which to continue; None to begin.
            limit: Maximum number of values.
        """
        ...

    async def replace(self, value: EncryptedValue, reencrypted: bytes) -> bool:
        """Replace the stored value by `reencrypted`; return False, without replacing it, if it has changed meanwhile."""
        ...

    async def count_by_secret(self) -> Mapping[str, Mapping[str, int]]:
        """Return the number of encrypted values by ID of the secret and by kind."""
        ...
