"""A person, a session, a link for one use, and what a person's own security is told by (docs/people.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.access.model import Principal
from domain.kernel.mail_addresses import address_key

LIFETIME = timedelta(days=30)
"""How long a session lasts at most, however much it is used."""
IDLE = timedelta(days=7)
"""How long a session lasts unused."""
SUDO = timedelta(minutes=15)
"""For how long somebody who has proved who they are may do what touches security."""
SEEN_EVERY = timedelta(minutes=1)
"""How exactly it is known when a session was last used."""
LONGEST_AGENT = 200


@dataclass(frozen=True, slots=True)
class User:
    """A person. `verified_at`: when they showed that the address is theirs; `name` may be empty."""

    id: str
    email: str
    name: str
    verified_at: datetime | None
    created_at: datetime

    @property
    def email_key(self) -> str:
        """The address as it is compared."""
        return email_key(self.email)

    @property
    def called(self) -> str:
        """What to call them: the name, else what stands before the @."""
        return self.name or self.email.partition("@")[0]


def email_key(email: str) -> str:
    """Return an email address in the form in which it is compared, ignoring case."""
    return address_key(email)


class SessionKind(StrEnum):
    """A browser's session in the console, or a bearer token that an operator made for a script."""

    CONSOLE = "console"
    TOKEN = "token"  # noqa: S105  a kind, no secret


class Method(StrEnum):
    """How somebody has proved who they are."""

    PASSWORD = "password"  # noqa: S105  a way to sign in, no secret
    TOTP = "totp"
    RECOVERY_CODE = "recovery_code"
    PASSKEY = "passkey"
    SSO = "sso"
    LINK = "link"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Session:
    """A person who is signed in. `org` and `livemode` are what they look at; `digest` the keyed hash of its secret.

    `methods` tells how they signed in, `confirmed_at` when they last proved who they are.
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
        """Whether it still counts: not ended, not over, not forgotten about."""
        idle = self.kind is SessionKind.CONSOLE and now >= self.seen_at + IDLE
        return self.revoked_at is None and now < self.expires_at and not idle

    @property
    def only_vouched_for(self) -> bool:
        """Whether nobody but an organisation's provider says who it is."""
        return set(self.methods) == {Method.SSO}

    def is_sudo(self, now: datetime) -> bool:
        """Whether its person has proved who they are just now, as what touches security demands."""
        return now < self.confirmed_at + SUDO


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session, whose it is, and what they may do; `principal` is None for whoever belongs to no organisation (any more)."""

    session: Session
    user: User
    principal: Principal | None


class Purpose(StrEnum):
    """What a link for one use leads to."""

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
    """A link for one use; `digest` is the keyed hash of its secret, `org` where it leads to."""

    digest: bytes
    purpose: Purpose
    user: str
    org: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SecurityEvent:
    """Something that concerns a person's security, as they are shown it: `kind` such as `signed_in`, `password_changed`."""

    id: str
    user: str
    kind: str
    detail: str
    address: str
    user_agent: str
    at: datetime
