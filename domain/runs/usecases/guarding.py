"""Checks before a run stores anything: the removal limit, and the monthly quota of records."""

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
"""Factor by which a second run may withdraw more than the refused one and still confirm it."""

Offers = frozenset[tuple[str, str]]
"""Offers as (variant key, location)."""


class ShrinkRefused(Exception):
    """The run exceeds the removal limit (docs/conventions.md#shrink-guard); `stated` and `lost` count offers."""

    def __init__(self, stated: int, lost: int) -> None:
        self.stated, self.lost = stated, lost
        super().__init__(
            f"The run would withdraw {lost} of {stated} offers, so nothing was stored. If that is right, have this very data read "
            'again: POST /v1/sources/{id}/replay with {"accept_shrink": true}.'
        )


class RecordsSpent(Exception):
    """The run exceeds the monthly quota of records; nothing of it was stored."""


async def refuse_shrink(feed: Feed, run: Run) -> None:
    """Raise ShrinkRefused if the run exceeds the removal limit without permission."""
    if not run.complete or run.accept_shrink:
        return
    async with feed.uow.read(feed.tenant) as tx:
        stated = await tx[CatalogueStore].stated_offers(run.source, run.stream)
        before = await tx[RunStore].last_ended(run.source, run.stream)
    if stated <= SHRINK_LEAST:
        return
    allowed = allowance(stated)
    # first count every offer under a changed key: an upper bound that needs no rows
    lost = await _count_withdrawals(feed, allowed, exactly=run.stream == Stream.STOCK)
    if lost > allowed and run.stream == Stream.CATALOGUE:
        lost = await _count_withdrawals(feed, stated, exactly=True)
    if lost > allowed and not confirms(before, lost):
        raise ShrinkRefused(stated, lost)


async def _count_withdrawals(feed: Feed, enough: int, *, exactly: bool) -> int:
    """Count the offers that the run would withdraw; stop once the count exceeds `enough`."""
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
    """Return the maximum number of stated offers that a run may withdraw."""
    return max(SHRINK_LEAST, int(stated * SHRINK_SHARE))


def confirms(before: Run | None, lost: int) -> bool:
    """Return whether the previous run was refused for about the same number of withdrawals."""
    return before is not None and before.was_refused and lost <= before.stats.get("would_withdraw", 0) * SECOND_SIGHT


def kept_by_stock(held: Offers, keys: Collection[str], places: Collection[str] | None) -> Offers:
    """Return the offers that a stock sheet keeps: those of its items, at the locations it has columns for."""
    return frozenset(offer for offer in held if offer[0] in keys and (places is None or offer[1] in places))


def kept_by_catalogue(held: Offers, statements: Iterable[ProductStatement]) -> Offers:
    """Return the offers that a catalogue feed keeps: those stated there or for all locations, and those of variants without location cells."""
    variants = {variant.key: variant for statement in statements for variant in statement.variants}
    everywhere = {
        key
        for key, variant in variants.items()
        if not variant.covers_locations or any(offer.is_general for offer in variant.offers)
    }
    stated = {(key, offer.location) for key, variant in variants.items() for offer in variant.offers}
    return frozenset(offer for offer in held if offer in stated or offer[0] in everywhere)


async def reserve_records(feed: Feed, run: Run) -> None:
    """Reserve quota until the run ends. Raises RecordsSpent.

    Usually the quota covers every row of the feed; changed rows are counted only if it does not.
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
