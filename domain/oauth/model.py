"""OAuth apps, consents, codes and tokens (docs/oauth.md).

Of secrets, codes and tokens only the keyed hashes are stored (`digest`); the plaintext is shown once.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.access.model import SCOPES
from domain.audit.model import AuditedFields

ACCESS_TOKEN_SECONDS = 600
"""Lifetime of an access token in seconds."""
CODE_SECONDS = 60
"""Lifetime of an authorization code in seconds."""
DEVICE_CODE_SECONDS = 600
"""Lifetime of a device authorization request in seconds, within which the user must approve the request."""
MIN_POLL_SECONDS = 5
"""Initial minimum interval between two polls of a device, in seconds; longer after the device polled too fast."""
REFRESH_TOKEN_LIFETIME = timedelta(days=30)
"""Lifetime of an unused refresh token."""
MAX_FAMILY_LIFETIME = timedelta(days=180)
"""Maximum lifetime of a token family, however often tokens are refreshed; for a device, the maximum is doubled."""
REFRESH_GRACE_PERIOD = timedelta(seconds=10)
"""Grace period in which a client that did not receive the response to a refresh may repeat the refresh."""
MAX_APPS = 100
"""Maximum number of apps of one organisation."""
UNUSED_APP_LIFETIME = timedelta(days=30)
"""Time without a sign-in after which an app that registered itself is deleted."""

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
"""Prefix added to a user code before hashing, so that its hash differs from those of other secrets."""

DEFAULT_SCOPES = frozenset({"products:read", "sources:read", "org:read"})
"""Scopes that a request gets if neither the request nor the app's registration names any."""


class AppKind(StrEnum):
    """Kinds of apps. The kind determines whether an app has a client secret, and which grant types it may use."""

    WEB = "web"
    SINGLE_PAGE = "single_page"
    NATIVE = "native"
    MACHINE = "machine"

    @property
    def is_confidential(self) -> bool:
        """True if apps of this kind have a client secret."""
        return self in (AppKind.WEB, AppKind.MACHINE)

    @property
    def grants(self) -> frozenset[str]:
        """The grant types that apps of this kind may use."""
        if self is AppKind.MACHINE:
            return frozenset({CLIENT_CREDENTIALS})
        codes = frozenset({AUTHORIZATION_CODE, REFRESH_TOKEN})
        return codes | {DEVICE_CODE} if self is AppKind.NATIVE else codes


class AppOrigin(StrEnum):
    """Ways in which an app is registered: by an organisation, by the app, or by a metadata document at a URL."""

    ORGANISATION = "organisation"
    REGISTERED = "registered"
    DOCUMENT = "document"


class Audience(StrEnum):
    """Resources to which a token can be restricted (RFC 8707): the API or the MCP endpoint."""

    API = "v1"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class App:
    """OAuth app.

    Attributes:
        client_id: The ID of the app, or the https URL of the app's metadata document.
        scopes: The scopes that the app may request.
        org: The organisation that created the app; None if the app was registered in another way.
        created_by: The user who created the app.
        digest: The keyed hash of the client secret; None for a public app.
        last4: The last four characters of the client secret.
        home: URL of the app's home page.
        used_at: Time of the last sign-in; stored only for apps that no organisation created.
        fresh_until: Time until which the cached metadata document is used.
    """

    id: str
    client_id: str
    kind: AppKind
    origin: AppOrigin
    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    created_at: datetime
    updated_at: datetime
    org: str | None = None
    created_by: str | None = None
    digest: bytes | None = None
    last4: str | None = None
    home: str | None = None
    used_at: datetime | None = None
    fresh_until: datetime | None = None

    @property
    def is_verified(self) -> bool:
        """True if an organisation of this service created the app; the consent page then names the organisation."""
        return self.origin is AppOrigin.ORGANISATION

    @property
    def default_scopes(self) -> frozenset[str]:
        """The scopes of a request without scopes: `scopes`, or DEFAULT_SCOPES if the app may request any scope."""
        return self.scopes if self.scopes != SCOPES else DEFAULT_SCOPES


@dataclass(frozen=True, slots=True)
class OAuthConsent:
    """Consent of a user that an app may access an organisation.

    For each app, organisation and user, at most one consent is active.
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
class ConsentReference:
    """Reference to the consent on which a code or a device's sign-in is based.

    Attributes:
        user: ID of the user who consented.
        org: ID of the organisation that the app may access.
        grant: ID of the consent, which the store calls a grant.
    """

    user: str
    org: str
    grant: str


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """Authorization code, which can be used once.

    Attributes:
        digest: Keyed hash of the code.
        app: ID of the app that may use the code.
        challenge: The PKCE challenge (S256) that the app must meet.
        family: ID that the token family will have.
    """

    digest: bytes
    app: str
    consent: ConsentReference
    redirect_uri: str
    challenge: str
    scopes: frozenset[str]
    audience: Audience | None
    created_at: datetime
    expires_at: datetime
    family: str
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokenFamily:
    """All tokens of one sign-in, or of one request of a machine-to-machine app; the tokens are revoked together.

    Attributes:
        app: ID of the app.
        user: The user who signed in; None for a machine-to-machine app.
        grant: ID of the user's consent, which the store calls a grant; None for a machine-to-machine app.
        ended_at: When the tokens were revoked, or None.
        ended: Reason why the tokens were revoked: `revoked` on request, or `reuse` of a code or refresh token.
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
    """Kinds of OAuth tokens."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Token:
    """Token of a token family.

    Attributes:
        family: ID of the token family.
        parent: Digest of the refresh token for which this token was issued.
        used_at: When a refresh token was first used.
        ended_at: When the token was revoked, or replaced because the app repeated the refresh with `parent`.
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
class TokenWithFamily:
    """Stored token with its token family.

    `has_used_successor` is whether a token that was issued for this refresh token has been used.
    """

    token: Token
    family: TokenFamily
    has_used_successor: bool = False

    def is_active(self, now: datetime) -> bool:
        """Return whether the token and its family are neither revoked nor expired at `now`."""
        over = self.token.ended_at or self.family.ended_at
        return over is None and now < min(self.token.expires_at, self.family.expires_at)

    def can_be_refreshed(self, now: datetime) -> bool:
        """Return whether the refresh token can be used: it is unused, or the app repeats the first use.

        A repetition is accepted within REFRESH_GRACE_PERIOD, while no token of the first refresh was used.
        """
        # The new tokens replace those of the first refresh, so that the use of a replaced token reveals a theft.
        if not self.is_active(now):
            return False
        used = self.token.used_at
        return used is None or (now - used <= REFRESH_GRACE_PERIOD and not self.has_used_successor)

    def is_reuse(self, now: datetime) -> bool:
        """Return whether using the refresh token at `now` is a reuse, which suggests a theft (RFC 9700 §4.14)."""
        if self.family.ended_at is not None:
            return False
        return self.token.ended_at is not None or (self.token.used_at is not None and not self.can_be_refreshed(now))


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Device authorization request.

    Attributes:
        digest: Keyed hash of the device code, with which the device polls.
        user_code: Keyed hash of the user code (not the code), which the user enters in a browser.
        family: ID that the token family will have.
        interval: Minimum seconds between two polls; increased whenever the device polls faster (RFC 8628 §3.5).
        polled_at: Time of the last poll.
        approved: Whether the user approved the request; None until the user decides.
        consent: The user's consent; None unless approved.
    """

    digest: bytes
    user_code: bytes
    app: str
    scopes: frozenset[str]
    audience: Audience | None
    created_at: datetime
    expires_at: datetime
    family: str
    interval: int = MIN_POLL_SECONDS
    polled_at: datetime | None = None
    approved: bool | None = None
    consent: ConsentReference | None = None
    used_at: datetime | None = None

    def is_polling_too_fast(self, now: datetime) -> bool:
        """Return whether a poll at `now` comes too soon after the last one; one second of tolerance is allowed."""
        return self.polled_at is not None and now < self.polled_at + timedelta(seconds=self.interval - 1)

    def with_poll(self, now: datetime) -> "DeviceRequest":
        """Return a copy with a poll at `now` recorded; `interval` is 5 seconds longer if the poll came too soon."""
        longer = 5 if self.is_polling_too_fast(now) else 0
        return replace(self, polled_at=now, interval=self.interval + longer)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Expiry and revocation of an access token, as verified at each request (domain.access.model.Credential).

    An access token is not restricted to `networks`.
    """

    expires_at: datetime | None
    revoked_at: datetime | None
    networks: tuple[str, ...] = ()


AUDITED_APP_FIELDS = AuditedFields("oauth_app", ("name", "kind", "redirect_uris", "scopes", "last4"))
AUDITED_CONSENT_FIELDS = AuditedFields("oauth_grant", ("app", "app_name", "user", "scopes", "revoked_at"))


def parse_scopes(text: str) -> frozenset[str]:
    """Parse a space-separated text of scopes (RFC 6749 §3.3)."""
    return frozenset(text.split())


def format_scopes(scopes: frozenset[str]) -> str:
    """Format scopes as a space-separated text in alphabetical order."""
    return " ".join(sorted(scopes))
