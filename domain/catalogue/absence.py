"""The absence ladder: the status of products that their source's complete runs no longer list (docs/conventions.md#absence-ladder)."""

from datetime import datetime, timedelta
from typing import NamedTuple

from domain.catalogue.model import ProductStatus

MISSED_RUNS = 3
"""Number of consecutive complete runs that must miss a product before its status changes; further runs are not counted."""
PROBABLY_DISCONTINUED_AFTER = timedelta(hours=72)
DISCONTINUED_AFTER = timedelta(days=30)


class Absence(NamedTuple):
    """A product that MISSED_RUNS complete runs of its source did not list; `since` is when it was first missed."""

    key: str
    status: ProductStatus
    since: datetime


def next_status(absence: Absence, now: datetime) -> ProductStatus | None:
    """Return the status that an absent product must change to, or None."""
    age = now - absence.since
    if absence.status == ProductStatus.ACTIVE and age >= PROBABLY_DISCONTINUED_AFTER:
        return ProductStatus.PROBABLY_DISCONTINUED
    if absence.status == ProductStatus.PROBABLY_DISCONTINUED and age >= DISCONTINUED_AFTER:
        return ProductStatus.DISCONTINUED
    return None
