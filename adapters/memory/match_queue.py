"""The queue of variants to be matched, in memory: written beside the catalogue, read by the index."""

from collections.abc import Callable
from typing import Any, Final

from adapters.memory.table import Table, Transaction
from domain.catalogue.batch import Batch
from domain.catalogue.model import Product
from domain.matching.index import Queued

QUEUE: Final = Table[Queued]("match_queue", lambda queued: queued.variant, descending=False)
_NAMES: Final = ("title", "brand", "collection")


async def queue_changed(transaction: Transaction, batch: Batch, stored: Callable[[str], Product | None]) -> None:
    """Queue what a batch changes: variants, and all those of products that are called otherwise now."""
    changed = {variant.id for variant in (*batch.new_variants, *batch.changed_variants)}
    for product in batch.changed_products:
        before = stored(product.id)
        if before is not None and _names(before.data) != _names(product.data):
            changed.update(variant.id for variant in before.variants)
    rows, stamp = transaction.rows(QUEUE), transaction.store.next_number()
    for id in sorted(changed):
        waiting = rows.get(id)
        await rows.put(Queued(id, stamp, since=waiting.since if waiting else transaction.now))


def _names(data: Any) -> list[Any]:
    return [data.get(name) for name in _NAMES]
