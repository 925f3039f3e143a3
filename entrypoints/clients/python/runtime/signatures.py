"""Verification of webhook signatures by the Standard Webhooks specification 1.0.0."""

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
_MIN_KEY_BYTES = 16
"""Minimum length of a key in bytes. Shorter keys, such as the empty key of the secret `whsec_`, can be guessed."""


class HeaderFields(Protocol):
    """Headers of a request, such as the header mapping of a web framework or `BaseHTTPRequestHandler.headers`."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the names and values of the headers."""


def verify_event(
    body: bytes | str, headers: HeaderFields, secret: str | Iterable[str], tolerance: float = 300.0
) -> Any:
    """Verify the signature of a webhook request, and return the event in the body.

    Args:
        body: The request body as it was received.
        headers: The request's headers.
        secret: The signing secret, or several secrets, one of which must match.
        tolerance: Maximum difference between the time in the headers and now, in seconds.

    Raises:
        WebhookVerificationError: A header is missing, the time differs too much, no signature matches, or the body is not JSON.
        ValueError: A secret is empty or invalid.
    """
    keys = [_decode_secret(one) for one in ([secret] if secret is None or isinstance(secret, str) else secret)]
    if not tolerance >= 0:  # also rejects NaN, which would accept any age
        raise ValueError("The tolerance must be a number of seconds, 0 or more.")
    fields = {name.lower(): value for name, value in headers.items()}
    id, stamp, signatures = (
        _require_header(fields, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    _check_time(stamp, tolerance)
    content = _encode_text(body) if isinstance(body, str) else bytes(body)
    signed = _encode_text(f"{id}.{stamp}.") + content
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    parts = (one.rstrip(",").partition(",") for one in signatures.split())  # proxies join two headers with a comma
    offered = [_encode_text(text) for mark, _, text in parts if mark == "v1"]
    matches = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in offered]
    if not any(matches):
        raise WebhookVerificationError(
            "No signature of the webhook matches the secret. Check the secret, and pass the body exactly as received."
        )
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise WebhookVerificationError("The webhook's body is not JSON.") from None


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # some servers pass headers on undecoded
        raise WebhookVerificationError(
            "The webhook's body or headers contain characters that cannot be encoded as UTF-8."
        ) from None


def _require_header(fields: Mapping[str, str], name: str) -> str:
    if not fields.get(name):
        raise WebhookVerificationError(f"The header {name} is missing.")
    return fields[name]


def _check_time(stamp: str, tolerance: float) -> None:
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise WebhookVerificationError("The header webhook-timestamp is not a Unix timestamp in seconds.")
    difference = time.time() - int(stamp)
    if abs(difference) > tolerance:
        raise WebhookVerificationError(
            f"The webhook's timestamp is {abs(difference):.0f} s in the {'past' if difference > 0 else 'future'}, "
            f"more than the tolerance of {tolerance:g} s. Check this machine's clock."
        )


def _decode_secret(secret: str | None) -> bytes:
    if not secret:
        raise ValueError("A webhook secret is empty. Check the setting that contains it.")
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < _MIN_KEY_BYTES:
        raise ValueError(
            "A webhook secret must be `whsec_` and base64 of at least 16 bytes, as shown when the endpoint was created."
        )
    return key
