"""The console's cookies: their names, and how each is set and taken away."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from entrypoints.console.forgery import Signatures

THEME: Final = "joinery-theme"
THEMES: Final = ("light", "dark")
LOOK: Final = "joinery-look"
"""Changed with every change of organisation or mode, so that no process shows what it remembers of the one before."""
NOTICE: Final = "joinery-notice"
_YEAR: Final = 365 * 86400
_LONGEST_NOTICE: Final = 600

Header = tuple[bytes, bytes]


def session_name(base_url: str) -> str:
    """The name of the session's cookie: one that browsers take over HTTPS only, where there is HTTPS."""
    return "__Host-joinery" if base_url.startswith("https:") else "joinery"


def set_cookie(name: str, value: str, *, seconds: int | None, secure: bool, path: str = "/") -> Header:
    """The header that sets a cookie that scripts cannot read; `seconds` None keeps it until the browser is closed, 0 ends it."""
    parts = [f"{name}={value}", f"Path={path}", "HttpOnly", "SameSite=Lax"]
    if secure:
        parts.append("Secure")
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    return b"set-cookie", "; ".join(parts).encode("latin-1")


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence shown once, on the next page. `tone` is good, info or bad."""

    text: str
    tone: str = "good"


class Cookies:
    """Sets and reads what the console keeps in a browser."""

    def __init__(self, base_url: str, signatures: Signatures) -> None:
        self.session = session_name(base_url)
        self._secure, self._signatures = base_url.startswith("https:"), signatures

    def signed_in(self, value: str, seconds: int) -> Header:
        """The session's cookie."""
        return set_cookie(self.session, value, seconds=seconds, secure=self._secure)

    def signed_out(self) -> Header:
        """No session."""
        return set_cookie(self.session, "", seconds=0, secure=self._secure)

    def look(self, value: str) -> Header:
        """That another organisation or mode is looked at from now on."""
        return set_cookie(LOOK, value, seconds=None, secure=self._secure)

    def theme(self, value: str) -> Header:
        """Light, dark, or (anything else) what the system says."""
        chosen = value in THEMES
        return set_cookie(THEME, value if chosen else "", seconds=_YEAR if chosen else 0, secure=self._secure)

    def notice(self, notice: Notice) -> Header:
        """The sentence for the next page."""
        text = f"{notice.tone}:{notice.text[:_LONGEST_NOTICE]}"
        packed = base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")
        signature = self._signatures.sign("notice", text)
        return set_cookie(NOTICE, f"{signature}.{packed}", seconds=60, secure=self._secure)

    def no_notice(self) -> Header:
        """That it was shown."""
        return set_cookie(NOTICE, "", seconds=0, secure=self._secure)

    def told(self, value: str) -> Notice | None:
        """The sentence that a cookie carries; None when it is not ours."""
        signature, _, packed = value.partition(".")
        try:
            text = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
        except (ValueError, binascii.Error):
            return None
        if not self._signatures.holds("notice", text, signature):
            return None
        tone, _, sentence = text.partition(":")
        return Notice(sentence, tone)
