"""Redirect URIs: which may be registered, and which match a request (RFC 9700 §2.1, RFC 8252)."""

import re
from urllib.parse import urlsplit

from domain.oauth.model import AppKind

LONGEST = 2000
MOST = 20
"""Maximum redirect URIs of one app."""
_PLAIN = re.compile(r"[!#-\[\]-~]+")
"""Visible ASCII without quotation mark and backslash, which browsers interpret differently."""
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::(\d{1,5}))?(/[^#]*)?")
_PRIVATE = re.compile(r"([a-z][a-z0-9+.-]{2,60}):(?!$)[^#]+")
_FORBIDDEN = frozenset(
    "http https javascript data vbscript file blob about ws wss ftp ftps mailto tel sms view-source chrome resource intent "
    "filesystem jar ms-appdata content".split()
)
"""Schemes that execute code, lead elsewhere, or cannot belong to an app."""


def refused(uri: str, kind: AppKind) -> str | None:
    """Return why an app of that kind may not register the URI, as a sentence, or None."""
    if not uri or len(uri) > LONGEST:
        return f"A redirect URI has 1 to {LONGEST} characters."
    if not _PLAIN.fullmatch(uri) or "#" in uri or "*" in uri:
        return "A redirect URI is an absolute URI without fragment, wildcard and anything but plain ASCII."
    if _is_loopback(uri):
        return None
    if uri.lower().startswith("https:"):
        return _refused_https(uri)
    private = _PRIVATE.fullmatch(uri)
    if kind is AppKind.NATIVE and private and private[1] not in _FORBIDDEN:
        return None
    wanted = ", or a scheme of the app's own" if kind is AppKind.NATIVE else ""
    return f"A redirect URI is https, or http on this machine (127.0.0.1, [::1], localhost){wanted}."


def _refused_https(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "The redirect URI cannot be read."
    if not uri.startswith("https://") or not host or "@" in parts.netloc:
        return "A redirect URI names a host, and no user."
    return None


def _is_loopback(uri: str) -> bool:
    found = _LOOPBACK.fullmatch(uri)
    return found is not None and int(found[2] or 80) <= 65535


def is_meant(registered: str, asked: str, kind: AppKind) -> bool:
    """Return whether the URI matches the registered one exactly; a native app's loopback URI may have any port."""
    if registered == asked:
        return True
    own, other = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(asked)
    if (
        kind is not AppKind.NATIVE
        or own is None
        or other is None
        or not _PLAIN.fullmatch(asked)
        or not _is_loopback(asked)
    ):
        return False
    return own[1] == other[1] and (own[3] or "/") == (other[3] or "/")


def chosen(registered: tuple[str, ...], asked: str, kind: AppKind) -> bool:
    """Return whether the URI is one of those registered."""
    return any(is_meant(uri, asked, kind) for uri in registered)


def host_of(uri: str) -> str:
    """Return how the target is shown to a person: the host, `this device`, or the app's own scheme."""
    if _is_loopback(uri):
        return "this device"
    parts = urlsplit(uri)
    return parts.hostname or f"{parts.scheme}: (an app on this device)"


def is_safe_to_skip(uri: str) -> bool:
    """Return whether the receiver is certain, so that earlier consent suffices.

    On this machine, and with custom schemes, any program may listen (RFC 8252 §8.6).
    """
    return uri.startswith("https://")
