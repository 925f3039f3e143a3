"""The headers that every page of the console has: nothing inline, nothing from elsewhere but what a page names."""

from collections.abc import Iterable
from typing import Final

from entrypoints.http.exchange import HeaderList

GUARDED: Final[HeaderList] = [
    (b"x-content-type-options", b"nosniff"),
    # `same-origin`, as with `no-referrer` browsers send `Origin: null` with our own forms.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), interest-cohort=()"),
]
_MOST_SOURCES: Final = 40


def content_policy(pictures: Iterable[str] = (), targets: Iterable[str] = (), connect: Iterable[str] = ()) -> bytes:
    """The Content-Security-Policy (CSP level 3). `pictures`, `targets` and `connect` are origins beside our own.

    Pictures are shown from there, forms may lead there, scripts may send there. What is no plain origin is left out.
    """
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; manifest-src 'self'; "
        f"img-src 'self' data:{_listed(pictures)}; connect-src 'self'{_listed(connect)}; form-action 'self'{_listed(targets)}; "
        "frame-ancestors 'none'; base-uri 'none'"
    ).encode("ascii")


def _listed(origins: Iterable[str]) -> str:
    plain = sorted({origin for origin in origins if is_plain(origin)})
    return "".join(f" {origin}" for origin in plain[:_MOST_SOURCES])


def is_plain(origin: str) -> bool:
    """Whether the text is safe inside a policy: printable ASCII without separators of its grammar."""
    return bool(origin) and all("!" <= char <= "~" and char not in ";,'\"" for char in origin)
