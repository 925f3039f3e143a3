"""Organisations, members, invitations and plans (docs/people.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.mail_addresses import normalise_mail_address

VENDOR = "vendor"
ORGANISATION_KINDS = ("retailer", VENDOR)
OWNER = "owner"
MANAGERS = frozenset({OWNER, "admin"})
"""Roles that may manage the members, credentials and settings of the organisation."""
INVITATION_LIFETIME = timedelta(days=7)
MAX_OPEN_INVITATIONS = 100
"""Maximum number of open invitations of an organisation."""
FEATURES = frozenset({"bulk_exports", "fat_webhooks", "assistant", "stream"})
"""Features that a plan can include."""


@dataclass(frozen=True, slots=True)
class MeterAllowance:
    """Monthly allowance of a plan for one meter, and the price of further use.

    Attributes:
        included: Quantity of the meter that the plan's price includes.
        per: Quantity that is charged at once beyond `included`, such as 1000 records.
        amount: Price of each such quantity, in minor units of the plan's currency.
    """

    included: int
    per: int
    amount: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan, which the operator defines.

    Attributes:
        tier: Level of the rate limits: `standard`, `high` or `max`.
        monthly: The price per month, in minor units of `currency`.
        features: Included features, also those that are not implemented yet.
        meters: Allowances by name of the meter.
        delivery_days: Days for which webhook deliveries are stored.
        request_log_days: Days for which request logs are stored.
    """

    code: str
    name: str
    tier: str
    currency: str
    monthly: int
    features: frozenset[str]
    meters: Mapping[str, MeterAllowance]
    delivery_days: int = 30
    request_log_days: int = 30

    def find_included_amount(self, meter: str) -> int | None:
        """Return the amount of the meter that the plan includes, or None if the plan does not limit the meter."""
        found = self.meters.get(meter)
        return found.included if found else None


@dataclass(frozen=True, slots=True)
class Organisation:
    """Organisation.

    Attributes:
        kind: `retailer` or `vendor`.
        api_version: The pinned API version; None until the first request (docs/conventions.md#versions).
        catalogues: IDs of the organisation's catalogues in live mode and in test mode.
        bills_overage: Whether usage beyond the plan's quotas is charged, in live mode, instead of refused.
    """

    id: str
    name: str
    kind: str
    plan: Plan
    api_version: str | None
    catalogues: tuple[str, str]
    created_at: datetime
    bills_overage: bool = False

    def find_quota(self, meter: str, *, livemode: bool) -> int | None:
        """Return the amount of the meter beyond which use is refused; None if use is not limited."""
        allowance = self.plan.meters.get(meter)
        if allowance is None or (livemode and self.bills_overage and allowance.amount):
            return None
        return allowance.included

    @property
    def is_vendor(self) -> bool:
        """True if the organisation is a vendor, which can publish its catalogue."""
        return self.kind == VENDOR

    def get_catalogue_id(self, livemode: bool) -> str:
        """Return the ID of the organisation's catalogue in live mode or test mode."""
        return self.catalogues[0 if livemode else 1]


@dataclass(frozen=True, slots=True)
class Member:
    """Membership of a user in an organisation, with the user's role."""

    user: str
    org: str
    email: str
    role: str
    created_at: datetime

    @property
    def is_manager(self) -> bool:
        """True if the member may manage the members, credentials and settings of the organisation."""
        return self.role in MANAGERS


@dataclass(frozen=True, slots=True)
class Invitation:
    """Invitation sent to an email address; `digest` is the keyed hash of the secret in the mailed link."""

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
        """The invited email address, normalised for comparison."""
        return normalise_mail_address(self.email)

    def is_open(self, now: datetime) -> bool:
        """Return whether the invitation can still be accepted."""
        return self.accepted_at is None and self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class InvitationDetails:
    """Invitation and the organisation that it is for."""

    invitation: Invitation
    organisation: Organisation
