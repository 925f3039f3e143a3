"""Decoding of the body of a message's part by its Content-Transfer-Encoding."""

import binascii
import re

_WHITESPACE = bytes(range(33))
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_INVALID_QUOTED_PRINTABLE = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]{0,80}\n|[ \t]{0,80}\Z)")


def decode_body(body: bytes, encoding: str) -> bytes | None:
    """Decode a body by its transfer encoding; return None if the body is damaged or the encoding is unknown."""
    # A damaged body is not decoded in part, because the items missing from a partial table would be withdrawn.
    if encoding == "base64":
        return _decode_base64(body)
    if encoding == "quoted-printable":
        return None if _INVALID_QUOTED_PRINTABLE.search(body) else binascii.a2b_qp(body)
    return body if encoding in ("", "7bit", "8bit", "binary") else None


def _decode_base64(body: bytes) -> bytes | None:
    packed = body.translate(None, _WHITESPACE)
    if len(packed) % 4 or not _BASE64.fullmatch(packed):
        return None
    try:
        return binascii.a2b_base64(packed)
    except binascii.Error:
        return None
