"""Connections to identity providers, proven domains, and subjects (docs/sso.md)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.access.model import ROLES
from domain.kernel.mail_addresses import address_key
from domain.orgs.model import OWNER
from domain.people.model import Method

OBJECT = "sso_connection"
"""The connection's object type in the audit log; a domain's is `sso_domain`."""
DOMAIN_OBJECT = "sso_domain"
PROOF = "joinery-verification="
"""The prefix of a domain's TXT record; its token follows."""
LOOKED_AGAIN = timedelta(hours=24)
"""Interval between checks of a domain's record."""
GRACE = timedelta(days=14)
"""Time for which a lost proof remains valid, so that the record can be restored."""
ATTEMPT_LASTS = timedelta(minutes=10)
"""Maximum time at the provider."""
MOST_DOMAINS = 20
LONGEST_DOMAIN = 253
JOINING = frozenset(ROLES) - {"owner"}
"""Roles that a first sign-in may assign; never owner."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


SECOND = frozenset({Method.TOTP, Method.RECOVERY_CODE})
"""Second factors that, with a password, exempt an owner."""


def is_strong(methods: Collection[Method]) -> bool:
    """Return whether the methods are two factors: a passkey, or a password and a second factor."""
    return Method.PASSKEY in methods or (Method.PASSWORD in methods and not SECOND.isdisjoint(methods))


def passes_by(role: str, methods: Collection[Method]) -> bool:
    """Return whether a member may act without enforced single sign-on: an owner with two factors."""
    return role == OWNER and is_strong(methods)


def is_barred(role: str, methods: Collection[Method]) -> bool:
    """Return whether a session no longer admits a member who must use single sign-on; operators' tokens are exempt."""
    exempt = Method.SSO in methods or Method.OPERATOR in methods
    return not exempt and not passes_by(role, methods)


@dataclass(frozen=True, slots=True)
class Connection:
    """An organisation's connection to its identity provider.

    `sealed` is the client secret. `joins_as` is the role of new members at their first sign-in; None admits members
    only. `enforced`: members of proven domains must use it. `tried_at` is the last sign-in with the present settings.
    """

    org: str
    issuer: str
    client_id: str
    sealed: bytes
    joins_as: str | None
    enforced: bool
    enabled: bool
    tried_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def owner(self) -> str:
        """The owner to which the client secret's seal is bound: organisation and issuer."""
        return owner_of(self.org, self.issuer)


@dataclass(frozen=True, slots=True)
class Domain:
    """A mail domain that an organisation claims, and the token that proves it.

    `proven_at` is None until the proof; `lost_at` is when the record disappeared.
    """

    org: str
    domain: str
    token: str
    proven_at: datetime | None
    lost_at: datetime | None
    looked_at: datetime | None
    created_at: datetime

    @property
    def record(self) -> str:
        """The text of the TXT record."""
        return PROOF + self.token

    @property
    def state(self) -> str:
        """`waiting`, `proven` or `lost` (still valid)."""
        if self.proven_at is None:
            return "waiting"
        return "proven" if self.lost_at is None else "lost"


@dataclass(frozen=True, slots=True)
class Subject:
    """An issuer's subject, bound to a user at the first sign-in, whatever the address becomes."""

    org: str
    issuer: str
    subject: str
    user: str
    email: str
    created_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Client:
    """The organisation's client registration at the provider."""

    issuer: str
    client_id: str
    secret: str
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """Secrets that bind a sign-in to one browser, returned in the redirect, in the token and in the exchange (PKCE).

    `again_since`: the person must authenticate after that moment.
    """

    state: str
    nonce: str
    verifier: str
    again_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """A verified identity from a provider."""

    issuer: str
    subject: str
    email: str
    email_verified: bool
    name: str


def owner_of(org: str, issuer: str) -> str:
    """Return the owner to which a client secret's seal is bound."""
    return f"sso:{org} {issuer}"


def domain_of(email: str) -> str:
    """Return an address's domain in the form for comparison; empty if it is no address."""
    local, at, domain = email.strip().rpartition("@")
    return address_key(domain) if at and local and "@" not in local else ""


def is_domain(text: str) -> bool:
    """Return whether the text can be a mail domain: at least two labels (RFC 1035), the last not all digits."""
    labels = text.split(".")
    shaped = len(text) <= LONGEST_DOMAIN and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    return shaped and not labels[-1].isdigit()
