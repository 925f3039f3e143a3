"""Organisations, members, invitations and plans (docs/people.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.mail_addresses import address_key

KINDS = ("retailer", "vendor")
OWNER = "owner"
MANAGERS = frozenset({OWNER, "admin"})
"""Roles that manage members and credentials of the organisation."""
INVITATION_LASTS = timedelta(days=7)
OPEN_INVITATIONS = 100
"""Maximum number of open invitations of an organisation."""
FEATURES = frozenset({"bulk_exports", "fat_webhooks", "assistant", "stream"})
AVAILABLE = frozenset({"bulk_exports", "fat_webhooks", "stream"})
"""Features that exist. A plan may contain others in advance, which are not shown."""


@dataclass(frozen=True, slots=True)
class Meter:
    """What a plan includes of one meter a month: `included`, then `amount` minor units for each further `per`."""

    included: int
    per: int
    amount: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, defined as data by the operator. `monthly` is in minor units of `currency`."""

    code: str
    name: str
    tier: str
    currency: str
    monthly: int
    features: frozenset[str]
    meters: Mapping[str, Meter]
    delivery_days: int = 30
    request_log_days: int = 30

    @property
    def available(self) -> frozenset[str]:
        """The plan's features that exist."""
        return self.features & AVAILABLE

    def included(self, meter: str) -> int | None:
        """Return the included amount of the meter; None if the plan does not limit it."""
        found = self.meters.get(meter)
        return found.included if found else None


@dataclass(frozen=True, slots=True)
class Organisation:
    """An organisation.

    `catalogues` are the ids of its own catalogue (`cat_…`): (live, test). `api_version` is None until the first request
    pins it (docs/conventions.md#versions).
    """

    id: str
    name: str
    kind: str
    plan: Plan
    api_version: str | None
    catalogues: tuple[str, str]
    created_at: datetime

    def catalogue(self, livemode: bool) -> str:
        """Return the id of the organisation's own catalogue in that mode."""
        return self.catalogues[0 if livemode else 1]


@dataclass(frozen=True, slots=True)
class Member:
    """A user's membership of an organisation, with its role."""

    user: str
    org: str
    email: str
    role: str
    created_at: datetime

    @property
    def manages(self) -> bool:
        """True if the member may manage members and keys."""
        return self.role in MANAGERS


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation sent to an address. `digest` is the keyed hash of the secret in the link."""

    id: str
    org: str
    email: str
    role: str
    invited_by: str
    digest: bytes
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def email_key(self) -> str:
        """The address in the form for comparison."""
        return address_key(self.email)

    def is_open(self, now: datetime) -> bool:
        """Return whether the invitation can still be accepted."""
        return self.accepted_at is None and self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class Invited:
    """An open invitation and its organisation."""

    invitation: Invitation
    organisation: Organisation
