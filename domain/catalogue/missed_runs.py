"""Status of products that their source's complete runs no longer list (docs/conventions.md#absence-ladder)."""

from datetime import datetime, timedelta
from typing import NamedTuple

from domain.catalogue.model import ProductStatus

MIN_MISSED_RUNS = 3
"""Minimum number of consecutive complete runs without a product before its status may change.

Further runs are not counted.
"""
PROBABLY_DISCONTINUED_AFTER = timedelta(hours=72)
DISCONTINUED_AFTER = timedelta(days=30)


class AbsentProduct(NamedTuple):
    """Product that the last MIN_MISSED_RUNS complete runs of its source did not list, absent since `since`."""

    key: str
    status: ProductStatus
    since: datetime


def compute_next_status(product: AbsentProduct, now: datetime) -> ProductStatus | None:
    """Return the new status of an absent product, or None if it does not change yet."""
    age = now - product.since
    if product.status == ProductStatus.ACTIVE and age >= PROBABLY_DISCONTINUED_AFTER:
        return ProductStatus.PROBABLY_DISCONTINUED
    if product.status == ProductStatus.PROBABLY_DISCONTINUED and age >= DISCONTINUED_AFTER:
        return ProductStatus.DISCONTINUED
    return None
