"""Security of the console: signatures, cookies, CSRF protection, safe redirects and Content-Security-Policy."""

from collections.abc import Iterable
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote, urlsplit

from itsdangerous import Signer, URLSafeSerializer
from werkzeug.http import dump_cookie

from domain.kernel.errors import PermissionDenied
from domain.secrets.keys import SigningKeys
from entrypoints.console.request import ConsoleRequest, FormData
from entrypoints.http.exchange import HeaderList

Header = tuple[bytes, bytes]
CSRF_FIELD = "csrf"
"""Name of the form field with the CSRF token. The header with the token is named `x-csrf`."""
_FORM_PURPOSE = "form2"
"""Purpose of CSRF tokens. A new number, after fields have changed, refuses forms of other releases instead of misreading them."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
"""HTTP methods without side effects."""
HOME_PATH = "/console"
SIGN_IN_PATH = "/console/sign-in"
_INTERNAL_PATHS = (HOME_PATH, "/oauth/authorize", "/oauth/device")
"""Paths of the console; redirects may lead to these paths and to paths below them."""
SESSION_VERSION_COOKIE = "joinery-look"
"""Name of a cookie whose value is part of the cache key of sessions.

The value is replaced after a change of the session's organisation or mode, so that no process uses an outdated session.
"""
THEME_COOKIE = "joinery-theme"
"""Name of the cookie with the person's colour theme."""
NOTICE_COOKIE = "joinery-notice"
"""Name of the cookie with the notice that the next page shows."""
MAX_FILE_FORMS = 64
"""Maximum number of forms with files that this process handles at a time."""
MAX_FILE_FORMS_PER_ORGANISATION = 4
"""Maximum number of forms with files of one organisation that this process handles at a time."""
SECURITY_HEADERS: Final[HeaderList] = [
    (b"x-content-type-options", b"nosniff"),
    # `same-origin`, as with `no-referrer` browsers send `Origin: null` with our own forms.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), interest-cohort=()"),
]
"""Security headers of every response."""
STRIPE_ORIGINS: Final[dict[str, tuple[str, ...]]] = {
    "script_origins": ("https://js.stripe.com", "https://*.js.stripe.com"),
    "frame_origins": ("https://js.stripe.com", "https://*.js.stripe.com", "https://hooks.stripe.com"),
    "connect_origins": ("https://api.stripe.com",),
}
"""Arguments of `build_content_policy` for the form in which a card is entered (docs.stripe.com/security/guide)."""
_MAX_ORIGINS = 40


def build_file_headers(media_type: str, name: str) -> HeaderList:
    """Return the headers of a file that the browser saves under a name of ASCII characters."""
    return [
        (b"content-type", media_type.encode()),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"cache-control", b"no-store"),
        *SECURITY_HEADERS,
    ]


class ValueSigner:
    """Signer of values with the service's keys. A signature is valid for one purpose only, and until its key is deleted."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def _build_serializer(self, purpose: str) -> URLSafeSerializer:
        """Return the serialiser that signs with the current key, and also accepts signatures by former keys."""
        keys = [*(former.key for former in reversed(self._keys.former)), self._keys.current]
        options = {"digest_method": sha256, "key_derivation": "hmac"}
        return URLSafeSerializer(keys, f"joinery console: {purpose}", signer=Signer, signer_kwargs=options)

    def sign_value(self, purpose: str, value: Any) -> str:
        """Return a JSON value as signed text, from which `read_signed_value` returns the value."""
        return str(self._build_serializer(purpose).dumps(value))

    def read_signed_value(self, purpose: str, text: str) -> Any:
        """Return the value in a signed text; None if the signature is invalid for the purpose."""
        serializer = self._build_serializer(purpose)
        # Errors of `loads` are part of a reference cycle, which would keep resources of a failed request open.
        return serializer.loads(text) if serializer.make_signer().validate(text) else None

    def create_signature(self, purpose: str, text: str) -> str:
        """Return the signature of a text for a purpose."""
        return self._build_serializer(purpose).make_signer().get_signature(text).decode()

    def is_valid(self, purpose: str, text: str, signature: str) -> bool:
        """Return whether a signature of the text is valid for the purpose."""
        return self._build_serializer(purpose).make_signer().verify_signature(text.encode(), signature)


class ForgedRequest(PermissionDenied):
    """This request doesn't come from a console page of your session. Go back, reload the page and try again."""


class ForgeryCheck:
    """Protection of requests with side effects against cross-site request forgery (OWASP)."""

    def __init__(self, signatures: ValueSigner, base_url: str) -> None:
        self._signatures, self._host = signatures, urlsplit(base_url).netloc

    def create_token(self, session_id: str) -> str:
        """Return the CSRF token of a session; `session_id` is empty if nobody is signed in."""
        return self._signatures.create_signature(_FORM_PURPOSE, session_id)

    def check_origin(self, request: ConsoleRequest) -> None:
        """Raise ForgedRequest if the browser reports that the request comes from another site."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        # Every browser sends one of the two headers with a form; other clients have no cookies to misuse.
        if site not in (None, "same-origin") or (site is None and origin is None):
            raise ForgedRequest
        try:
            host = None if origin is None else urlsplit(origin).netloc
        except ValueError:
            raise ForgedRequest from None
        if host is not None and host not in (request.headers.get("host", ""), self._host):
            raise ForgedRequest

    def check_token(self, request: ConsoleRequest, form: FormData, session_id: str) -> None:
        """Raise ForgedRequest if neither the form nor the headers contain the CSRF token of the session."""
        if not self._signatures.is_valid(
            _FORM_PURPOSE, session_id, request.headers.get(f"x-{CSRF_FIELD}") or form[CSRF_FIELD]
        ):
            raise ForgedRequest


class CookieBuilder:
    """Builder of headers that set cookies. Scripts cannot read the cookies (HttpOnly).

    Attributes:
        session_cookie_name: The name of the session cookie; with HTTPS, it begins with `__Host-`.
    """

    def __init__(self, base_url: str) -> None:
        self._secure = base_url.startswith("https:")
        self.session_cookie_name: str = "__Host-joinery" if self._secure else "joinery"

    def build_header(self, name: str, value: str, seconds: int | None = None) -> Header:
        """Return the header that sets a cookie.

        Args:
            name: The cookie's name.
            value: The cookie's value.
            seconds: The lifetime; None if the cookie lasts until the browser is closed, 0 to delete the cookie.
        """
        cookie = dump_cookie(
            name, value, seconds, secure=self._secure, httponly=True, samesite="Lax", sync_expires=False
        )
        return b"set-cookie", cookie.encode("latin-1")

    def build_session_version_header(self) -> Header:
        """Return the header that gives SESSION_VERSION_COOKIE a new value, so that every process reads the session again.

        Without a new value, processes would use the session's previous organisation and mode from their caches.
        """
        return self.build_header(SESSION_VERSION_COOKIE, token_hex(8))


def choose_safe_target(text: str, default: str = HOME_PATH) -> str:
    """Return the redirect target `text` if it is a path of the console, else `default` (OWASP: unvalidated redirects)."""
    path = text.partition("?")[0].partition("#")[0]
    unsafe = len(text) > 4000 or any(not "!" <= char <= "~" or char == "\\" for char in text)
    if unsafe or "//" in path or "/." in path:
        return default
    return (
        text
        if any(path == is_internal or path.startswith(is_internal + "/") for is_internal in _INTERNAL_PATHS)
        else default
    )


def build_sign_in_url(target: str) -> str:
    """Return the URL of the sign-in page that leads to the target after the sign-in."""
    return SIGN_IN_PATH if target == HOME_PATH else f"{SIGN_IN_PATH}?next={quote(target, safe='/')}"


def build_content_policy(
    image_origins: Iterable[str] = (),
    form_origins: Iterable[str] = (),
    connect_origins: Iterable[str] = (),
    script_origins: Iterable[str] = (),
    frame_origins: Iterable[str] = (),
) -> bytes:
    """Return a Content-Security-Policy (CSP level 3) that allows no inline code and no unlisted origins.

    Args:
        image_origins: Origins from which pictures may be loaded.
        form_origins: Origins to which forms may be sent or redirect.
        connect_origins: Origins to which scripts may send requests (`connect-src`).
        script_origins: Origins from which scripts may be loaded.
        frame_origins: Origins of frames in the page.
    """
    frames = _join_origins(frame_origins)
    return (
        f"default-src 'none'; style-src 'self'; script-src 'self'{_join_origins(script_origins)}; font-src 'self'; manifest-src 'self'; "
        f"{f'frame-src{frames}; ' if frames else ''}"
        f"img-src 'self' data:{_join_origins(image_origins)}; connect-src 'self'{_join_origins(connect_origins)}; form-action 'self'{_join_origins(form_origins)}; "
        "frame-ancestors 'none'; base-uri 'none'"
    ).encode("ascii")


def _join_origins(origins: Iterable[str]) -> str:
    """Return the origins as a suffix of a directive. Origins with characters that separate directives are omitted."""
    valid_origins = {one for one in origins if one and all("!" <= char <= "~" and char not in ";,'\"" for char in one)}
    return "".join(f" {origin}" for origin in sorted(valid_origins)[:_MAX_ORIGINS])
