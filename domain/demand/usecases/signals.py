"""Use case that counts signals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time

from domain.demand.model import (
    MAX_AGE,
    MAX_CLOCK_DIFFERENCE,
    NETWORK,
    DemandReceipt,
    DemandSignal,
    SignalCount,
    SignalRejection,
    SignalType,
    find_first_open_day,
    normalise_query,
)
from domain.demand.ports import DemandStore
from ports.unit_of_work import Tx

_QUERY_LENGTHS = range(2, 101)


class DemandService:
    """Counting of an organisation's signals."""

    async def record(
        self, tx: Tx, signals: Sequence[DemandSignal], rejected: Sequence[SignalRejection], *, is_vendor: bool
    ) -> DemandReceipt:
        """Count signals by hour, and return the receipt.

        Signals about the organisation's own products are accepted and not counted, because no statistic includes them.
        The same applies to search misses of vendors: their cells are the same for all vendors, so a vendor could
        subtract its own.

        Args:
            tx: The transaction.
            signals: The well-formed signals.
            rejected: The malformed signals.
            is_vendor: Whether the organisation is a vendor.
        """
        store, faults = tx[DemandStore], list(rejected)
        valid = []
        for signal in signals:
            if (fault := _find_fault(signal, tx.now)) is None:
                valid.append(signal)
            else:
                faults.append(fault)
        variants = {one.variant for one in valid if one.variant and not one.product}
        own_variants = {*await store.find_own_variants(variants)} if variants else set()
        products = {one.product for one in valid if one.product}
        own_products = {*await store.find_own_products(products)} if products else set()
        vendor_by_product = await store.find_publishers(products) if products else {}
        readable = {*own_products, *vendor_by_product}
        known = []
        for signal in valid:
            is_known = signal.product in readable if signal.product else signal.variant in own_variants
            if is_known or signal.type is SignalType.SEARCH_MISS:
                known.append(signal)
            else:
                faults.append(_describe_unknown(signal))
        new = await self._select_new(store, known)
        await store.add_counts(_count_by_hour(new, vendor_by_product, tx.now, counts_misses=not is_vendor))
        return DemandReceipt(len(new), len(known) - len(new), sorted(faults, key=lambda fault: fault.index))

    async def _select_new(self, store: DemandStore, signals: Sequence[DemandSignal]) -> list[DemandSignal]:
        """Return the signals without an ID, and the first one with each ID that was not sent in the last 24 hours."""
        first_by_id = {one.id: one for one in reversed(signals) if one.id is not None}
        new_ids = {*await store.add_signal_ids(sorted(filter(None, first_by_id)))} if first_by_id else set()
        return [one for one in signals if one.id is None or (one.id in new_ids and first_by_id[one.id] is one)]


def _find_fault(signal: DemandSignal, now: datetime) -> SignalRejection | None:
    """Return the reason why a well-formed signal is not accepted, or None."""
    if not now - MAX_AGE <= signal.occurred_at <= now + MAX_CLOCK_DIFFERENCE:
        detail = f"occurred_at: Must be within the last {MAX_AGE.days} days and not in the future."
        return SignalRejection(signal.index, "invalid_value", detail)
    if signal.type is not SignalType.SEARCH_MISS:
        if signal.product or signal.variant:
            return None
        return SignalRejection(signal.index, "required", "product: State the product that the signal is about.")
    if signal.product or signal.variant:
        return SignalRejection(signal.index, "unknown_field", "product: A search miss has a query and no product.")
    if signal.query is None:
        return SignalRejection(signal.index, "required", "query: State the text that was searched without results.")
    if len(normalise_query(signal.query)) not in _QUERY_LENGTHS:
        detail = f"query: Must have {_QUERY_LENGTHS[0]} to {_QUERY_LENGTHS[-1]} characters without surrounding spaces."
        return SignalRejection(signal.index, "invalid_value", detail)
    return None


def _describe_unknown(signal: DemandSignal) -> SignalRejection:
    if signal.product:
        detail = "product: This product does not exist, or you cannot see it. Check the ID."
    else:
        detail = "variant: This variant is not in your own catalogue. State the product as well."
    return SignalRejection(signal.index, "not_found", detail)


def _count_by_hour(
    signals: Sequence[DemandSignal], vendor_by_product: Mapping[str, str | None], now: datetime, *, counts_misses: bool
) -> list[SignalCount]:
    """Return the numbers of signals by hour, vendor, subject and type, in a fixed order, to avoid deadlocks.

    Signals of a day that is no longer open count on the first open day.
    """
    opened = datetime.combine(find_first_open_day(now), time(), UTC)
    counts: Counter[tuple[datetime, str, str, SignalType]] = Counter()
    for signal in signals:
        hour = max(opened, signal.occurred_at.replace(minute=0, second=0, microsecond=0))
        if signal.type is SignalType.SEARCH_MISS:
            if counts_misses:
                counts[hour, NETWORK, normalise_query(signal.query or ""), signal.type] += 1
        elif vendor := vendor_by_product.get(signal.product or ""):
            counts[hour, vendor, signal.product or "", signal.type] += 1
    return [SignalCount(*key, amount) for key, amount in sorted(counts.items())]
