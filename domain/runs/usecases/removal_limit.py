"""Checks before a run stores anything: the removal limit, and the monthly quota of records."""

from collections.abc import Collection, Iterable

from domain.catalogue.model import ProductFilter, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.statements import ProductStatement
from domain.kernel.paging import PageRequest
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.usecases.chunk_changes import FeedComparison
from domain.usage.meters import RECORDS
from domain.usage.usecases import quota

MAX_WITHDRAWN_SHARE = 0.3
"""Share of a source's offers that a complete run may withdraw."""
ALWAYS_PERMITTED_WITHDRAWALS = 50
"""Number of offers that a complete run may always withdraw, even if they are a larger share."""
CONFIRMATION_TOLERANCE = 1.1
"""Maximum ratio of a run's withdrawals to the withdrawals of the previous, refused run that the run can confirm."""

Offers = frozenset[tuple[str, str]]
"""Set of offers, each as variant key and location."""


class RemovalLimitExceeded(Exception):
    """The run exceeds the removal limit (docs/conventions.md#removal-limit).

    Attributes:
        offer_count: Number of offers that the source has.
        withdrawn_count: Number of those offers that the run would withdraw.
    """

    def __init__(self, offer_count: int, withdrawn_count: int) -> None:
        self.offer_count, self.withdrawn_count = offer_count, withdrawn_count
        super().__init__(
            f"The run would withdraw {withdrawn_count} of {offer_count} offers, so nothing was stored. If this is correct, replay the "
            'data: POST /v1/sources/{id}/replay with {"accept_shrink": true}.'
        )


class RecordQuotaExceeded(Exception):
    """The run exceeds the monthly quota of records, so nothing was stored."""


async def check_removal_limit(feed: FeedComparison, run: Run) -> None:
    """Raise RemovalLimitExceeded if the run would withdraw too many offers, unless a user has disabled the limit for it.

    A source that follows a catalogue has no limit: the vendor decides what other organisations can read.
    """
    if not run.is_complete or run.accept_shrink or feed.source.follows_catalogue:
        return
    async with feed.uow.begin_reading(feed.tenant) as tx:
        offer_count = await tx[CatalogueStore].count_stated_offers(run.source, run.stream)
        before = await tx[RunStore].find_last_succeeded_or_failed(run.source, run.stream)
    if offer_count <= ALWAYS_PERMITTED_WITHDRAWALS:
        return
    allowed = compute_max_withdrawals(offer_count)
    # first count every offer under a changed key: an upper bound for which no rows are read
    withdrawn_count = await _count_withdrawals(feed, allowed, is_exact=run.stream == Stream.STOCK)
    if withdrawn_count > allowed and run.stream == Stream.CATALOGUE:
        withdrawn_count = await _count_withdrawals(feed, offer_count, is_exact=True)
    if withdrawn_count > allowed and not is_confirmation(before, withdrawn_count):
        raise RemovalLimitExceeded(offer_count, withdrawn_count)


async def _count_withdrawals(feed: FeedComparison, max_count: int, *, is_exact: bool) -> int:
    """Count the offers that the run would withdraw; stop once there are more than `max_count`.

    Unless `is_exact`, all offers under changed keys are counted, which is an upper bound.
    """
    count = 0
    for number in range(len(feed.chunks)):
        chunk = await feed.compare_chunk(number)
        changed = chunk.diff.changed
        if keys := changed | chunk.diff.absent:
            async with feed.uow.begin_reading(feed.tenant) as tx:
                offers = await tx[CatalogueStore].find_stated_offers(feed.source.id, feed.stream, sorted(keys))
            if offers and is_exact and feed.stream == Stream.STOCK:
                offers -= select_offers_kept_by_stock(offers, changed, feed.spooled.locations)
            elif offers and is_exact:
                offers -= select_offers_kept_by_catalogue(
                    offers, (await feed.read_statements(chunk, changed)).statements
                )
                if not feed.spooled.has_product_keys:  # variants of an absent product may be listed in other chunks
                    offers -= {offer for offer in offers if offer[0] not in changed and feed.contains_product(offer[0])}
            count += len(offers)
        if count > max_count:
            break
    return count


def compute_max_withdrawals(offer_count: int) -> int:
    """Return the maximum number of offers that a run may withdraw from a source with `offer_count` offers."""
    return max(ALWAYS_PERMITTED_WITHDRAWALS, int(offer_count * MAX_WITHDRAWN_SHARE))


def is_confirmation(previous_run: Run | None, withdrawn_count: int) -> bool:
    """Return whether a run confirms the removal for which the previous run was refused, so that the run is permitted.

    A run confirms the removal if it would withdraw at most CONFIRMATION_TOLERANCE times as many offers.

    Args:
        previous_run: The newest run that succeeded or failed, or None.
        withdrawn_count: Number of offers that the run would withdraw.
    """
    return (
        previous_run is not None
        and previous_run.has_exceeded_removal_limit
        and withdrawn_count <= previous_run.stats.get("would_withdraw", 0) * CONFIRMATION_TOLERANCE
    )


def select_offers_kept_by_stock(offers: Offers, keys: Collection[str], locations: Collection[str] | None) -> Offers:
    """Return the offers that a stock sheet does not withdraw.

    Args:
        offers: The source's offers.
        keys: Variant keys in the sheet.
        locations: Locations for which the sheet has columns; None if it covers all locations.
    """
    return frozenset(offer for offer in offers if offer[0] in keys and (locations is None or offer[1] in locations))


def select_offers_kept_by_catalogue(offers: Offers, statements: Iterable[ProductStatement]) -> Offers:
    """Return the offers that a catalogue feed does not withdraw.

    These are the offers in the feed, and all offers of variants for which the feed does not distinguish locations.
    """
    variants = {variant.key: variant for statement in statements for variant in statement.variants}
    keys_for_all_locations = {
        key
        for key, variant in variants.items()
        if not variant.covers_locations or any(offer.is_general for offer in variant.offers)
    }
    stated = {(key, offer.location) for key, variant in variants.items() for offer in variant.offers}
    return frozenset(offer for offer in offers if offer in stated or offer[0] in keys_for_all_locations)


async def _has_copies(feed: FeedComparison) -> bool:
    async with feed.uow.begin_reading(feed.tenant) as tx:
        page = await tx[CatalogueStore].list_products(ProductFilter(source=[feed.source.id]), PageRequest(1))
    return bool(page.items)


async def reserve_records(feed: FeedComparison, run: Run) -> None:
    """Reserve monthly quota for the records that the run may change. Raises RecordQuotaExceeded.

    Copies of a followed catalogue must not outlive the licence, so a run of such a source is refused only while it has none.
    """
    if feed.source.follows_catalogue and await _has_copies(feed):
        return
    # usually the quota suffices for every row of the feed; only if not, the changed rows are counted
    async with feed.uow.begin(feed.tenant, feed.context) as tx:
        included = await quota.get_monthly_quota(tx, RECORDS)
        if included is None or await quota.reserve_quota(tx, RECORDS, feed.spooled.row_count, run.id):
            return
    changed = 0
    for number in range(len(feed.chunks)):
        diff = (await feed.compare_chunk(number)).diff
        changed += len(diff.changed | diff.returned)
    async with feed.uow.begin(feed.tenant, feed.context) as tx:
        if not await quota.reserve_quota(tx, RECORDS, changed, run.id):
            raise RecordQuotaExceeded(
                f"The run would create or change {changed:,} items, so nothing was stored. "
                f"{quota.describe_spent_quota(RECORDS, included)}"
            )
