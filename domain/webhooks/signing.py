"""Signatures of deliveries (Standard Webhooks 1.0.0, symmetric: HMAC-SHA256 over id, timestamp and body)."""

import base64
import hmac
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "whsec_"


def key_of(secret: str) -> bytes:
    """The key's bytes in a secret `whsec_<standard base64>`. Raises ValueError."""
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)


def signature(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: `v1,<base64>` for each key, the current one first, with blanks between."""
    signed = f"{id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)
