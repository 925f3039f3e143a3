"""Taking back what was decided of match pairs, and what was set of the judge: by the same use cases."""

from collections.abc import Iterable
from typing import Any

from domain.audit.model import Act, Change
from domain.matching.model import MatchPair, PairStatus
from domain.matching.usecases.judge_settings import JudgeSettingsService
from domain.matching.usecases.merging import Merging
from ports.unit_of_work import Tx


async def take_back_decisions(merging: Merging, tx: Tx, act: Act) -> None:
    """A merge is undone, an undone one made anew, a dismissal taken back, a reopened pair dismissed again.

    Raises what these raise. Pairs that only followed, follow again.
    """
    pairs = [change for _, change in act.changes("match_pair")]
    for change in pairs:
        if change.after.get("status") == PairStatus.MERGED:
            pair = await merging.get_pair(tx, change.id)
            if pair.merge is not None:
                await merging.undo(tx, pair.merge, held=change.before.get("held"))
        elif change.after.get("status") == PairStatus.DISMISSED:
            await merging.reopen(tx, change.id, hold=bool(change.before.get("held", False)))
        elif change.before.get("status") == PairStatus.DISMISSED:
            await merging.dismiss_again(tx, change.id, held=change.before.get("held"))
    await _merge_again(merging, tx, pairs)


async def _merge_again(merging: Merging, tx: Tx, pairs: Iterable[Change]) -> None:
    """Pairs that were merged are merged anew, as they were decided, in that order."""
    parted: list[tuple[str, MatchPair, Change]] = []
    for change in pairs:
        if change.before.get("status") == PairStatus.MERGED:
            parted.append((str(change.before.get("merge", "")), await merging.get_pair(tx, change.id), change))
    for merge, pair, change in sorted(parted, key=lambda one: one[0]):
        was = await merging.get_merge(tx, merge)
        await merging.merge(tx, pair.id, was.decided_by, was.reason, held=change.before.get("held"))


async def take_back_settings(settings: JudgeSettingsService, tx: Tx, act: Act) -> None:
    """The judge's settings as they were. Raises what setting them raises."""
    for _, change in act.changes("judge_settings"):
        asked: Any = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
        await settings.update(tx, asked)
