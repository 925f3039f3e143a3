"""Against requests that another site makes in a person's name (OWASP: cross-site request forgery): where from, and a token."""

import hmac
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from domain.kernel.errors import PermissionDenied
from domain.secrets.keys import SigningKeys
from entrypoints.console.asked import Asked, Values

FIELD: Final = "csrf"
"""The name of the form's field, and behind `x-` of the header."""
_PURPOSE: Final = b"joinery console: "
SAFE: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""


class ForgedRequest(PermissionDenied):
    """This request does not come from a page of the console that belongs to your session. Go back, load the page again, and send it once more."""


class Signatures:
    """Short keyed hashes for cookies and forms, each for one purpose; those of a former key count for as long as it does."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def sign(self, purpose: str, text: str) -> str:
        """The text's signature for that purpose: 32 hexadecimal characters."""
        return self._made(self._keys.current, purpose, text)

    def holds(self, purpose: str, text: str, signature: str) -> bool:
        """Whether the signature was made here."""
        keys = (self._keys.current, *(former.key for former in self._keys.former))
        given = signature.encode("utf-8", "replace")
        return any(hmac.compare_digest(self._made(key, purpose, text).encode(), given) for key in keys)

    @staticmethod
    def _made(key: bytes, purpose: str, text: str) -> str:
        own = hmac.digest(key, _PURPOSE + purpose.encode(), sha256)
        return hmac.digest(own, text.encode("utf-8", "surrogatepass"), sha256).hex()[:32]


class ForgeryCheck:
    """Refuses what changes something and does not come from a page of the console."""

    def __init__(self, signatures: Signatures, base_url: str) -> None:
        self._signatures = signatures
        self._host = urlsplit(base_url).netloc

    def token(self, session: str) -> str:
        """What the forms of that session carry; `session` is its id, empty for somebody who is not signed in."""
        return self._signatures.sign("form", session)

    def check_place(self, asked: Asked) -> None:
        """Refuse what the browser says comes from another site. Raises ForgedRequest."""
        site = asked.headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            raise ForgedRequest
        origin = asked.headers.get("origin")
        if origin is None:
            # Every browser tells one of the two with a form; who tells neither is no browser, and has no cookie to misuse.
            if site is None:
                raise ForgedRequest
            return
        try:
            place = urlsplit(origin).netloc
        except ValueError:
            raise ForgedRequest from None
        if place not in (asked.headers.get("host", ""), self._host):
            raise ForgedRequest

    def check_token(self, asked: Asked, values: Values, session: str) -> None:
        """Refuse a form without the session's token. Raises ForgedRequest."""
        given = asked.headers.get(f"x-{FIELD}") or values[FIELD]
        if not self._signatures.holds("form", session, given):
            raise ForgedRequest
