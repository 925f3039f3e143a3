"""Serialisation of rows, for spools and fingerprints."""

from typing import Any, Protocol


class Codec(Protocol):
    """Codec with a stable encoding: equal values give equal bytes, without line breaks."""

    def encode(self, value: Any) -> bytes:
        """Encode text, exact numbers, None, or lists and mappings (with text keys) of them."""
        ...

    def decode(self, data: bytes) -> Any:
        """Decode a value; fractions become Decimal. Raises ValueError for invalid data."""
        ...
