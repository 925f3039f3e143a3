"""Checks before anything of a run is stored: how much it would withdraw, and the monthly quota of records."""

from collections.abc import Collection, Iterable

from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.statements import ProductStatement
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.usecases.chunking import Feed
from domain.usage.meters import RECORDS
from domain.usage.usecases import quota

SHRINK_SHARE = 0.3
SHRINK_LEAST = 50
SECOND_SIGHT = 1.1
"""How much more than the run before a second one may withdraw to count as its confirmation."""

Offers = frozenset[tuple[str, str]]
"""Offers as (variant key, location)."""


class ShrinkRefused(Exception):
    """A complete run would withdraw too much (docs/conventions.md#shrink-guard); `stated` and `lost` count offers."""

    def __init__(self, stated: int, lost: int) -> None:
        self.stated, self.lost = stated, lost
        super().__init__(
            f"The run would withdraw {lost} of {stated} offers, so nothing was stored. If that is right, have this very data read "
            'again: POST /v1/sources/{id}/replay with {"accept_shrink": true}.'
        )


class RecordsSpent(Exception):
    """The month's quota has no room for the records that the run would make or change; nothing of it was stored."""


async def refuse_shrink(feed: Feed, run: Run) -> None:
    """Raise ShrinkRefused when the run would withdraw too much without permission."""
    if not run.complete or run.accept_shrink:
        return
    async with feed.uow.read(feed.tenant) as tx:
        stated = await tx[CatalogueStore].stated_offers(run.source, run.stream)
        before = await tx[RunStore].last_ended(run.source, run.stream)
    if stated <= SHRINK_LEAST:
        return
    allowed = allowance(stated)
    # every offer under a changed key counts at first: an upper bound that reads no changed row
    lost = await _lost(feed, allowed, exactly=run.stream == Stream.STOCK)
    if lost > allowed and run.stream == Stream.CATALOGUE:
        lost = await _lost(feed, stated, exactly=True)
    if lost > allowed and not confirms(before, lost):
        raise ShrinkRefused(stated, lost)


async def _lost(feed: Feed, enough: int, *, exactly: bool) -> int:
    """Count the offers that the run would withdraw; stop past `enough`."""
    lost = 0
    for number in range(len(feed.chunks)):
        chunk = await feed.compare(number)
        changed = chunk.diff.changed
        if keys := changed | chunk.diff.absent:
            async with feed.uow.read(feed.tenant) as tx:
                held = await tx[CatalogueStore].stated_of(feed.source.id, feed.stream, sorted(keys))
            if held and exactly and feed.stream == Stream.STOCK:
                held -= kept_by_stock(held, changed, feed.spooled.places)
            elif held and exactly:
                held -= kept_by_catalogue(held, (await feed.states(chunk, changed)).statements)
                if not feed.spooled.names_products:  # variants of an absent product may be listed in other chunks
                    held -= {offer for offer in held if offer[0] not in changed and feed.has(offer[0])}
            lost += len(held)
        if lost > enough:
            break
    return lost


def allowance(stated: int) -> int:
    """Return how many of so many stated offers a run may withdraw."""
    return max(SHRINK_LEAST, int(stated * SHRINK_SHARE))


def confirms(before: Run | None, lost: int) -> bool:
    """Return whether the run before was refused for losing about as many."""
    return before is not None and before.was_refused and lost <= before.stats.get("would_withdraw", 0) * SECOND_SIGHT


def kept_by_stock(held: Offers, keys: Collection[str], places: Collection[str] | None) -> Offers:
    """Return those of the offers that a stock sheet keeps: of the items it names, at the locations it has columns for."""
    return frozenset(offer for offer in held if offer[0] in keys and (places is None or offer[1] in places))


def kept_by_catalogue(held: Offers, statements: Iterable[ProductStatement]) -> Offers:
    """Return the offers that a catalogue feed states, everywhere or there, or of variants whose locations it does not cover."""
    variants = {variant.key: variant for statement in statements for variant in statement.variants}
    everywhere = {
        key
        for key, variant in variants.items()
        if not variant.covers_locations or any(offer.is_general for offer in variant.offers)
    }
    stated = {(key, offer.location) for key, variant in variants.items() for offer in variant.offers}
    return frozenset(offer for offer in held if offer in stated or offer[0] in everywhere)


async def reserve_records(feed: Feed, run: Run) -> None:
    """Keep room in the quota until the run ends. Raises RecordsSpent.

    Mostly there is room for every row of the feed; only where there is not, those that changed are counted first.
    """
    async with feed.uow.begin(feed.tenant, feed.context) as tx:
        most = await quota.included(tx, RECORDS)
        if most is None or await quota.reserve(tx, RECORDS, feed.spooled.rows, run.id):
            return
    changed = 0
    for number in range(len(feed.chunks)):
        diff = (await feed.compare(number)).diff
        changed += len(diff.changed | diff.returned)
    async with feed.uow.begin(feed.tenant, feed.context) as tx:
        if not await quota.reserve(tx, RECORDS, changed, run.id):
            raise RecordsSpent(
                f"The run would make or change {changed:,} items, so nothing was stored. {quota.told(RECORDS, most)}"
            )
