"""A part's body as bytes: what its transfer encoding says, or nothing when that is damaged."""

import binascii
import re

_WHITE = bytes(range(33))
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_BROKEN = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]{0,80}\n|[ \t]{0,80}\Z)")


def decoded(body: bytes, encoding: str) -> bytes | None:
    """The content; None when it cannot be made out for certain: half a table would withdraw the other half."""
    if encoding == "base64":
        return _base64(body)
    if encoding == "quoted-printable":
        return None if _BROKEN.search(body) else binascii.a2b_qp(body)
    return body if encoding in ("", "7bit", "8bit", "binary") else None


def _base64(body: bytes) -> bytes | None:
    packed = body.translate(None, _WHITE)
    if len(packed) % 4 or not _BASE64.fullmatch(packed):
        return None
    try:
        return binascii.a2b_base64(packed)
    except binascii.Error:
        return None
