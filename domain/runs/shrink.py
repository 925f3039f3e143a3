"""The shrink guard: how much a complete run may withdraw unasked (docs/conventions.md#shrink-guard)."""

from collections.abc import Collection, Iterable
from typing import Final

from domain.catalogue.statements import ProductStatement
from domain.runs.model import Run

SHRINK_SHARE: Final = 0.3
SHRINK_LEAST: Final = 50
SECOND_SIGHT: Final = 1.1
"""How much more than the run before a second one may withdraw to count as its confirmation."""

Offers = frozenset[tuple[str, str]]
"""Offers as (variant key, location)."""


class ShrinkRefused(Exception):
    """A complete run would withdraw too much; `stated` and `lost` count offers."""

    def __init__(self, stated: int, lost: int) -> None:
        self.stated, self.lost = stated, lost
        super().__init__(
            f"The run would withdraw {lost} of {stated} offers, so nothing was stored. If that is right, have this very data read "
            'again: POST /v1/sources/{id}/replay with {"accept_shrink": true}.'
        )


def allowance(stated: int) -> int:
    """How many of so many stated offers a run may withdraw."""
    return max(SHRINK_LEAST, int(stated * SHRINK_SHARE))


def confirms(before: Run | None, lost: int) -> bool:
    """Second sight: the run before was refused for losing about as many."""
    if before is None or not before.was_refused:
        return False
    return lost <= before.stats.get("would_withdraw", 0) * SECOND_SIGHT


def kept_by_stock(held: Offers, keys: Collection[str], places: Collection[str] | None) -> Offers:
    """A stock sheet keeps the offers of the items it names (`keys`), at the locations it has columns for."""
    return frozenset(offer for offer in held if offer[0] in keys and (places is None or offer[1] in places))


def kept_by_catalogue(held: Offers, statements: Iterable[ProductStatement]) -> Offers:
    """A catalogue feed keeps the offers that it states, everywhere or there, and those of variants whose locations it does not cover."""
    variants = {variant.key: variant for statement in statements for variant in statement.variants}
    everywhere = {
        key
        for key, variant in variants.items()
        if not variant.covers_locations or any(offer.is_general for offer in variant.offers)
    }
    stated = {(key, offer.location) for key, variant in variants.items() for offer in variant.offers}
    return frozenset(offer for offer in held if offer in stated or offer[0] in everywhere)
