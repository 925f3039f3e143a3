"""Sealing credentials so that the database alone gives nothing away."""

from collections.abc import Mapping
from typing import Any, Protocol


class Vault(Protocol):
    """AES-256-GCM under envelope keys; the key's id is stored beside."""

    def seal(self, value: Mapping[str, Any], owner: str, destination: str = "") -> bytes:
        """Seal for one owner (the id of a source, say), and for one destination if it is to be sent nowhere else."""
        ...

    def open(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        """Open what `seal` gave; what was sealed before destinations were bound has none yet.

        Raises ValueError when it was tampered with, sealed for another owner or destination, or by a key not at hand.
        """
        ...
