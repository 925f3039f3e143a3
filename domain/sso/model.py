"""An organisation's connection to its identity provider, the domains it has proven, and whom it knows (docs/sso.md)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.access.model import ROLES
from domain.kernel.mail_addresses import address_key
from domain.orgs.model import OWNER
from domain.people.model import Method

OBJECT = "sso_connection"
"""What the audit log calls a connection; a domain is an `sso_domain`."""
DOMAIN_OBJECT = "sso_domain"
PROOF = "joinery-verification="
"""What the TXT record of a domain begins with; its token follows."""
LOOKED_AGAIN = timedelta(hours=24)
"""How long a look at a domain's record counts."""
GRACE = timedelta(days=14)
"""How long a proof that is gone still counts: by then somebody has been told, and has put it back or not."""
ATTEMPT_LASTS = timedelta(minutes=10)
"""How long somebody may take at the provider."""
MOST_DOMAINS = 20
LONGEST_DOMAIN = 253
JOINING = frozenset(ROLES) - {"owner"}
"""Roles that somebody may be given by signing in for the first time; never that of an owner."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


SECOND = frozenset({Method.TOTP, Method.RECOVERY_CODE})
"""What, beside a password, shows that it is really an owner."""


def is_strong(methods: Collection[Method]) -> bool:
    """Whether somebody has shown who they are by two things: a passkey, or a password and a second factor."""
    return Method.PASSKEY in methods or (Method.PASSWORD in methods and not SECOND.isdisjoint(methods))


def passes_by(role: str, methods: Collection[Method]) -> bool:
    """Whether a member may act without the provider's word where that is asked of them: an owner who has shown two things."""
    return role == OWNER and is_strong(methods)


def is_barred(role: str, methods: Collection[Method]) -> bool:
    """Whether a session of a member who has to come in by the provider lets them in no more; operators' tokens do as before."""
    vouched = Method.SSO in methods or Method.OPERATOR in methods
    return not vouched and not passes_by(role, methods)


@dataclass(frozen=True, slots=True)
class Connection:
    """How an organisation's people are recognised by its provider. `sealed` is the client's secret, in the vault's form.

    `joins_as` is the role of who signs in for the first time; None lets only members in. `enforced`: members of proven domains
    come in by no other way. `tried_at`: when somebody last signed in by it as it is set up now.
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
        """For whom its secret is sealed: one organisation, at one issuer; it can be opened for no other."""
        return owner_of(self.org, self.issuer)


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of mail that an organisation says is its own, and the token that shows it.

    `proven_at` is None while nothing was shown; `lost_at` since when the record has been gone.
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
        """`waiting`, `proven` or `lost` (still counting)."""
        if self.proven_at is None:
            return "waiting"
        return "proven" if self.lost_at is None else "lost"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a provider means: from the first sign-in on, `subject` of that issuer is that user, whatever the address becomes."""

    org: str
    issuer: str
    subject: str
    user: str
    email: str
    created_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Client:
    """As whom a provider is spoken to: what the organisation was registered as there."""

    issuer: str
    client_id: str
    secret: str
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """What binds a sign-in to one browser: random texts that come back in the address, in the token, and in the exchange (PKCE).

    `again_since`: who is signed in already is to show who they are anew, after that moment.
    """

    state: str
    nonce: str
    verifier: str
    again_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """What a provider says of somebody, once all of it has been checked."""

    issuer: str
    subject: str
    email: str
    email_verified: bool
    name: str


def owner_of(org: str, issuer: str) -> str:
    """For whom a client's secret is sealed."""
    return f"sso:{org} {issuer}"


def domain_of(email: str) -> str:
    """Return the domain of an address as it is compared; empty for an invalid address."""
    local, at, domain = email.strip().rpartition("@")
    return address_key(domain) if at and local and "@" not in local else ""


def is_domain(text: str) -> bool:
    """Whether it can be a domain of mail: at least two labels (RFC 1035), none of them of digits alone at the end."""
    labels = text.split(".")
    shaped = len(text) <= LONGEST_DOMAIN and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    return shaped and not labels[-1].isdigit()
