"""An organisation, its members, whom it has invited, and the plan it is on (docs/people.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.mail_addresses import address_key

KINDS = ("retailer", "vendor")
OWNER = "owner"
MANAGERS = frozenset({OWNER, "admin"})
"""Roles that say who belongs to the organisation, and what credentials it has."""
INVITATION_LASTS = timedelta(days=7)
OPEN_INVITATIONS = 100
"""At most so many of an organisation wait to be accepted."""
FEATURES = frozenset({"bulk_exports", "fat_webhooks", "assistant", "stream"})
AVAILABLE = frozenset({"bulk_exports", "fat_webhooks", "stream"})
"""The features that are there by now; a plan may hold the others already, and is not said to include them."""


@dataclass(frozen=True, slots=True)
class Meter:
    """What a plan includes of one meter a month: `included`, then `amount` minor units for each `per` more."""

    included: int
    per: int
    amount: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What an organisation pays for; plans are data that the operator sets. `monthly` in minor units of `currency`."""

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
        """What of its features is there by now."""
        return self.features & AVAILABLE

    def included(self, meter: str) -> int | None:
        """How much of the meter the plan includes; None when it says nothing, which means any amount."""
        found = self.meters.get(meter)
        return found.included if found else None


@dataclass(frozen=True, slots=True)
class Organisation:
    """An organisation. `catalogues` are its own catalogue's ids (`cat_…`): (live, test).

    `api_version` is pinned by the first request that names none or any (docs/conventions.md#versions); None before.
    """

    id: str
    name: str
    kind: str
    plan: Plan
    api_version: str | None
    catalogues: tuple[str, str]
    created_at: datetime

    def catalogue(self, livemode: bool) -> str:
        """Return the organisation's own catalogue in the mode."""
        return self.catalogues[0 if livemode else 1]


@dataclass(frozen=True, slots=True)
class Member:
    """A user of an organisation and the role held there."""

    user: str
    org: str
    email: str
    role: str
    created_at: datetime

    @property
    def manages(self) -> bool:
        """Whether they say who belongs to the organisation, and make its keys."""
        return self.role in MANAGERS


@dataclass(frozen=True, slots=True)
class Invitation:
    """A place that is kept for whoever has an address. `digest` is the keyed hash of the secret that was sent there."""

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
        """The address as it is compared: case does not count."""
        return address_key(self.email)

    def is_open(self, now: datetime) -> bool:
        """Whether it can be accepted yet."""
        return self.accepted_at is None and self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class Invited:
    """An open invitation as whoever holds its secret sees it: into which organisation, and by whom."""

    invitation: Invitation
    organisation: Organisation
