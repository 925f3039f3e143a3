"""Sealing of values, so that the database alone reveals none, and storage of sealed values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.secrets.model import SealedKind, SealedValue


class Vault(Protocol):
    """Authenticated encryption with AES-256-GCM and envelope keys; the key's id is stored with the value."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The ids of the available secrets, the current one first."""
        ...

    @property
    def in_force(self) -> str:
        """The id of the secret that seals now."""
        ...

    @property
    def stamp(self) -> bytes:
        """The prefix of all values sealed under the secret in force in the present format."""
        ...

    def use(self, key: str) -> None:
        """Seal under that secret from now on."""
        ...

    def key_of(self, sealed: bytes) -> str:
        """Return the id of the secret that sealed the value. Raises ValueError for a value that was never sealed."""
        ...

    def seal(self, value: Mapping[str, Any], owner: str, destination: str = "", *, key: str = "") -> bytes:
        """Seal a value for one owner (such as a source's id), and for one destination if it must not be sent elsewhere.

        `key` is the id of another secret than the one in force.
        """
        ...

    def open(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        """Open a sealed value; values from before destinations were bound have none.

        Raises ValueError if it was tampered with, sealed for another owner or destination, or by an unavailable key.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredRing:
    """The sealed key ring and the time of its last change."""

    sealed: bytes
    changed_at: datetime


class KeyRings(Protocol):
    """Storage of the deployment's key ring, and the processes that must be able to open it."""

    async def read(self) -> StoredRing | None:
        """Return the ring, or None if there is none yet."""
        ...

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        """Replace `expected` (None: no ring); return False, with nothing changed, if another ring is stored."""
        ...

    async def has_api_keys(self) -> bool:
        """Return whether any API key exists."""
        ...

    async def lacking(self, key: str) -> int:
        """Return the number of connections of processes without the secret of that id."""
        ...


class SealedValues(Protocol):
    """Sealed values across tenants, except the key ring."""

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        """Return the next values after that one without the stamp, in a stable order."""
        ...

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        """Replace the value by `fresh`; return False, with nothing changed, if it has changed."""
        ...

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return the numbers of sealed values by kind, by secret id."""
        ...
