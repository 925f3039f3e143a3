"""Webhooks and the expected results of their verification, for the clients of both languages."""

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Any

BODY = '{"type":"x.y"}'
KEY = b"k" * 24
ACCEPTED, REFUSED, NO_SECRET = "accepted", "refused", "no secret"


def encode_secret(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


SECRET = encode_secret(KEY)


def sign_webhook(key: bytes, body: str = BODY, id: str = "evt_1", at: str | None = None) -> dict[str, str]:
    """Return the headers of a webhook signed with the key."""
    stamp = at or str(int(time.time()))
    digest = hmac.digest(key, f"{id}.{stamp}.{body}".encode(), hashlib.sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


@dataclass(frozen=True)
class WebhookCase:
    """Received webhook, configured secret and expected result."""

    name: str
    headers: dict[str, str]
    secret: Any
    expected: str
    body: str = BODY


def build_cases() -> list[WebhookCase]:
    """Create the cases on demand, since their times are relative to now."""
    signed = sign_webhook(KEY)
    signature = signed["webhook-signature"]
    deep = "[" * 100_000
    return [
        WebhookCase("ours", signed, SECRET, ACCEPTED),
        WebhookCase("one of two secrets", signed, [encode_secret(b"o" * 24), SECRET], ACCEPTED),
        WebhookCase("a secret out of a file", signed, SECRET + "\n", ACCEPTED),
        WebhookCase("two headers in one", signed | {"webhook-signature": f"v1,AAAA, {signature}"}, SECRET, ACCEPTED),
        WebhookCase(
            "two headers in one, ours first", signed | {"webhook-signature": f"{signature}, v1,AAAA"}, SECRET, ACCEPTED
        ),
        WebhookCase("signed by another", sign_webhook(b"o" * 24), SECRET, REFUSED),
        WebhookCase("forged, no secrets", sign_webhook(b""), [], REFUSED),
        WebhookCase("forged, empty secret", sign_webhook(b""), "", NO_SECRET),
        WebhookCase("forged, secret of a prefix", sign_webhook(b""), "whsec_", NO_SECRET),
        WebhookCase("forged, secret of blanks", sign_webhook(b""), " \n", NO_SECRET),
        WebhookCase("forged, no secret at all", sign_webhook(b""), None, NO_SECRET),
        WebhookCase("forged, one empty secret of two", sign_webhook(b""), [SECRET, ""], NO_SECRET),
        WebhookCase("ours, one empty secret of two", signed, [SECRET, ""], NO_SECRET),
        WebhookCase("a secret of 15 bytes", sign_webhook(b"k" * 15), encode_secret(b"k" * 15), NO_SECRET),
        WebhookCase("a secret of 16 bytes", sign_webhook(b"k" * 16), encode_secret(b"k" * 16), ACCEPTED),
        WebhookCase("half a sign in the id", signed | {"webhook-id": "\udcff"}, SECRET, REFUSED),
        WebhookCase("half a sign in the signature", signed | {"webhook-signature": "v1,\udcff"}, SECRET, REFUSED),
        WebhookCase("half a sign in the body", signed, SECRET, REFUSED, "\udcff"),
        WebhookCase("no digit in the time", signed | {"webhook-timestamp": "²"}, SECRET, REFUSED),
        WebhookCase("signed, far too deep", sign_webhook(KEY, deep), SECRET, REFUSED, deep),
        WebhookCase("signed, no JSON", sign_webhook(KEY, "<html>"), SECRET, REFUSED, "<html>"),
    ]
