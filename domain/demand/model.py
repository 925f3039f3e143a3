"""Signals of demand, the receipt for them, and the times of their days (docs/demand.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

MAX_SIGNALS = 1_000
"""Maximum number of signals in one request."""
MAX_AGE = timedelta(days=7)
"""Maximum age of a signal; an older one is rejected."""
MAX_CLOCK_DIFFERENCE = timedelta(minutes=5)
"""Maximum time by which a signal may be ahead of the service's clock."""
DAY_GRACE = timedelta(hours=12)
"""Time after the end of a day (UTC) in which signals are still counted on that day; later ones count on the first open day."""
RELEASE_DELAY = DAY_GRACE + timedelta(hours=1)
"""Time after the end of a day when its cells are released.

The hour after the grace is longer than any transaction, so that no signal is counted on a day after its release.
"""
PERIODS = {"7d": 7, "30d": 30, "90d": 90}
"""Number of days of each period of the statistics."""
NETWORK = ""
"""Vendor of search misses, which are about no product and are counted for the whole network."""


class SignalType(StrEnum):
    """Kind of a signal."""

    VIEW = "view"
    SAVE = "save"
    QUOTE = "quote"
    CART = "cart"
    ORDER = "order"
    SEARCH_MISS = "search_miss"


PRODUCT_SIGNAL_TYPES = tuple(kind for kind in SignalType if kind is not SignalType.SEARCH_MISS)


@dataclass(frozen=True, slots=True)
class DemandSignal:
    """Signal of demand for a product, or a search without results.

    Attributes:
        index: The position in the request.
        id: The sender's ID, by which repeated signals are recognised; None if there is none.
        query: The searched text of a search miss.
    """

    index: int
    type: SignalType
    occurred_at: datetime
    id: str | None = None
    product: str | None = None
    variant: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class SignalRejection:
    """Signal that was not counted, with the code and the sentence of a field error."""

    index: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class DemandReceipt:
    """Result of a request: the number of counted and of repeated signals, and the rejected ones."""

    accepted: int
    duplicates: int
    rejected: Sequence[SignalRejection]


@dataclass(frozen=True, slots=True)
class SignalCount:
    """Number of an organisation's signals of one type about one subject in one hour.

    Attributes:
        hour: Start of the hour.
        vendor: Organisation that published the product; NETWORK for search misses.
        subject: The product's ID, or the query.
    """

    hour: datetime
    vendor: str
    subject: str
    type: SignalType
    amount: int


@dataclass(frozen=True, slots=True)
class DemandDay:
    """Day (UTC) of a vendor in one mode; `vendor` is NETWORK for search misses."""

    vendor: str
    livemode: bool
    day: date


def find_first_open_day(now: datetime) -> date:
    """Return the first day on which signals are still counted."""
    return (now - DAY_GRACE).date()


def find_release_bound(now: datetime) -> date:
    """Return the first day whose cells may not be released yet."""
    return (now - RELEASE_DELAY).date()


def normalise_query(text: str) -> str:
    """Return the text in lower case with single spaces."""
    return " ".join(text.lower().split())
