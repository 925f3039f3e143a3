"""Redirect URIs: which an app may register, and which match a registered one (RFC 9700 §2.1, RFC 8252)."""

import re
from urllib.parse import urlsplit

from domain.oauth.model import AppKind

MAX_URI_CHARS = 2000
"""Maximum number of characters of a redirect URI."""
MAX_REDIRECT_URIS = 20
"""Maximum number of redirect URIs of one app."""
_VISIBLE_CHARS = re.compile(r"[!#-\[\]-~]+")
"""Visible ASCII characters except quotation mark and backslash, which browsers interpret differently."""
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::(\d{1,5}))?(/[^#]*)?")
_PRIVATE = re.compile(r"([a-z][a-z0-9+.-]{2,60}):(?!$)[^#]+")
_FORBIDDEN_SCHEMES = frozenset(
    "http https javascript data vbscript file blob about ws wss ftp ftps mailto tel sms view-source chrome resource "
    "intent "
    "filesystem jar ms-appdata content".split()
)
"""Schemes that execute code, or that an app cannot own."""


def describe_refusal(uri: str, kind: AppKind) -> str | None:
    """Return a sentence that states why an app of that kind may not register the URI; None if the app may."""
    if not uri or len(uri) > MAX_URI_CHARS:
        return f"A redirect URI must have 1 to {MAX_URI_CHARS} characters."
    if not _VISIBLE_CHARS.fullmatch(uri) or "#" in uri or "*" in uri:
        return "A redirect URI must be an absolute ASCII URI without fragment and wildcard."
    if _is_loopback(uri):
        return None
    if uri.lower().startswith("https:"):
        return _describe_https_refusal(uri)
    private = _PRIVATE.fullmatch(uri)
    if kind is AppKind.NATIVE and private and private[1] not in _FORBIDDEN_SCHEMES:
        return None
    custom_scheme = ", or a private-use URI scheme" if kind is AppKind.NATIVE else ""
    return f"A redirect URI must use https, or http with a loopback host (127.0.0.1, [::1], localhost){custom_scheme}."


def _describe_https_refusal(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "The redirect URI is malformed. Write it as https://host/path."
    if not uri.startswith("https://") or not host or "@" in parts.netloc:
        return "A redirect URI must have a host and no user name."
    return None


def _is_loopback(uri: str) -> bool:
    found = _LOOPBACK.fullmatch(uri)
    return found is not None and int(found[2] or 80) <= 65535


def matches_redirect_uri(registered: str, requested: str, kind: AppKind) -> bool:
    """Return whether the requested URI equals the registered one; a native app's loopback URI may have any port."""
    if registered == requested:
        return True
    own, other = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(requested)
    if (
        kind is not AppKind.NATIVE
        or own is None
        or other is None
        or not _VISIBLE_CHARS.fullmatch(requested)
        or not _is_loopback(requested)
    ):
        return False
    return own[1] == other[1] and (own[3] or "/") == (other[3] or "/")


def is_registered(registered: tuple[str, ...], requested: str, kind: AppKind) -> bool:
    """Return whether the requested URI matches one of the registered URIs."""
    return any(matches_redirect_uri(uri, requested, kind) for uri in registered)


def describe_target(uri: str) -> str:
    """Return a text that names the target of the URI to users: the host, `this device`, or the app's custom scheme."""
    if _is_loopback(uri):
        return "this device"
    parts = urlsplit(uri)
    return parts.hostname or f"{parts.scheme}: (an app on this device)"


def is_received_by_app_only(uri: str) -> bool:
    """Return whether only the app can receive a code at the URI, so that a user who consented before sees no consent page.

    Any program on the user's device can register a custom scheme or listen at a loopback URI (RFC 8252 §8.6).
    """
    return uri.startswith("https://")
