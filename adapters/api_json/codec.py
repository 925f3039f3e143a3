"""Serialisation of rows as JSON."""

from decimal import Decimal
from typing import Any

import msgspec


class JsonCodec:
    """Codec that encodes and decodes values as JSON by means of msgspec; fractions are exact decimals."""

    def __init__(self) -> None:
        self.encode = msgspec.json.Encoder(decimal_format="number").encode
        self._decode = msgspec.json.Decoder(float_hook=Decimal).decode

    def decode(self, data: bytes) -> Any:
        """Decode JSON. Raises ValueError if the data is not JSON."""
        return self._decode(data)
