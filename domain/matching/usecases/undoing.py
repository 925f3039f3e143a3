"""Taking back what was decided of match pairs, and what was set of the judge: to exactly what the audit log says was before."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from domain.audit.model import Act, Change
from domain.catalogue.ports import CatalogueStore
from domain.kernel.errors import Conflict
from domain.kernel.resource import existing
from domain.matching.deciding import CannotMerge, MergePlan, StillNeeded
from domain.matching.model import MatchPair, Merge, MergeStatus, PairStatus
from domain.matching.ports import MergeStore, PairStore
from domain.matching.usecases.judge_settings import JudgeSettingsService
from domain.matching.usecases.merging import apart_of, applied, change_pair, ends_of, lay, planned
from ports.unit_of_work import Tx

_APPLIED: Final = MergeStatus.APPLIED


async def take_back_decisions(tx: Tx, act: Act) -> None:
    """Merges that were made count no more, those that were undone count again, and pairs stand as before.

    Raises NotFound; Conflict where another merge rests on one that would go, or what was one cannot be any more.
    """
    await tx[CatalogueStore].take_turn(merging=True)
    merges = {change.id: change for _, change in act.changes("merge")}
    pairs = {change.id: change for _, change in act.changes("match_pair")}
    if merges:
        await _put_back_merges(tx, merges, pairs)
    for id, change in pairs.items():
        await _put_back_pair(tx, id, change, act.entries[0].created_at)


async def _put_back_merges(tx: Tx, changes: Mapping[str, Change], pairs: Mapping[str, Change]) -> None:
    merges = [await _merge(tx, id) for id in changes]
    products = sorted({product for merge in merges for product in await ends_of(tx, merge)})
    tied = await tx[CatalogueStore].tied(products, products)
    known = await tx[PairStore].of_variants([*tied.owners()])
    plan = MergePlan.of(tied, await applied(tx, tied), tx.now, known)
    apart = [pair for pair in known if pair.status == PairStatus.DISMISSED and pair.id not in pairs]
    apart = [pair for pair in apart if tied.root(pair.left) != tied.root(pair.right)]
    going = [merge for merge in merges if changes[merge.id].after.get("status") == _APPLIED]
    coming = [merge for merge in merges if changes[merge.id].before.get("status") == _APPLIED]
    _refuse_moved(going, coming)
    rests_on = {id: one.before["rests_on"] for id, one in changes.items() if not {"status"} & one.after.keys()}
    try:
        plan.put_back(going, coming, rests_on)
    except (StillNeeded, CannotMerge) as why:
        raise Conflict(str(why)) from why
    if one := next((pair for pair in apart if tied.root(pair.left) == tied.root(pair.right)), None):
        raise Conflict(f"The pair {one.id}, which this would make one as well, was dismissed: reopen it first.")
    await lay(tx, plan)


def _refuse_moved(going: Sequence[Merge], coming: Sequence[Merge]) -> None:
    """Raises Conflict where merges are not as they were left."""
    for merge in going:
        if merge.status != _APPLIED:
            raise Conflict(f"The merge {merge.id} is undone by now.")
    for merge in coming:
        if merge.status == _APPLIED:
            raise Conflict(f"The merge {merge.id} counts by now.")


async def _put_back_pair(tx: Tx, id: str, change: Change, since: datetime) -> None:
    pair = existing(await tx[PairStore].get(id, lock=True))
    values: dict[str, Any] = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
    reopened = pair.status == PairStatus.DISMISSED and values.get("status") == PairStatus.OPEN
    if reopened and await _is_overtaken(tx, pair, since):
        values["status"] = PairStatus.SUPERSEDED
    await change_pair(tx, pair, **values | ({"status": PairStatus(values["status"])} if "status" in values else {}))


async def _is_overtaken(tx: Tx, pair: MatchPair, since: datetime) -> bool:
    """Whether the two cannot be merged any more by what was merged since."""
    plan = await planned(tx, (pair.left, pair.right))
    [apart] = await apart_of(tx, plan, [pair])
    return not apart and any(merge.created_at > since for merge in plan.applied.values())


async def _merge(tx: Tx, id: str) -> Merge:
    return existing(await tx[MergeStore].get(id, lock=True))


async def take_back_settings(settings: JudgeSettingsService, tx: Tx, act: Act) -> None:
    """The judge's settings as they were. Raises what setting them raises."""
    for _, change in act.changes("judge_settings"):
        asked: Any = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
        await settings.update(tx, asked)
