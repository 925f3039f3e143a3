"""Webhooks and what comes of them: one table, which the clients of both languages are held to."""

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Any

BODY = '{"type":"x.y"}'
KEY = b"k" * 24
WELL, REFUSED, NO_SECRET = "well", "refused", "no secret"


def secret_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


SECRET = secret_of(KEY)


def signed(key: bytes, body: str = BODY, id: str = "evt_1", at: str | None = None) -> dict[str, str]:
    """The headers of a webhook that this key has signed."""
    stamp = at or str(int(time.time()))
    digest = hmac.digest(key, f"{id}.{stamp}.{body}".encode(), hashlib.sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


@dataclass(frozen=True)
class Case:
    """What came, the secret that is given, and what becomes of it."""

    name: str
    headers: dict[str, str]
    secret: Any
    comes: str
    body: str = BODY


def cases() -> list[Case]:
    """Create the cases on demand, since their times are relative to now."""
    ours = signed(KEY)
    signature = ours["webhook-signature"]
    deep = "[" * 100_000
    return [
        Case("ours", ours, SECRET, WELL),
        Case("one of two secrets", ours, [secret_of(b"o" * 24), SECRET], WELL),
        Case("a secret out of a file", ours, SECRET + "\n", WELL),
        Case("two headers in one", ours | {"webhook-signature": f"v1,AAAA, {signature}"}, SECRET, WELL),
        Case("two headers in one, ours first", ours | {"webhook-signature": f"{signature}, v1,AAAA"}, SECRET, WELL),
        Case("signed by another", signed(b"o" * 24), SECRET, REFUSED),
        Case("forged, no secrets", signed(b""), [], REFUSED),
        Case("forged, empty secret", signed(b""), "", NO_SECRET),
        Case("forged, secret of a prefix", signed(b""), "whsec_", NO_SECRET),
        Case("forged, secret of blanks", signed(b""), " \n", NO_SECRET),
        Case("forged, no secret at all", signed(b""), None, NO_SECRET),
        Case("forged, one empty secret of two", signed(b""), [SECRET, ""], NO_SECRET),
        Case("ours, one empty secret of two", ours, [SECRET, ""], NO_SECRET),
        Case("a secret of 15 bytes", signed(b"k" * 15), secret_of(b"k" * 15), NO_SECRET),
        Case("a secret of 16 bytes", signed(b"k" * 16), secret_of(b"k" * 16), WELL),
        Case("half a sign in the id", ours | {"webhook-id": "\udcff"}, SECRET, REFUSED),
        Case("half a sign in the signature", ours | {"webhook-signature": "v1,\udcff"}, SECRET, REFUSED),
        Case("half a sign in the body", ours, SECRET, REFUSED, "\udcff"),
        Case("no digit in the time", ours | {"webhook-timestamp": "²"}, SECRET, REFUSED),
        Case("signed, far too deep", signed(KEY, deep), SECRET, REFUSED, deep),
        Case("signed, no JSON", signed(KEY, "<html>"), SECRET, REFUSED, "<html>"),
    ]
