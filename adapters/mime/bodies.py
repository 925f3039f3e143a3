"""Body of a part, decoded by its transfer encoding."""

import binascii
import re

_WHITE = bytes(range(33))
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_BROKEN = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]{0,80}\n|[ \t]{0,80}\Z)")


def decoded(body: bytes, encoding: str) -> bytes | None:
    """Return the content, or None if it is damaged: a partial table would withdraw the missing items."""
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
