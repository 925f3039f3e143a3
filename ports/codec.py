"""Serialisation of rows, for spools and fingerprints."""

from typing import Any, Protocol


class Codec(Protocol):
    """Encoder and decoder of values; equal values have equal encodings, and encodings contain no line breaks."""

    def encode(self, value: Any) -> bytes:
        """Encode texts, exact numbers, None, and lists and mappings (with text keys) of these."""
        ...

    def decode(self, data: bytes) -> Any:
        """Decode a value; fractions become Decimal. Raises ValueError for invalid data."""
        ...
