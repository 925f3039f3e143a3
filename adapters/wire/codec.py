"""Serialisation of rows as JSON."""

from decimal import Decimal
from typing import Any

import msgspec


class JsonCodec:
    """Codec with msgspec's JSON and exact fractions."""

    def __init__(self) -> None:
        self.encode = msgspec.json.Encoder(decimal_format="number").encode
        self._decode = msgspec.json.Decoder(float_hook=Decimal).decode

    def decode(self, data: bytes) -> Any:
        """Decode a value. Raises ValueError."""
        return self._decode(data)
