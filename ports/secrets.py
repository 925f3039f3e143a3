"""Sealing credentials so that the database alone gives nothing away."""

from collections.abc import Mapping
from typing import Any, Protocol


class Vault(Protocol):
    """AES-256-GCM under envelope keys; the key's id is stored beside."""

    def seal(self, credentials: Mapping[str, Any], context: str) -> bytes:
        """Seal for one source; `context` (its id) is authenticated with it."""
        ...

    def open(self, sealed: bytes, context: str) -> Mapping[str, Any]:
        """Open what `seal` gave. Raises ValueError when it was tampered with or another key sealed it."""
        ...
