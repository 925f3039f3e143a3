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
CSRF = "csrf"
"""The name of the form field; with the prefix `x-`, of the header."""
SAFE = frozenset({"GET", "HEAD"})
"""Methods without side effects."""
HOME = "/console"
SIGN_IN = "/console/sign-in"
_OURS = (HOME, "/oauth/authorize", "/oauth/device")
VIEW = "joinery-look"
"""Cookie that changes with the organisation or mode, so that no process serves a cached session."""
THEME = "joinery-theme"
NOTICE = "joinery-notice"
MOST_FILES = 64
MOST_FILES_OF_ONE = 4
"""Maximum number of forms with files that are processed at a time: in total, and of one organisation."""
GUARDED: Final[HeaderList] = [
    (b"x-content-type-options", b"nosniff"),
    # `same-origin`, as with `no-referrer` browsers send `Origin: null` with our own forms.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), interest-cohort=()"),
]
_MOST_ORIGINS = 40


class Signatures:
    """Signer of values, each for one purpose; signatures of a former key are valid as long as that key is."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        keys = [*(former.key for former in reversed(self._keys.former)), self._keys.current]
        options = {"digest_method": sha256, "key_derivation": "hmac"}
        return URLSafeSerializer(keys, f"joinery console: {purpose}", signer=Signer, signer_kwargs=options)

    def write(self, purpose: str, value: Any) -> str:
        """Return a JSON value as signed text."""
        return str(self._serializer(purpose).dumps(value))

    def read(self, purpose: str, text: str) -> Any:
        """Return the value of a signed text; None if the signature is invalid."""
        serializer = self._serializer(purpose)
        # Errors of `loads` are part of a reference cycle, which would keep resources of a failed request open.
        return serializer.loads(text) if serializer.make_signer().validate(text) else None

    def sign(self, purpose: str, text: str) -> str:
        """Return the text's signature for the purpose."""
        return self._serializer(purpose).make_signer().get_signature(text).decode()

    def holds(self, purpose: str, text: str, signature: str) -> bool:
        """Return whether the signature is valid."""
        return self._serializer(purpose).make_signer().verify_signature(text.encode(), signature)


class ForgedRequest(PermissionDenied):
    """This request doesn't come from a console page of your session. Go back, reload the page and try again."""


class ForgeryCheck:
    """Protection against cross-site request forgery (OWASP) of requests with side effects."""

    def __init__(self, signatures: Signatures, base_url: str) -> None:
        self._signatures, self._host = signatures, urlsplit(base_url).netloc

    def token(self, session: str) -> str:
        """Return the token of a session's forms; `session` is its ID, empty if nobody is signed in."""
        return self._signatures.sign("form", session)

    def check_origin(self, request: ConsoleRequest) -> None:
        """Reject requests that the browser reports as coming from another site. Raises ForgedRequest."""
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

    def check_token(self, request: ConsoleRequest, form: FormData, session: str) -> None:
        """Reject a form without the session's token. Raises ForgedRequest."""
        if not self._signatures.holds("form", session, request.headers.get(f"x-{CSRF}") or form[CSRF]):
            raise ForgedRequest


class Cookies:
    """Builder of cookies that scripts can't read. `session` is the session cookie's name, with `__Host-` for HTTPS."""

    def __init__(self, base_url: str) -> None:
        self._secure = base_url.startswith("https:")
        self.session: str = "__Host-joinery" if self._secure else "joinery"

    def set(self, name: str, value: str, seconds: int | None = None) -> Header:
        """Return the header that sets a cookie; None seconds keeps it until the browser closes, 0 deletes it."""
        cookie = dump_cookie(
            name, value, seconds, secure=self._secure, httponly=True, samesite="Lax", sync_expires=False
        )
        return b"set-cookie", cookie.encode("latin-1")

    def view(self) -> Header:
        """Return the header that makes every process reload the session."""
        return self.set(VIEW, token_hex(8))


def safe_target(text: str, otherwise: str = HOME) -> str:
    """Return the target if it is a page of the console, else `otherwise` (OWASP: unvalidated redirects)."""
    path = text.partition("?")[0].partition("#")[0]
    unsafe = len(text) > 4000 or any(not "!" <= char <= "~" or char == "\\" for char in text)
    if unsafe or "//" in path or "/." in path:
        return otherwise
    return text if any(path == ours or path.startswith(ours + "/") for ours in _OURS) else otherwise


def sign_in_target(target: str) -> str:
    """Return the address of the sign-in page that redirects to the target."""
    return SIGN_IN if target == HOME else f"{SIGN_IN}?next={quote(target, safe='/')}"


def content_policy(pictures: Iterable[str] = (), targets: Iterable[str] = (), connect: Iterable[str] = ()) -> bytes:
    """Return the Content-Security-Policy (CSP level 3), which allows no inline code and no other origins than these.

    Args:
        pictures: Origins of pictures.
        targets: Origins to which forms may lead.
        connect: Origins to which scripts may send requests.

    """
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; manifest-src 'self'; "
        f"img-src 'self' data:{_listed(pictures)}; connect-src 'self'{_listed(connect)}; form-action 'self'{_listed(targets)}; "
        "frame-ancestors 'none'; base-uri 'none'"
    ).encode("ascii")


def _listed(origins: Iterable[str]) -> str:
    """Return the origins as part of a policy, without those that contain separators of its grammar."""
    plain = {one for one in origins if one and all("!" <= char <= "~" and char not in ";,'\"" for char in one)}
    return "".join(f" {origin}" for origin in sorted(plain)[:_MOST_ORIGINS])
