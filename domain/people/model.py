"""Users, sessions, one-time links and security events (docs/people.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.access.model import Principal
from domain.kernel.mail_addresses import normalise_mail_address

SESSION_LIFETIME = timedelta(days=30)
"""Maximum time from sign-in to the end of a console session."""
MAX_IDLE_TIME = timedelta(days=7)
"""Time without a request after which a console session ends."""
SUDO_LIFETIME = timedelta(minutes=15)
"""Time after an authentication in which the user may change security settings (sudo mode)."""
LAST_USE_INTERVAL = timedelta(minutes=1)
"""Minimum time after which the last use of a session is stored again."""
MAX_USER_AGENT_CHARS = 200
"""Maximum number of characters of a stored User-Agent header; longer headers are truncated."""


@dataclass(frozen=True, slots=True)
class User:
    """Person who can sign in.

    Attributes:
        name: The display name; may be empty.
        verified_at: When the email address was verified, or None.
        language: Language code of the console; None for the language of the browser.
    """

    id: str
    email: str
    name: str
    verified_at: datetime | None
    created_at: datetime
    language: str | None = None

    @property
    def email_key(self) -> str:
        """The email address, normalised for comparison."""
        return normalise_email(self.email)

    @property
    def display_name(self) -> str:
        """The name, or the local part of the email address."""
        return self.name or self.email.partition("@")[0]


def normalise_email(email: str) -> str:
    """Normalise an email address for comparison."""
    return normalise_mail_address(email)


class SessionKind(StrEnum):
    """Kinds of sessions: in a browser, or a user's token for a script."""

    CONSOLE = "console"
    TOKEN = "token"  # noqa: S105  a kind, no secret


class AuthMethod(StrEnum):
    """Methods by which a user can authenticate.

    `link` is a one-time link for signing in. `operator` means that the operator created the user's token for a script.
    """

    PASSWORD = "password"  # noqa: S105  a way to sign in, no secret
    TOTP = "totp"
    RECOVERY_CODE = "recovery_code"
    PASSKEY = "passkey"
    SSO = "sso"
    LINK = "link"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Session:
    """Session of a user.

    Attributes:
        org: The organisation whose data the session shows; None for a user without organisations.
        livemode: Whether the session shows live mode.
        digest: Keyed hash of the session's secret.
        methods: The methods by which the user has authenticated.
        address: IP address of the browser at sign-in.
        seen_at: Time of the last request, updated at most once per LAST_USE_INTERVAL.
        confirmed_at: Time at which the user last authenticated, at sign-in or later.
        networks: Networks from which the session can be used; empty for any.
    """

    id: str
    user: str
    org: str | None
    livemode: bool
    digest: bytes
    kind: SessionKind
    methods: tuple[AuthMethod, ...]
    address: str
    user_agent: str
    created_at: datetime
    seen_at: datetime
    confirmed_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    networks: tuple[str, ...] = ()

    def is_active(self, now: datetime) -> bool:
        """Return whether the session is not revoked, not expired and, in a browser, used within MAX_IDLE_TIME."""
        idle = self.kind is SessionKind.CONSOLE and now >= self.seen_at + MAX_IDLE_TIME
        return self.revoked_at is None and now < self.expires_at and not idle

    @property
    def is_sso_only(self) -> bool:
        """True if single sign-on is the only method by which the user has authenticated."""
        return set(self.methods) == {AuthMethod.SSO}

    def is_sudo(self, now: datetime) -> bool:
        """Return whether the session is in sudo mode: the user has authenticated within SUDO_LIFETIME."""
        return now < self.confirmed_at + SUDO_LIFETIME


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Session with its user and principal; `principal` is None if the session gives no access to an organisation."""

    session: Session
    user: User
    principal: Principal | None


class LinkPurpose(StrEnum):
    """Purposes of one-time links."""

    SIGN_IN = "sign_in"
    SET_PASSWORD = "set_password"  # noqa: S105  a purpose, no secret
    VERIFY_EMAIL = "verify_email"


LINK_LIFETIMES = {
    LinkPurpose.SIGN_IN: timedelta(minutes=15),
    LinkPurpose.SET_PASSWORD: timedelta(hours=1),
    LinkPurpose.VERIFY_EMAIL: timedelta(days=3),
}
"""Time for which a one-time link can be used, by purpose."""


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """One-time link of a user.

    `digest` is the keyed hash of the secret in the URL. `org` is the organisation that the session shows after
    a sign-in with the link; None for the user's first organisation.
    """

    digest: bytes
    purpose: LinkPurpose
    user: str
    org: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SecurityEvent:
    """Security event in a user's account; `kind` is for example `signed_in` or `password_changed`.

    `detail` is a supplement, such as the name of a passkey, or empty. `address` is the IP address of the browser, or
    empty.
    """

    id: str
    user: str
    kind: str
    detail: str
    address: str
    user_agent: str
    at: datetime
