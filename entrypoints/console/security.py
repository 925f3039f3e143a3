"""What keeps the console safe: signatures, cookies, cross-site request forgery, safe redirects, and policies of pages."""

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
"""The name of the form's field, and behind `x-` of the header."""
SAFE = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
HOME = "/console"
SIGN_IN = "/console/sign-in"
_OURS = (HOME, "/oauth/authorize", "/oauth/device")
VIEW = "joinery-look"
"""Cookie that changes with the organisation or mode, so that no process shows what it remembers of the one before."""
THEME = "joinery-theme"
NOTICE = "joinery-notice"
MOST_FILES = 64
MOST_FILES_OF_ONE = 4
"""Forms with files that are read or carried out at a time: of all, and of one organisation."""
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
    """Signs values for one purpose each; signatures of a former key hold for as long as that key counts."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        keys = [*(former.key for former in reversed(self._keys.former)), self._keys.current]
        options = {"digest_method": sha256, "key_derivation": "hmac"}
        return URLSafeSerializer(keys, f"joinery console: {purpose}", signer=Signer, signer_kwargs=options)

    def write(self, purpose: str, value: Any) -> str:
        """Return a value of JSON as signed text."""
        return str(self._serializer(purpose).dumps(value))

    def read(self, purpose: str, text: str) -> Any:
        """Return the value of a signed text; None when it was not signed here."""
        serializer = self._serializer(purpose)
        # Errors of `loads` hold on to themselves, and so to whatever a request that fails has open.
        return serializer.loads(text) if serializer.make_signer().validate(text) else None

    def sign(self, purpose: str, text: str) -> str:
        """Return the text's signature for that purpose."""
        return self._serializer(purpose).make_signer().get_signature(text).decode()

    def holds(self, purpose: str, text: str, signature: str) -> bool:
        """Return whether the signature was made here."""
        return self._serializer(purpose).make_signer().verify_signature(text.encode(), signature)


class ForgedRequest(PermissionDenied):
    """This request does not come from a page of the console that belongs to your session. Go back, load the page again, and send it once more."""


class ForgeryCheck:
    """Refuses what changes something and does not come from a page of the console (OWASP: cross-site request forgery)."""

    def __init__(self, signatures: Signatures, base_url: str) -> None:
        self._signatures, self._host = signatures, urlsplit(base_url).netloc

    def token(self, session: str) -> str:
        """Return what the forms of that session carry; `session` is its id, empty for a browser that is not signed in."""
        return self._signatures.sign("form", session)

    def check_origin(self, request: ConsoleRequest) -> None:
        """Refuse what the browser says comes from another site. Raises ForgedRequest."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        # Every browser states one of the two with a form; what states neither is no browser, and has no cookie to misuse.
        if site not in (None, "same-origin") or (site is None and origin is None):
            raise ForgedRequest
        try:
            host = None if origin is None else urlsplit(origin).netloc
        except ValueError:
            raise ForgedRequest from None
        if host is not None and host not in (request.headers.get("host", ""), self._host):
            raise ForgedRequest

    def check_token(self, request: ConsoleRequest, form: FormData, session: str) -> None:
        """Refuse a form without the session's token. Raises ForgedRequest."""
        if not self._signatures.holds("form", session, request.headers.get(f"x-{CSRF}") or form[CSRF]):
            raise ForgedRequest


class Cookies:
    """Sets cookies that scripts cannot read. `session` is the name of the session's, `__Host-` where there is HTTPS."""

    def __init__(self, base_url: str) -> None:
        self._secure = base_url.startswith("https:")
        self.session: str = "__Host-joinery" if self._secure else "joinery"

    def set(self, name: str, value: str, seconds: int | None = None) -> Header:
        """Return the header that sets a cookie; `seconds` None keeps it until the browser is closed, 0 ends it."""
        cookie = dump_cookie(
            name, value, seconds, secure=self._secure, httponly=True, samesite="Lax", sync_expires=False
        )
        return b"set-cookie", cookie.encode("latin-1")

    def view(self) -> Header:
        """Return the header that has every process read the session anew."""
        return self.set(VIEW, token_hex(8))


def safe_target(text: str, otherwise: str = HOME) -> str:
    """Return the target when it is a page of ours, else `otherwise` (OWASP: unvalidated redirects)."""
    path = text.partition("?")[0].partition("#")[0]
    unsafe = len(text) > 4000 or any(not "!" <= char <= "~" or char == "\\" for char in text)
    if unsafe or "//" in path or "/." in path:
        return otherwise
    return text if any(path == ours or path.startswith(ours + "/") for ours in _OURS) else otherwise


def sign_in_target(target: str) -> str:
    """Return the sign-in that leads back to a target."""
    return SIGN_IN if target == HOME else f"{SIGN_IN}?next={quote(target, safe='/')}"


def content_policy(pictures: Iterable[str] = (), targets: Iterable[str] = (), connect: Iterable[str] = ()) -> bytes:
    """Return the Content-Security-Policy (CSP level 3): nothing inline, and nothing from elsewhere but these origins.

    Pictures are shown from `pictures`, forms may lead to `targets`, scripts may send to `connect`. What is no plain origin
    is left out.
    """
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; manifest-src 'self'; "
        f"img-src 'self' data:{_listed(pictures)}; connect-src 'self'{_listed(connect)}; form-action 'self'{_listed(targets)}; "
        "frame-ancestors 'none'; base-uri 'none'"
    ).encode("ascii")


def _listed(origins: Iterable[str]) -> str:
    """Return the origins that are safe inside a policy: printable ASCII without separators of its grammar."""
    plain = {one for one in origins if one and all("!" <= char <= "~" and char not in ";,'\"" for char in one)}
    return "".join(f" {origin}" for origin in sorted(plain)[:_MOST_ORIGINS])
