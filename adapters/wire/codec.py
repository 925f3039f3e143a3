"""Rows as JSON bytes."""

from decimal import Decimal
from typing import Any

import msgspec


class JsonCodec:
    """msgspec's JSON with exact fractions."""

    def __init__(self) -> None:
        self.encode = msgspec.json.Encoder(decimal_format="number").encode
        self._decode = msgspec.json.Decoder(float_hook=Decimal).decode

    def decode(self, data: bytes) -> Any:
        """The value again. Raises ValueError."""
        return self._decode(data)
