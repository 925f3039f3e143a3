"""Apps, grants, codes and tokens (docs/oauth.md).

Secrets, codes and tokens are stored as keyed hashes only (`digest`); the texts are shown once.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.access.model import SCOPES
from domain.audit.model import Audited

ACCESS_SECONDS = 600
CODE_SECONDS = 60
DEVICE_SECONDS = 600
POLL_SECONDS = 5
IDLE = timedelta(days=30)
"""Lifetime of an unused refresh token."""
ABSOLUTE = timedelta(days=180)
"""Lifetime of a sign-in regardless of refreshes; a device's is twice as long."""
GRACE = timedelta(seconds=10)
"""Period in which a client may repeat a refresh whose response it lost."""
MOST_APPS = 100
"""Maximum number of apps of one organisation."""
UNUSED = timedelta(days=30)
"""Time without a sign-in after which a self-registered app is deleted."""

AUTHORIZATION_CODE = "authorization_code"
REFRESH_TOKEN = "refresh_token"  # noqa: S105  the name of a grant
CLIENT_CREDENTIALS = "client_credentials"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"

ACCESS_PREFIX = "svc_access_"
REFRESH_PREFIX = "svc_refresh_"
SECRET_PREFIX = "svc_client_"  # noqa: S105  how such a secret begins
CODE_PREFIX = "svc_code_"
DEVICE_PREFIX = "svc_device_"
USER_CODE_PREFIX = "svc_user_code_"
"""Prefix of a user code before hashing, which separates it from other secrets."""

DEFAULT_SCOPES = frozenset({"products:read", "sources:read", "org:read"})
"""Scopes of an app that neither requests nor registers any."""


class AppKind(StrEnum):
    """Kinds of apps, which determine whether they can keep a secret and which grants they may use."""

    WEB = "web"
    SINGLE_PAGE = "single_page"
    NATIVE = "native"
    MACHINE = "machine"

    @property
    def confidential(self) -> bool:
        """True if the app has a secret."""
        return self in (AppKind.WEB, AppKind.MACHINE)

    @property
    def grants(self) -> frozenset[str]:
        """The grant types that the app may use."""
        if self is AppKind.MACHINE:
            return frozenset({CLIENT_CREDENTIALS})
        codes = frozenset({AUTHORIZATION_CODE, REFRESH_TOKEN})
        return codes | {DEVICE_CODE} if self is AppKind.NATIVE else codes


class Origin(StrEnum):
    """How an app was registered: by an organisation, by itself, or by a metadata document at a URL."""

    ORGANISATION = "organisation"
    REGISTERED = "registered"
    DOCUMENT = "document"


class Audience(StrEnum):
    """The resource to which a token is restricted (RFC 8707): the API or the MCP endpoint."""

    API = "v1"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class App:
    """An app.

    `client_id` is its id, or the https URL of its metadata document. `scopes` are the most it may request,
    `asked_by_default` those of a request without scopes. `digest` is the keyed hash of its secret, None for a public
    app. `org` and `made_by` are its creators, None if it was not created here. `used_at` is the last sign-in,
    `fresh_until` when a document must be fetched again.
    """

    id: str
    client_id: str
    kind: AppKind
    origin: Origin
    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    created_at: datetime
    updated_at: datetime
    org: str | None = None
    made_by: str | None = None
    digest: bytes | None = None
    last4: str | None = None
    home: str | None = None
    used_at: datetime | None = None
    fresh_until: datetime | None = None

    @property
    def verified(self) -> bool:
        """True if an organisation here created the app."""
        return self.origin is Origin.ORGANISATION

    @property
    def asked_by_default(self) -> frozenset[str]:
        """The scopes of a request without any: all registered ones, unless these are all that exist."""
        return self.scopes if self.scopes != SCOPES else DEFAULT_SCOPES


@dataclass(frozen=True, slots=True)
class Grant:
    """Access that a person granted to an app in one organisation.

    At most one is active per app, organisation and person.
    """

    id: str
    org: str
    app: str
    app_name: str
    user: str
    scopes: frozenset[str]
    created_at: datetime
    updated_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """The grant behind a code or a device's sign-in."""

    user: str
    org: str
    grant: str


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code, usable once and bound to app, redirect URI, challenge (S256), audience and consent.

    `family` is that of its tokens.
    """

    digest: bytes
    app: str
    consent: Consent
    redirect_uri: str
    challenge: str
    scopes: frozenset[str]
    audience: Audience | None
    created_at: datetime
    expires_at: datetime
    family: str
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """All tokens of one sign-in, or of one request of a machine app; they end together.

    `user` and `grant` are None for a machine app. `ended` is the reason: `revoked` or `reuse`.
    """

    id: str
    app: str
    org: str
    user: str | None
    grant: str | None
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    ended: str | None = None


class TokenKind(StrEnum):
    """Kinds of tokens."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a family.

    `parent` is the digest of the refresh token that it was issued for. `used_at` is the first use of a refresh token.
    `ended_at`: revoked, or replaced when its parent was repeated.
    """

    digest: bytes
    family: str
    kind: TokenKind
    scopes: frozenset[str]
    audience: Audience | None
    created_at: datetime
    expires_at: datetime
    parent: bytes | None = None
    used_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldToken:
    """A token with its family; `succeeded` says whether a token issued for this refresh token was used already."""

    token: Token
    family: Family
    succeeded: bool = False

    def in_force(self, now: datetime) -> bool:
        """Return whether the token is active at that moment."""
        over = self.token.ended_at or self.family.ended_at
        return over is None and now < min(self.token.expires_at, self.family.expires_at)

    def may_refresh(self, now: datetime) -> bool:
        """Return whether the token may be refreshed: it is unused, or the client repeats a refresh right away.

        A repetition is accepted within GRACE and while no token of the first refresh was used. Its tokens replace the
        first ones, so that there is one line of descent only, and use of a replaced token reveals a theft.
        """
        if not self.in_force(now):
            return False
        used = self.token.used_at
        return used is None or (now - used <= GRACE and not self.succeeded)

    def is_reuse(self, now: datetime) -> bool:
        """Return whether presenting the refresh token is a reuse, after which the family must end (RFC 9700 §4.14)."""
        if self.family.ended_at is not None:
            return False
        return self.token.ended_at is not None or (self.token.used_at is not None and not self.may_refresh(now))


@dataclass(frozen=True, slots=True)
class Device:
    """A device authorization request.

    `approved` is the person's decision, None until then. `interval` is the minimum of seconds between two polls; it
    grows if the device polls faster (RFC 8628 §3.5).
    """

    digest: bytes
    user_code: bytes
    app: str
    scopes: frozenset[str]
    audience: Audience | None
    created_at: datetime
    expires_at: datetime
    family: str
    interval: int = POLL_SECONDS
    polled_at: datetime | None = None
    approved: bool | None = None
    consent: Consent | None = None
    used_at: datetime | None = None

    def too_soon(self, now: datetime) -> bool:
        """Return whether the device polls faster than its interval, with a tolerance of one second."""
        return self.polled_at is not None and now < self.polled_at + timedelta(seconds=self.interval - 1)

    def polled(self, now: datetime) -> "Device":
        """Return the request after another poll."""
        longer = 5 if self.too_soon(now) else 0
        return replace(self, polled_at=now, interval=self.interval + longer)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token as a credential (domain.access.model.Credential), valid from any address."""

    expires_at: datetime | None
    revoked_at: datetime | None
    networks: tuple[str, ...] = ()


APP = Audited("oauth_app", ("name", "kind", "redirect_uris", "scopes", "last4"))
GRANT = Audited("oauth_grant", ("app", "app_name", "user", "scopes", "revoked_at"))


def scopes_of(text: str) -> frozenset[str]:
    """Return the scopes of a space-separated list (RFC 6749 §3.3)."""
    return frozenset(text.split())


def scope_text(scopes: frozenset[str]) -> str:
    """Format scopes as a space-separated list in alphabetical order."""
    return " ".join(sorted(scopes))
