"""Single sign-on: connections to identity providers, verified mail domains, and linked identities (docs/sso.md)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.access.model import ROLES
from domain.kernel.mail_addresses import normalise_mail_address
from domain.orgs.model import OWNER
from domain.people.model import AuthMethod

CONNECTION_OBJECT = "sso_connection"
"""Object type of a connection in the audit log."""
DOMAIN_OBJECT = "sso_domain"
"""Object type of a mail domain in the audit log."""
RECORD_PREFIX = "joinery-verification="
"""Start of the TXT record by which an organisation verifies that it owns a mail domain; the domain's token follows."""
RECHECK_INTERVAL = timedelta(hours=24)
"""Interval between checks of a domain's TXT record."""
VERIFICATION_GRACE_PERIOD = timedelta(days=14)
"""Grace period: time for which a domain without its TXT record remains verified, so that the record can be restored."""
ATTEMPT_LIFETIME = timedelta(minutes=10)
"""Maximum time between the start of a sign-in and the provider's response."""
MAX_DOMAINS = 20
"""Maximum number of mail domains of an organisation."""
MAX_DOMAIN_CHARS = 253
JOINABLE_ROLES = frozenset(ROLES) - {"owner"}
"""Roles that new members may get when they first sign in; never owner."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


SECOND_FACTORS = frozenset({AuthMethod.TOTP, AuthMethod.RECOVERY_CODE})
"""Methods that count as a second factor in addition to a password."""


def has_two_factors(methods: Collection[AuthMethod]) -> bool:
    """Return whether the methods amount to two factors: a passkey, or a password with a second factor."""
    return AuthMethod.PASSKEY in methods or (AuthMethod.PASSWORD in methods and not SECOND_FACTORS.isdisjoint(methods))


def is_exempt(role: str, methods: Collection[AuthMethod]) -> bool:
    """Return whether a member need not use single sign-on where it is enforced: only an owner with two factors."""
    return role == OWNER and has_two_factors(methods)


def is_barred(role: str, methods: Collection[AuthMethod]) -> bool:
    """Return whether enforced single sign-on forbids a session with these methods.

    Sessions by single sign-on, operators' tokens, and owners with two factors are permitted.
    """
    exempt = AuthMethod.SSO in methods or AuthMethod.OPERATOR in methods
    return not exempt and not is_exempt(role, methods)


@dataclass(frozen=True, slots=True)
class SsoConnection:
    """Connection of an organisation to its identity provider.

    Attributes:
        sealed: The client secret, encrypted by the vault.
        joins_as: Default role of new members: people who join by signing in. None if only members may sign in.
        enforced: Whether members with addresses in verified domains must use single sign-on.
        enabled: Whether people can sign in with the provider.
        tried_at: Time of the first successful sign-in with the current settings; None before.
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
    def secret_owner(self) -> str:
        """Associated data of the encrypted client secret, as `owner` of `Vault.decrypt`: organisation and issuer."""
        return build_secret_owner(self.org, self.issuer)


@dataclass(frozen=True, slots=True)
class MailDomain:
    """Mail domain that an organisation claims; a TXT record with `token` verifies the ownership.

    Attributes:
        domain: The domain name.
        token: The random text that the TXT record must contain.
        proven_at: Time of the verification, when the TXT record was first found; None if the domain is not verified.
        lost_at: Since when the TXT record of a verified domain is missing, or None.
        looked_at: Time of the last check: the last look-up of the TXT record, or None.
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
        """The text of the TXT record that the organisation must create."""
        return RECORD_PREFIX + self.token

    @property
    def state(self) -> str:
        """The state of the verification: `waiting` for the TXT record, `proven` (verified), or `lost`.

        A `lost` domain is still verified, but its TXT record is missing.
        """
        if self.proven_at is None:
            return "waiting"
        return "proven" if self.lost_at is None else "lost"


@dataclass(frozen=True, slots=True)
class LinkedIdentity:
    """Identity of a person at an identity provider, linked to a user at the first sign-in.

    `subject` is the provider's ID of the person, which remains the same if the email address changes.
    """

    org: str
    issuer: str
    subject: str
    user: str
    email: str
    created_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class OidcClient:
    """OAuth client that an organisation has registered at its identity provider."""

    issuer: str
    client_id: str
    secret: str
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class SsoAttempt:
    """Random values that bind a sign-in by single sign-on to the browser that started it.

    Attributes:
        state: Value that the provider must return in the redirect.
        nonce: Value that the provider must return in the ID token.
        verifier: The PKCE code verifier.
        min_auth_time: Earliest permitted time of the person's authentication at the provider; None if any
            earlier authentication suffices.
    """

    state: str
    nonce: str
    verifier: str
    min_auth_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a person in a verified response of an identity provider.

    `subject` is the provider's ID of the person.
    """

    issuer: str
    subject: str
    email: str
    email_verified: bool
    name: str


def build_secret_owner(org: str, issuer: str) -> str:
    """Return the associated data of a connection's encrypted client secret, as `owner` of `Vault.encrypt`."""
    return f"sso:{org} {issuer}"


def parse_email_domain(email: str) -> str:
    """Return the domain of an email address, normalised for comparison, or an empty string if it is not an address."""
    local, at, domain = email.strip().rpartition("@")
    return normalise_mail_address(domain) if at and local and "@" not in local else ""


def is_domain(text: str) -> bool:
    """Return whether the text has the format of a mail domain: two or more labels (RFC 1035), the last not a number."""
    labels = text.split(".")
    has_valid_labels = (
        len(text) <= MAX_DOMAIN_CHARS and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    )
    return has_valid_labels and not labels[-1].isdigit()
