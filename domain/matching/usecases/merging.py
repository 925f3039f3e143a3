"""Merging pairs and undoing merges: rows, events, pairs and what readers see, in one transaction.

Also what follows for merged products when a decision is undone by the audit log, or when a source's rights have changed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from domain.audit.model import Act, Change
from domain.audit.ports import AuditLog
from domain.catalogue.laying import Cause, Laid, Laying
from domain.catalogue.overlay import Precedence, TiedProducts, shown
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.writing import aside
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import LEASE
from domain.kernel.errors import Conflict
from domain.kernel.resource import changed, existing, load
from domain.kernel.tenancy import AuditContext
from domain.matching.merge_plan import CannotMerge, MergePlan, StillNeeded
from domain.matching.model import (
    MERGE_AUDITED,
    OFFERED_AT,
    PAIR_AUDITED,
    DecidedBy,
    MatchPair,
    Merge,
    MergeKind,
    MergeStatus,
    PairStatus,
)
from domain.matching.ports import MergeStore, PairStore
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx, UnitOfWork

AGENT = "agent"


def decided_by(context: AuditContext) -> DecidedBy:
    """Return who decides what is asked for: a person, whatever they ask with, or an agent."""
    return DecidedBy.AGENT if context.actor.kind == AGENT else DecidedBy.PERSON


@dataclass(frozen=True, slots=True)
class Merging:
    """Merging of pairs and undoing of merges."""

    async def merge(self, tx: Tx, pair_id: str, by: DecidedBy, reason: str | None = None) -> MatchPair:
        """Merge the pair. Raises NotFound; Conflict if it is not open or its items cannot be merged."""
        await tx[CatalogueStore].take_turn(merging=True)
        pair = await _open(tx, pair_id)
        merges, plan = await self.merge_all(tx, [pair], by, reason)
        if isinstance(made := merges[pair.id], CannotMerge):
            raise Conflict(str(made))
        await change_pair(tx, pair, status=PairStatus.MERGED, merge=made.id)
        await supersede(tx, plan, await tx[PairStore].open_of(plan.members(pair.left)))
        return existing(await tx[PairStore].get(pair_id))

    async def merge_all(
        self,
        tx: Tx,
        pairs: Sequence[MatchPair],
        by: DecidedBy,
        reason: str | None = None,
        new: Iterable[MatchPair] = (),
        beside: Sequence[str] = (),
    ) -> tuple[Mapping[str, Merge | CannotMerge], MergePlan]:
        """Merge the variants of pairs, in this order; the pairs themselves are left to the caller. `new` are not stored yet.

        Answers the merge of each pair, or why there is none, and what is merged by now, also of what is tied to the variants
        `beside`. Needs `take_turn(merging=True)`.
        """
        ends = {id for pair in pairs for id in (pair.left, pair.right)}
        homes = await tx[CatalogueStore].homes(sorted({*ends, *beside}))
        products = sorted({homes[id][0] for id in ends if id in homes})
        plan = await _plan(tx, sorted({product for product, _ in homes.values()}) if products else (), products)
        plan.know(await tx[PairStore].of_variants([*plan.tied.owners()]))
        plan.know(new)
        made = await aside(plan.tied.size, lambda: _joined(plan, pairs, by, reason))
        if plan.made:
            await lay(tx, plan)
        return made, plan

    async def dismiss(self, tx: Tx, pair_id: str, by: DecidedBy, reason: str | None = None) -> MatchPair:
        """Dismiss the pair. Raises NotFound; Conflict if it is not open."""
        return await change_pair(tx, await _open(tx, pair_id), status=PairStatus.DISMISSED)

    async def reopen(self, tx: Tx, pair_id: str) -> MatchPair:
        """Undo a dismissal; a pair that can no longer be merged is superseded. Raises NotFound; Conflict if it is not dismissed."""
        await tx[CatalogueStore].take_turn()
        pair = existing(await tx[PairStore].get(pair_id, lock=True))
        if pair.status != PairStatus.DISMISSED:
            raise Conflict(f"The pair is {pair.status}; only a dismissed one can be opened again.")
        [apart] = await apart_of(tx, await planned(tx, (pair.left, pair.right)), [pair])
        status = PairStatus.OPEN if apart else PairStatus.SUPERSEDED
        return await change_pair(tx, pair, status=status, held=True)

    async def undo(self, tx: Tx, merge_id: str) -> Merge:
        """Undo a merge. Raises NotFound; Conflict if it is already undone or a later merge depends on it."""
        await tx[CatalogueStore].take_turn(merging=True)
        merge = existing(await tx[MergeStore].get(merge_id, lock=True))
        if merge.status != MergeStatus.APPLIED:
            raise Conflict("The merge is already undone.")
        products = await _ends_of(tx, merge)
        plan = await _plan(tx, products, products)
        try:
            await aside(plan.tied.size, lambda: plan.undo(plan.applied[merge.merged]))
        except StillNeeded as why:
            raise Conflict(str(why)) from why
        await lay(tx, plan)
        await _reopen(tx, plan)
        return existing(await tx[MergeStore].get(merge_id))

    async def settle(self, tx: Tx, variants: Sequence[str]) -> None:
        """Update merges of products after their sources changed the variants. Needs `take_turn(merging=True)`."""
        plan = await planned(tx, variants)
        if not plan.tied.merged:
            return
        await aside(plan.tied.size, plan.settle)
        if plan.made or plan.undone:
            await lay(tx, plan)


async def _open(tx: Tx, id: str) -> MatchPair:
    pair = existing(await tx[PairStore].get(id, lock=True))
    if pair.status != PairStatus.OPEN:
        raise Conflict(f"The pair is {pair.status}; only an open one can be decided.")
    return pair


async def change_pair(tx: Tx, pair: MatchPair, **changes: object) -> MatchPair:
    """Store the pair with changed fields, and audit the change."""
    after = changed(pair, tx.now, **changes)
    await tx[PairStore].save(after)
    await tx[AuditLog].add(PAIR_AUDITED.updated(pair, after))
    return after


async def products_of(tx: Tx, variants: Sequence[str]) -> list[str]:
    """Return the products of variants, as their sources have them, by id."""
    homes = await tx[CatalogueStore].homes(variants)
    return sorted({product for product, _ in homes.values()})


async def _ends_of(tx: Tx, merge: Merge) -> list[str]:
    """Return the products that a merge ties together, as their sources have them."""
    if merge.kind == MergeKind.PRODUCT:
        return [merge.survivor, merge.merged]
    return await products_of(tx, [merge.survivor, merge.merged])


def _joined(
    plan: MergePlan, pairs: Iterable[MatchPair], by: DecidedBy, reason: str | None
) -> dict[str, Merge | CannotMerge]:
    made: dict[str, Merge | CannotMerge] = {}
    for pair in pairs:
        try:
            made[pair.id] = plan.join(pair, by, reason)
        except CannotMerge as why:
            made[pair.id] = why
    return made


async def lay(tx: Tx, plan: MergePlan) -> None:
    """Store what was planned: merges with their audit entries, what readers see, and the events.

    What readers see is worked out while the store takes in the merges.
    """
    reckoned = asyncio.ensure_future(aside(plan.tied.size, lambda: _relaid(plan)))
    try:
        await _kept(tx, plan)
    finally:
        await asyncio.wait([reckoned])
    laid, events = reckoned.result()
    await tx[CatalogueStore].lay(laid, plan.now)
    await tx[EventLog].append(events)


async def _kept(tx: Tx, plan: MergePlan) -> None:
    for after in (*plan.kept, *plan.undone, *plan.again):
        was = existing(await tx[MergeStore].get(after.id))
        await tx[MergeStore].save(after)
        await tx[AuditLog].add(MERGE_AUDITED.updated(was, after))
    await tx[MergeStore].add_all(plan.made)
    await tx[AuditLog].add_all([MERGE_AUDITED.created(merge) for merge in plan.made])


def _relaid(plan: MergePlan) -> tuple[Laid, Sequence[Event]]:
    """Return what readers see from now on of what was touched, and the events of it."""
    was, now = plan.touched()
    ids = {merge.merged: merge.id for merge in (*plan.undone, *plan.made, *plan.again)}
    laying = Laying(shown(was), now, Cause(None, plan.now, merging=True), ids, was.roots())
    return laying.laid(), laying.events


async def planned(tx: Tx, variants: Sequence[str]) -> MergePlan:
    """Return a plan with the active merges of these variants' families and no changes."""
    return await _plan(tx, await products_of(tx, variants))


async def _plan(tx: Tx, products: Sequence[str], also: Sequence[str] = ()) -> MergePlan:
    tied = await tx[CatalogueStore].tied(products, also) if products else TiedProducts()
    ids = [*tied.products, *tied.owners()]
    return MergePlan(tied, await tx[MergeStore].applied(ids) if ids else (), tx.now)


async def supersede(tx: Tx, plan: MergePlan, pairs: Sequence[MatchPair]) -> None:
    """Supersede open pairs that cannot be merged: already merged, or with items of one source on both sides."""
    for pair, apart in zip(pairs, await apart_of(tx, plan, pairs), strict=True):
        if not apart:
            await change_pair(tx, pair, status=PairStatus.SUPERSEDED)


async def apart_of(tx: Tx, plan: MergePlan, pairs: Sequence[MatchPair]) -> list[bool]:
    """Return for each pair whether it could be merged; variants unknown to the plan count as unmerged."""
    ids = {id for pair in pairs for id in (pair.left, pair.right)}
    sources = {id: plan.sources(id) for id in ids if plan.knows(id)}
    unknown = sorted(ids.difference(sources))
    if unknown:
        sources |= {id: {source} for id, (_, source) in (await tx[CatalogueStore].homes(unknown)).items()}
    nothing = set[str]()
    found = [(sources.get(pair.left, nothing), sources.get(pair.right, nothing)) for pair in pairs]
    return [bool(left and right) and left.isdisjoint(right) for left, right in found]


async def _reopen(tx: Tx, plan: MergePlan) -> None:
    """Reopen the pairs of undone merges: merged ones wait for a person, others become open as before."""
    undone = {merge.id for merge in plan.undone}
    waiting = []
    for pair in await tx[PairStore].of_variants([*plan.tied.owners()], lock=True):
        if pair.merge in undone:
            await change_pair(tx, pair, status=PairStatus.OPEN, merge=None, held=True)
        elif pair.status == PairStatus.SUPERSEDED and pair.probability >= OFFERED_AT:
            waiting.append(pair)
    for pair, apart in zip(waiting, await apart_of(tx, plan, waiting), strict=True):
        if apart:
            await change_pair(tx, pair, status=PairStatus.OPEN)


_APPLIED = MergeStatus.APPLIED


async def take_back_decisions(tx: Tx, act: Act) -> None:
    """Undo the decisions of an act: merges that were created are undone, undone merges are applied again, and pairs are restored.

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
    merges = [existing(await tx[MergeStore].get(id, lock=True)) for id in changes]
    products = sorted({product for merge in merges for product in await _ends_of(tx, merge)})
    plan = await _plan(tx, products, products)
    tied = plan.tied
    known = await tx[PairStore].of_variants([*tied.owners()])
    plan.know(known)
    apart = [pair for pair in known if pair.status == PairStatus.DISMISSED and pair.id not in pairs]
    apart = [pair for pair in apart if tied.root(pair.left) != tied.root(pair.right)]
    going = [merge for merge in merges if changes[merge.id].after.get("status") == _APPLIED]
    coming = [merge for merge in merges if changes[merge.id].before.get("status") == _APPLIED]
    if moved := next((merge for merge in going if merge.status != _APPLIED), None):
        raise Conflict(f"The merge {moved.id} is undone by now.")
    if moved := next((merge for merge in coming if merge.status == _APPLIED), None):
        raise Conflict(f"The merge {moved.id} counts by now.")
    rests_on = {id: one.before["rests_on"] for id, one in changes.items() if not {"status"} & one.after.keys()}
    try:
        plan.put_back(going, coming, rests_on)
    except (StillNeeded, CannotMerge) as why:
        raise Conflict(str(why)) from why
    if one := next((pair for pair in apart if tied.root(pair.left) == tied.root(pair.right)), None):
        raise Conflict(f"The pair {one.id}, which this would make one as well, was dismissed: reopen it first.")
    await lay(tx, plan)


async def _put_back_pair(tx: Tx, id: str, change: Change, since: datetime) -> None:
    pair = existing(await tx[PairStore].get(id, lock=True))
    values: dict[str, Any] = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
    reopened = pair.status == PairStatus.DISMISSED and values.get("status") == PairStatus.OPEN
    if reopened and await _is_overtaken(tx, pair, since):
        values["status"] = PairStatus.SUPERSEDED
    await change_pair(tx, pair, **load(MatchPair, values))


async def _is_overtaken(tx: Tx, pair: MatchPair, since: datetime) -> bool:
    """Return whether later merges prevent merging the pair."""
    plan = await planned(tx, (pair.left, pair.right))
    [apart] = await apart_of(tx, plan, [pair])
    return not apart and any(merge.created_at > since for merge in plan.applied.values())


AT_ONCE = 200
"""Products whose families are shown anew in one transaction."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The handler of `matching.rank` jobs; repeating one changes nothing."""

    uow: UnitOfWork
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        after: str | None = ""
        while after is not None and not lost.is_set():
            async with self.uow.begin(job.tenant, job.context()) as tx:
                after = await self._some(tx, job, after)

    async def _some(self, tx: Tx, job: ClaimedJob, after: str) -> str | None:
        """Process a batch of products after an ID; return the last ID, or None at the end."""
        await tx[CatalogueStore].take_turn(merging=True)
        source = str(job.args["source"])
        ids = await tx[CatalogueStore].tied_of(source, after, AT_ONCE)
        now = await tx[SourceStore].get(source)
        if not ids or now is None:
            await tx[JobStore].finish(job)
            return None
        tied = await tx[CatalogueStore].tied(ids)
        was = Precedence.by(first_party=bool(job.args["first_party"]), licence_basis=str(job.args["licence_basis"]))
        laying = Laying(shown(replace(tied, words={**tied.words, source: was})), tied, Cause(None, tx.now))
        laid = laying.laid()
        if laying.events:
            await tx[CatalogueStore].lay(laid, tx.now)
            await tx[EventLog].append(laying.events)
        await tx[JobStore].hold(job, self.lease)
        return ids[-1]
