"""The monthly quota of records: before anything is stored, room is kept for all that a run may make or change."""

from domain.runs.model import Run
from domain.runs.usecases.chunking import FeedChunks
from domain.usage.meters import RECORDS
from domain.usage.usecases import quota


class RecordsSpent(Exception):
    """What the run would make or change has no room in the month's quota; nothing of it was stored."""


async def reserve_records(chunks: FeedChunks, run: Run) -> None:
    """Keep room until the run ends. Raises RecordsSpent.

    Mostly there is room for every row of the feed; only where there is not, those that changed are counted first.
    """
    async with chunks.uow.begin(chunks.tenant, chunks.context) as tx:
        most = await quota.included(tx, RECORDS)
        if most is None or await quota.reserve(tx, RECORDS, chunks.feed.rows, run.id):
            return
    changed = 0
    for number in range(len(chunks.buckets)):
        diff = (await chunks.compare(number)).diff
        changed += len(diff.changed | diff.returned)
    async with chunks.uow.begin(chunks.tenant, chunks.context) as tx:
        if not await quota.reserve(tx, RECORDS, changed, run.id):
            raise RecordsSpent(
                f"The run would make or change {changed:,} items, so nothing was stored. {quota.told(RECORDS, most)}"
            )
