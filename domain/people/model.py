"""People, sessions, one-time links and security events (docs/people.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.access.model import Principal
from domain.kernel.mail_addresses import address_key

LIFETIME = timedelta(days=30)
"""Maximum lifetime of a session."""
IDLE = timedelta(days=7)
"""Maximum idle time of a session."""
SUDO = timedelta(minutes=15)
"""Time after authentication in which security settings may be changed."""
SEEN_EVERY = timedelta(minutes=1)
"""Resolution of a session's last use."""
LONGEST_AGENT = 200


@dataclass(frozen=True, slots=True)
class User:
    """A person. `verified_at` is when the address was verified; `name` may be empty."""

    id: str
    email: str
    name: str
    verified_at: datetime | None
    created_at: datetime

    @property
    def email_key(self) -> str:
        """The address in the form for comparison."""
        return email_key(self.email)

    @property
    def called(self) -> str:
        """The name, or the local part of the address."""
        return self.name or self.email.partition("@")[0]


def email_key(email: str) -> str:
    """Return an address in the form for comparison."""
    return address_key(email)


class SessionKind(StrEnum):
    """Kinds of sessions: in a browser, or a bearer token that an operator created for a script."""

    CONSOLE = "console"
    TOKEN = "token"  # noqa: S105  a kind, no secret


class Method(StrEnum):
    """Authentication methods."""

    PASSWORD = "password"  # noqa: S105  a way to sign in, no secret
    TOTP = "totp"
    RECOVERY_CODE = "recovery_code"
    PASSKEY = "passkey"
    SSO = "sso"
    LINK = "link"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a person.

    `org` and `livemode` are the current view; `digest` is the keyed hash of its secret. `methods` are the
    authentication methods, `confirmed_at` is the last authentication.
    """

    id: str
    user: str
    org: str | None
    livemode: bool
    digest: bytes
    kind: SessionKind
    methods: tuple[Method, ...]
    address: str
    user_agent: str
    created_at: datetime
    seen_at: datetime
    confirmed_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    networks: tuple[str, ...] = ()

    def is_in_force(self, now: datetime) -> bool:
        """Return whether the session is active: not revoked, expired or idle for too long."""
        idle = self.kind is SessionKind.CONSOLE and now >= self.seen_at + IDLE
        return self.revoked_at is None and now < self.expires_at and not idle

    @property
    def only_vouched_for(self) -> bool:
        """True if only an organisation's identity provider has authenticated the person."""
        return set(self.methods) == {Method.SSO}

    def is_sudo(self, now: datetime) -> bool:
        """Return whether the person has authenticated recently, as changes of security settings require."""
        return now < self.confirmed_at + SUDO


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session, its person and their permissions; `principal` is None for a person without an organisation."""

    session: Session
    user: User
    principal: Principal | None


class Purpose(StrEnum):
    """Purposes of one-time links."""

    SIGN_IN = "sign_in"
    SET_PASSWORD = "set_password"  # noqa: S105  a purpose, no secret
    VERIFY_EMAIL = "verify_email"


LINK_LASTS = {
    Purpose.SIGN_IN: timedelta(minutes=15),
    Purpose.SET_PASSWORD: timedelta(hours=1),
    Purpose.VERIFY_EMAIL: timedelta(days=3),
}


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """A one-time link; `digest` is the keyed hash of its secret, `org` the organisation to open."""

    digest: bytes
    purpose: Purpose
    user: str
    org: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SecurityEvent:
    """A security event that its person can see; `kind` is such as `signed_in` or `password_changed`."""

    id: str
    user: str
    kind: str
    detail: str
    address: str
    user_agent: str
    at: datetime
