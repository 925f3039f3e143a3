"""Sealing values so that the database alone gives nothing away, and what is sealed in store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.secrets.model import SealedKind, SealedValue


class Vault(Protocol):
    """AES-256-GCM under envelope keys; the key's id is stored beside."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The ids of the secrets at hand, the current one's first."""
        ...

    @property
    def in_force(self) -> str:
        """The id of the secret that seals now."""
        ...

    @property
    def stamp(self) -> bytes:
        """How everything begins that is sealed under the secret in force in the present form."""
        ...

    def use(self, key: str) -> None:
        """Seal under that secret from now on."""
        ...

    def key_of(self, sealed: bytes) -> str:
        """Return the ID of the secret that sealed the value. Raises ValueError for a value that was not sealed."""
        ...

    def seal(self, value: Mapping[str, Any], owner: str, destination: str = "", *, key: str = "") -> bytes:
        """Seal for one owner (the id of a source, say), and for one destination if it is to be sent nowhere else.

        `key` is the id of another secret than the one in force.
        """
        ...

    def open(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        """Open what `seal` gave; what was sealed before destinations were bound has none yet.

        Raises ValueError when it was tampered with, sealed for another owner or destination, or by a key not at hand.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredRing:
    """The sealed key ring, and since when it is as it is."""

    sealed: bytes
    changed_at: datetime


class KeyRings(Protocol):
    """The one key ring of a deployment, and who must be able to open it."""

    async def read(self) -> StoredRing | None:
        """Return the ring, or None before there is one."""
        ...

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        """Put it in the place of `expected` (None: of nothing); False, and nothing is done, where another one stands."""
        ...

    async def has_api_keys(self) -> bool:
        """Whether any API key is kept."""
        ...

    async def lacking(self, key: str) -> int:
        """How many connections belong to processes that do not know the secret of that id."""
        ...


class SealedValues(Protocol):
    """Across tenants: what is sealed, but the key ring."""

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        """Return the next values after `after` that do not start with the stamp, in a stable order."""
        ...

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        """Put `fresh` in its place; False, and nothing is done, when it is no longer what it was."""
        ...

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        """How many values of each kind are sealed under each secret, by its id."""
        ...
