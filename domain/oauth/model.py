"""Apps, what people granted them, and the codes and tokens that come of it (docs/oauth.md).

Of secrets, codes and tokens only keyed hashes are kept (`digest`); the texts are shown once.
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
"""For how long a refresh token that nobody uses lasts."""
ABSOLUTE = timedelta(days=180)
"""For how long a sign-in lasts however often it is refreshed; a device's twice as long."""
GRACE = timedelta(seconds=10)
"""For how long the client that used a refresh token may repeat itself, having lost the answer."""
MOST_APPS = 100
"""Apps of one organisation."""
UNUSED = timedelta(days=30)
"""After so long without a sign-in an app that registered itself is forgotten."""

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
"""What a user code is hashed behind, so that it is like no other secret."""

DEFAULT_SCOPES = frozenset({"products:read", "sources:read", "org:read"})
"""What an app gets that names none and has registered none."""


class AppKind(StrEnum):
    """What an app is, which tells whether it can keep a secret and how it may ask."""

    WEB = "web"
    SINGLE_PAGE = "single_page"
    NATIVE = "native"
    MACHINE = "machine"

    @property
    def confidential(self) -> bool:
        """Whether it has a secret."""
        return self in (AppKind.WEB, AppKind.MACHINE)

    @property
    def grants(self) -> frozenset[str]:
        """The grant types that it may use."""
        if self is AppKind.MACHINE:
            return frozenset({CLIENT_CREDENTIALS})
        codes = frozenset({AUTHORIZATION_CODE, REFRESH_TOKEN})
        return codes | {DEVICE_CODE} if self is AppKind.NATIVE else codes


class Origin(StrEnum):
    """How an app came to be known: an organisation made it, it registered itself, or it describes itself at a URL."""

    ORGANISATION = "organisation"
    REGISTERED = "registered"
    DOCUMENT = "document"


class Audience(StrEnum):
    """What a token is good for when it is not good for both (RFC 8707): the API, or the MCP endpoint."""

    API = "v1"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class App:
    """An app. `client_id` is how it names itself: its id, or the https URL of its document.

    `scopes` are those it may ask for at most, `asked_by_default` what it gets when it names none. `digest` is the keyed hash of
    its secret, None for a public one. `org` made it, `made_by` a person there; both None for what nobody here made.
    `used_at` is when somebody last signed in to it, `fresh_until` when a document must be fetched again.
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
        """Whether an organisation here stands behind it."""
        return self.origin is Origin.ORGANISATION

    @property
    def asked_by_default(self) -> frozenset[str]:
        """What it gets when it names no scopes: all that it registered, but not everything there is."""
        return self.scopes if self.scopes != SCOPES else DEFAULT_SCOPES


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person let an app do in one organisation; there is one in force for each app, organisation and person."""

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
    """Who let an app do something where: what a code or a device's sign-in stands for."""

    user: str
    org: str
    grant: str


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code: bound to app, redirect URI, challenge (S256), audience and consent; used once.

    `family` are the tokens that it gave.
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
    """All tokens that come of one sign-in, or of a machine app's one request. It ends as a whole.

    `user` and `grant` are None for a machine app. `ended` says why it did: `revoked`, `reuse`.
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
    """What a token is for."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a family. `parent` is the digest of the refresh token that it came of.

    `used_at` of a refresh token: when it was first used. `ended_at`: revoked, or replaced when its parent was repeated.
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
    """A token with its family; `succeeded` tells of a refresh token whether one that came of it was used already."""

    token: Token
    family: Family
    succeeded: bool = False

    def in_force(self, now: datetime) -> bool:
        """Whether it is good at that moment."""
        over = self.token.ended_at or self.family.ended_at
        return over is None and now < min(self.token.expires_at, self.family.expires_at)

    def may_refresh(self, now: datetime) -> bool:
        """Whether new tokens may be had for it: it is unused, or the same client repeats itself right away.

        A repetition is believed for GRACE and while nothing that came of the first time was used; its tokens
        take the place of the first ones, so that there is one line of descent only, and a thief or his victim
        shows by using what was replaced.
        """
        if not self.in_force(now):
            return False
        used = self.token.used_at
        return used is None or (now - used <= GRACE and not self.succeeded)

    def is_reuse(self, now: datetime) -> bool:
        """Whether somebody shows a refresh token that has done its work: two have it, so that nobody may go on."""
        if self.family.ended_at is not None:
            return False
        return self.token.ended_at is not None or (self.token.used_at is not None and not self.may_refresh(now))


@dataclass(frozen=True, slots=True)
class Device:
    """A device's request to be signed in. `approved` is what the person decided, None as long as nobody did.

    `interval` are the seconds it is to leave between two polls; it grows when they come faster (RFC 8628 §3.5).
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
        """Whether it polls faster than it was told to; a second is forgiven."""
        return self.polled_at is not None and now < self.polled_at + timedelta(seconds=self.interval - 1)

    def polled(self, now: datetime) -> "Device":
        """As it is after one more poll."""
        longer = 5 if self.too_soon(now) else 0
        return replace(self, polled_at=now, interval=self.interval + longer)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token as it is judged (domain.access.model.Credential): from any address, until it ends."""

    expires_at: datetime | None
    revoked_at: datetime | None
    networks: tuple[str, ...] = ()


APP = Audited("oauth_app", ("name", "kind", "redirect_uris", "scopes", "last4"))
GRANT = Audited("oauth_grant", ("app", "app_name", "user", "scopes", "revoked_at"))


def scopes_of(text: str) -> frozenset[str]:
    """Parse a space-separated list of scopes (RFC 6749 §3.3)."""
    return frozenset(text.split())


def scope_text(scopes: frozenset[str]) -> str:
    """Return the scopes as a space-separated, sorted list."""
    return " ".join(sorted(scopes))
