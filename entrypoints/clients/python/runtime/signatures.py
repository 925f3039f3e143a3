"""Verifies webhooks by the Standard Webhooks specification 1.0.0."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from .errors import WebhookVerificationError

_PREFIX = "whsec_"
_LEAST_BYTES = 16
"""Keys that are shorter, such as that of a secret that was never set, anybody could guess."""


class HeaderFields(Protocol):
    """Headers as frameworks have them: mappings, and the messages of Python's own http.server."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names and values."""


def verified(body: bytes | str, headers: HeaderFields, secret: str | Iterable[str], tolerance: float = 300.0) -> Any:
    """The event of a webhook that one of the secrets has signed.

    `body` is what came, before any parsing. Raises WebhookVerificationError when a header is missing, the time is more
    than `tolerance` seconds off, no signature fits, or the body is no JSON; ValueError when a secret is empty or not valid.
    """
    keys = [_key(one) for one in ([secret] if secret is None or isinstance(secret, str) else secret)]
    if not tolerance >= 0:  # nor NaN, which would let any age pass
        raise ValueError("The tolerance is a number of seconds, 0 or more.")
    given = {name.lower(): value for name, value in headers.items()}
    id, stamp, signatures = (_header(given, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    _check_time(stamp, tolerance)
    content = _bytes(body) if isinstance(body, str) else bytes(body)
    signed = _bytes(f"{id}.{stamp}.") + content
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    parts = (one.rstrip(",").partition(",") for one in signatures.split())  # proxies join two headers with a comma
    offered = [_bytes(text) for mark, _, text in parts if mark == "v1"]
    fits = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in offered]
    if not any(fits):
        raise WebhookVerificationError("No signature of the webhook fits the secret.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise WebhookVerificationError("The webhook's body is no JSON.") from None


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # headers that some servers hand on undecoded
        raise WebhookVerificationError("The webhook holds signs that no text has.") from None


def _header(given: Mapping[str, str], name: str) -> str:
    if not given.get(name):
        raise WebhookVerificationError(f"The header {name} is missing.")
    return given[name]


def _check_time(stamp: str, tolerance: float) -> None:
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise WebhookVerificationError("The header webhook-timestamp is no number of seconds.")
    off = time.time() - int(stamp)
    if abs(off) > tolerance:
        raise WebhookVerificationError(f"The webhook's time is {abs(off):.0f} s {'ago' if off > 0 else 'ahead'}.")


def _key(secret: str | None) -> bytes:
    if not secret:
        raise ValueError("A webhook secret is empty: is the setting that holds it there?")
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < _LEAST_BYTES:
        raise ValueError(
            "A webhook secret is `whsec_` and base64 of 16 bytes or more, as it was shown when the endpoint was made."
        )
    return key
