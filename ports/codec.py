"""Rows as bytes, for spools and fingerprints."""

from typing import Any, Protocol


class Codec(Protocol):
    """Encoding is stable: equal values give equal bytes, which hold no line break."""

    def encode(self, value: Any) -> bytes:
        """The value (text, exact numbers, lists, mappings with text keys, None) as bytes."""
        ...

    def decode(self, data: bytes) -> Any:
        """The value again; fractions come as Decimal. Raises ValueError."""
        ...
