"""Credit: lots, entries, balance, settings and rates. Amounts are integers in millionths of a US dollar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, TypedDict

from domain.audit.model import AuditedFields
from domain.kernel.errors import PriceNoticeTooShort
from domain.kernel.resource import changeable, optional
from domain.kernel.schema import boolean, integer, nullable

MICROS_PER_CREDIT = 10_000
"""Micro-US-dollars (millionths of a US dollar) per credit."""
MIN_PURCHASE, MAX_PURCHASE = 500, 1_000_000
"""Minimum and maximum number of credits of one purchase."""
MAX_MICROS = 10**15
"""Maximum of an amount in micro-US-dollars."""
NOTICE_PERIOD = timedelta(days=30)
"""Minimum time between the announcement of a higher price and its start."""
CREDIT_SETTINGS_ID = "credits"
"""ID of the only row of settings of a tenant."""


def compute_expiry(paid_at: datetime) -> datetime:
    """Return the time 12 months later, at which credit expires; 28 February for 29 February."""
    day = 28 if (paid_at.month, paid_at.day) == (2, 29) else paid_at.day
    return paid_at.replace(year=paid_at.year + 1, day=day)


def require_notice(effective_at: datetime, now: datetime) -> None:
    """Raise PriceNoticeTooShort if a higher price is announced less than 30 days before it applies."""
    if effective_at < now + NOTICE_PERIOD:
        raise PriceNoticeTooShort


class EntryKind(StrEnum):
    """Kind of a credit entry."""

    PURCHASE = "purchase"
    SPEND = "spend"
    RELEASE = "release"
    REFUND = "refund"
    EXPIRY = "expiry"
    ADJUSTMENT = "adjustment"


@dataclass(frozen=True, slots=True)
class CreditEntry:
    """Entry of the ledger; the sum of all entries is the available credit.

    Attributes:
        number: Number of the entry in the tenant's ledger, from 1.
        amount_micros: Change of the available credit.
        balance_micros: Available credit after the change.
        lot: ID of the changed lot.
        reference: ID of the purchase, audit entry or use of a language model that caused the change.
    """

    number: int
    id: str
    kind: EntryKind
    amount_micros: int
    balance_micros: int
    lot: str
    reference: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CreditDay:
    """Entries of the ledger on a day (UTC).

    Attributes:
        balance_micros: Available credit after the last entry.
        change_micros: Sum of the entries.
        spent_micros: Credit that was spent and not released.
    """

    day: date
    balance_micros: int
    change_micros: int
    spent_micros: int


@dataclass(frozen=True, slots=True)
class CreditLot:
    """Credit with one expiry date."""

    id: str
    remaining_micros: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditSettings:
    """Settings of a tenant's credit.

    Attributes:
        monthly_budget_micros: Maximum that is spent in a month (UTC), or None.
        top_up_credits: Credits that are bought when credit is low, or None.
    """

    id: str = CREDIT_SETTINGS_ID
    low_balance_micros: Annotated[
        int,
        changeable(
            integer(
                1_000_000,
                minimum=0,
                maximum=MAX_MICROS,
                description="Amount in millionths of a US dollar below which credit is low.",
            )
        ),
    ] = 1_000_000
    auto_spend: Annotated[
        bool, changeable(boolean(False, "Whether credit is spent when the included daily budget is used up."))
    ] = False
    monthly_budget_micros: Annotated[
        int | None,
        optional(
            changeable(
                integer(
                    50_000_000,
                    minimum=0,
                    maximum=MAX_MICROS,
                    description="Maximum that is spent in a month (UTC) in millionths of a US dollar; omitted if unlimited.",
                ),
                nullable(integer(50_000_000, minimum=0, maximum=MAX_MICROS, description="Null removes the limit.")),
            )
        ),
    ] = None
    top_up_credits: Annotated[
        int | None,
        optional(
            changeable(
                integer(
                    1_000,
                    minimum=MIN_PURCHASE,
                    maximum=MAX_PURCHASE,
                    description="Number of credits that are bought when credit is low; omitted if none.",
                ),
                nullable(
                    integer(
                        1_000, minimum=MIN_PURCHASE, maximum=MAX_PURCHASE, description="Null disables the purchases."
                    )
                ),
            )
        ),
    ] = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class CreditSettingsChange(TypedDict, total=False):
    """Changes of credit settings; omitted fields stay unchanged."""

    low_balance_micros: int
    auto_spend: bool
    monthly_budget_micros: int | None
    top_up_credits: int | None


AUDITED_CREDIT_SETTINGS = AuditedFields.from_resource(CreditSettings, "credit_settings")


@dataclass(frozen=True, slots=True)
class CreditBalance:
    """Credit of a tenant.

    Attributes:
        lots: Lots with remaining credit, the earliest expiry first.
    """

    available_micros: int
    reserved_micros: int
    lots: Sequence[CreditLot]
    settings: CreditSettings


@dataclass(frozen=True, slots=True)
class CreditAction:
    """Change of a ledger.

    Attributes:
        kind: An EntryKind that adds or refunds a lot, or `reserve`, `settle` or `release`.
        reference: ID of the cause; a repeated action with the same reference has no effect.
        micros: The amount: of the lot, of the reservation, of the actual cost, or of all refunds together.
        expires_at: When the lot or the reservation expires.
        lot: ID of the lot if the action creates one.
    """

    kind: str
    reference: str
    micros: int = 0
    expires_at: datetime | None = None
    lot: str | None = None


@dataclass(frozen=True, slots=True)
class CreditOutcome:
    """Outcome of actions.

    Attributes:
        results: A number for each action: the spent amount for `settle`, the amount that all refunds have removed from the
            lot for `refund`, and for other actions 1 if the action took effect, now or before, or else 0.
        before: Available and reserved credit before the actions.
        after: Available and reserved credit after the actions.
        low_balance: Amount below which credit is low, or None for the default.
    """

    results: Sequence[int]
    before: int
    after: int
    low_balance: int | None


@dataclass(frozen=True, slots=True)
class CreditRate:
    """Price of a language model per 1,000 tokens, in micro-US-dollars."""

    model: str
    input_micros_per_1k: int
    output_micros_per_1k: int
    effective_at: datetime


@dataclass(frozen=True, slots=True)
class CreditRates:
    """Rates that apply, by model, and announced ones, by model and time."""

    models: Sequence[CreditRate]
    announced: Sequence[CreditRate]
