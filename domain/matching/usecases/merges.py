"""Use cases of merges: merge pairs, dismiss pairs and undo merges.

Rows, events, pairs and merged views change in one transaction. This module also updates merged products when a decision
is undone or when the precedence of a source changes.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from domain.access.usecases import require_member_scope
from domain.audit.model import AuditAct, Change
from domain.audit.ports import AuditLog
from domain.catalogue.merged_statements import ProductCluster, SourcePrecedence, compute_view
from domain.catalogue.merged_view import MergedView, MergedViewBuilder, ViewChangeCause
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import refresh_listed
from domain.catalogue.usecases.writer import run_in_thread_if_large
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob, NewJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.jobs.usecases.portions import execute_portions
from domain.kernel.errors import Conflict
from domain.kernel.resource import convert_json_values, require_found, with_changes
from domain.kernel.tenancy import Actor, AuditContext
from domain.matching.index import MATCHING_LANE
from domain.matching.merge_plan import CannotMerge, MergePlan, MergeStillNeeded
from domain.matching.model import (
    AUDITED_MERGE_FIELDS,
    AUDITED_PAIR_FIELDS,
    MIN_STORED_PROBABILITY,
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


def find_decider_kind(context: AuditContext) -> DecidedBy:
    """Return the kind of actor that decides in a request: an agent, or else a person, whatever credential is used."""
    return DecidedBy.AGENT if context.actor.kind == AGENT else DecidedBy.PERSON


@dataclass(frozen=True, slots=True)
class MergeService:
    """Use cases to merge and dismiss pairs and to undo merges."""

    async def merge_pair(self, tx: Tx, pair_id: str, decider: DecidedBy, reason: str | None = None) -> MatchPair:
        """Merge the items of a pair.

        Raises NotFound; Conflict if the pair is not open or its items cannot be merged.
        """
        await tx[CatalogueStore].lock_for_writing(merging=True)
        pair = await _load_open_pair(tx, pair_id)
        merges, plan = await self.merge_pairs(tx, [pair], decider, reason)
        if isinstance(result := merges[pair.id], CannotMerge):
            raise Conflict(str(result))
        await change_pair(tx, pair, status=PairStatus.MERGED, merge=result.id)
        await supersede_unmergeable(tx, plan, await tx[PairStore].lock_open_pairs(plan.list_members(pair.left)))
        return require_found(await tx[PairStore].get(pair_id))

    async def merge_pairs(
        self,
        tx: Tx,
        pairs: Sequence[MatchPair],
        decider: DecidedBy,
        reason: str | None = None,
        unstored_pairs: Iterable[MatchPair] = (),
        further_variants: Sequence[str] = (),
    ) -> tuple[Mapping[str, Merge | CannotMerge], MergePlan]:
        """Merge the variants of several pairs, in this order. The caller must store the new status of the pairs.

        Args:
            tx: The transaction, with `lock_for_writing(merging=True)`.
            pairs: The pairs to merge.
            decider: The kind of actor that decided.
            reason: The reason to record.
            unstored_pairs: Pairs that are not stored yet, but that the merges must respect like stored pairs.
            further_variants: IDs of further variants whose products, with all products merged with them, the plan must contain.

        Returns:
            The merge of each pair, or the error that prevents it, by the ID of the pair; and the plan.
        """
        variants = {id for pair in pairs for id in (pair.left, pair.right)}
        product_and_source_by_variant = await tx[CatalogueStore].find_source_products(
            sorted({*variants, *further_variants})
        )
        products = sorted(
            {product_and_source_by_variant[id][0] for id in variants if id in product_and_source_by_variant}
        )
        plan = await _load_plan(
            tx, sorted({product for product, _ in product_and_source_by_variant.values()}) if products else (), products
        )
        plan.add_pairs(await tx[PairStore].find_pairs_of_variants([*plan.cluster.map_products_by_variant()]))
        plan.add_pairs(unstored_pairs)
        results = await run_in_thread_if_large(plan.cluster.size, lambda: _merge_pairs(plan, pairs, decider, reason))
        if plan.new_merges:
            await save_plan(tx, plan)
        return results, plan

    async def group_products(self, tx: Tx, products: Sequence[str], decider: DecidedBy, reason: str) -> str:
        """Merge products that are variants of one product, and return the ID of the survivor.

        Raises Conflict if the products cannot be merged.
        """
        await tx[CatalogueStore].lock_for_writing(merging=True)
        plan = await _load_plan(tx, products, products)
        try:
            survivor = plan.group_products(products, decider, reason)
        except CannotMerge as error:
            raise Conflict(str(error)) from error
        await save_plan(tx, plan)
        return survivor

    async def dismiss_pair(self, tx: Tx, pair_id: str, decider: DecidedBy, reason: str | None = None) -> MatchPair:
        """Dismiss a pair. Raises NotFound; Conflict if the pair is not open."""
        return await change_pair(tx, await _load_open_pair(tx, pair_id), status=PairStatus.DISMISSED)

    async def reopen_pair(self, tx: Tx, pair_id: str) -> MatchPair:
        """Undo the dismissal of a pair; a pair that can no longer be merged becomes superseded.

        Raises NotFound; Conflict if the pair is not dismissed.
        """
        await tx[CatalogueStore].lock_for_writing()
        pair = require_found(await tx[PairStore].get(pair_id, lock=True))
        if pair.status != PairStatus.DISMISSED:
            raise Conflict(f"The pair is {pair.status}. Only a dismissed pair can be reopened.")
        [is_mergeable] = await check_mergeable(tx, await load_plan(tx, (pair.left, pair.right)), [pair])
        status = PairStatus.OPEN if is_mergeable else PairStatus.SUPERSEDED
        return await change_pair(tx, pair, status=status, held=True)

    async def undo_merge(self, tx: Tx, merge_id: str) -> Merge:
        """Undo a merge. Raises NotFound; Conflict if it is already undone or a later merge depends on it."""
        await tx[CatalogueStore].lock_for_writing(merging=True)
        merge = require_found(await tx[MergeStore].get(merge_id, lock=True))
        if merge.status != MergeStatus.APPLIED:
            raise Conflict("The merge is already undone.")
        products = await _find_products_of_merge(tx, merge)
        plan = await _load_plan(tx, products, products)
        try:
            await run_in_thread_if_large(plan.cluster.size, lambda: plan.undo_merge(plan.applied[merge.merged]))
        except MergeStillNeeded as error:
            raise Conflict(str(error)) from error
        await save_plan(tx, plan)
        await _reopen_pairs(tx, plan)
        return require_found(await tx[MergeStore].get(merge_id))

    async def undo_unsupported_merges(self, tx: Tx, variants: Sequence[str]) -> None:
        """Undo merges of products that have no merged variants in common any more, because a source moved variants.

        Then each product that has only merged variants is merged into the product that shows these variants.

        Args:
            tx: The transaction, with `lock_for_writing(merging=True)`.
            variants: The IDs of variants; the merges of their products, direct and indirect, are examined.
        """
        plan = await load_plan(tx, variants)
        if not plan.cluster.survivor_by_id:
            return
        await run_in_thread_if_large(plan.cluster.size, plan.undo_unsupported_merges)
        if plan.new_merges or plan.undone:
            await save_plan(tx, plan)


async def _load_open_pair(tx: Tx, id: str) -> MatchPair:
    """Lock a pair and return it. Raises NotFound; Conflict if the pair is not open."""
    pair = require_found(await tx[PairStore].get(id, lock=True))
    if pair.status != PairStatus.OPEN:
        raise Conflict(f"The pair is {pair.status}. Only an open pair can be decided.")
    return pair


async def change_pair(tx: Tx, pair: MatchPair, **changes: object) -> MatchPair:
    """Store a pair with changed fields, record the change in the audit log, and return the changed pair."""
    after = with_changes(pair, tx.now, **changes)
    await tx[PairStore].save(after)
    await tx[AuditLog].add(AUDITED_PAIR_FIELDS.describe_update(pair, after))
    return after


async def find_products_of_variants(tx: Tx, variants: Sequence[str]) -> list[str]:
    """Return the IDs of the products to which the sources assign the variants, in ascending order."""
    product_by_variant = await tx[CatalogueStore].find_source_products(variants)
    return sorted({product for product, _ in product_by_variant.values()})


async def _find_products_of_merge(tx: Tx, merge: Merge) -> list[str]:
    """Return the IDs of the two merged products, or of the products to which the sources assign the two merged variants."""
    if merge.kind != MergeKind.VARIANT:
        return [merge.survivor, merge.merged]
    return await find_products_of_variants(tx, [merge.survivor, merge.merged])


def _merge_pairs(
    plan: MergePlan, pairs: Iterable[MatchPair], decider: DecidedBy, reason: str | None
) -> dict[str, Merge | CannotMerge]:
    """Merge pairs in the plan; return the merge of each pair, or the error that prevents it, by the ID of the pair."""
    results: dict[str, Merge | CannotMerge] = {}
    for pair in pairs:
        try:
            results[pair.id] = plan.merge_pair(pair, decider, reason)
        except CannotMerge as error:
            results[pair.id] = error
    return results


async def save_plan(tx: Tx, plan: MergePlan) -> None:
    """Store the changes of a plan: merges, audit entries, merged views and events.

    The merged views are computed while the merges are stored.
    """
    computation = asyncio.ensure_future(run_in_thread_if_large(plan.cluster.size, lambda: _build_views(plan)))
    try:
        await _store_merges(tx, plan)
    finally:
        await asyncio.wait([computation])
    merged_view, events = computation.result()
    await tx[CatalogueStore].save_merged_view(merged_view, plan.now)
    published = await refresh_listed(tx, merged_view.product_by_id.values(), events)
    await tx[EventLog].append([*events, *published])


async def _store_merges(tx: Tx, plan: MergePlan) -> None:
    """Store the new and changed merges of a plan with their audit entries."""
    for after in (*plan.changed_merges, *plan.undone, *plan.reapplied):
        before = require_found(await tx[MergeStore].get(after.id))
        await tx[MergeStore].save(after)
        await tx[AuditLog].add(AUDITED_MERGE_FIELDS.describe_update(before, after))
    await tx[MergeStore].add_all(plan.new_merges)
    await tx[AuditLog].add_all([AUDITED_MERGE_FIELDS.describe_creation(merge) for merge in plan.new_merges])


def _build_views(plan: MergePlan) -> tuple[MergedView, Sequence[Event]]:
    """Return the new merged views of the products that a plan affects, and the events of the changes."""
    cluster_before, cluster_after = plan.find_affected_groups()
    ids = {merge.merged: merge.id for merge in (*plan.undone, *plan.new_merges, *plan.reapplied)}
    builder = MergedViewBuilder(
        compute_view(cluster_before),
        cluster_after,
        ViewChangeCause(None, plan.now, is_merge=True),
        ids,
        cluster_before.map_representatives(),
    )
    return builder.build(), builder.events


async def load_plan(tx: Tx, variants: Sequence[str]) -> MergePlan:
    """Load the products of the variants, with all products merged with them; return a plan without changes."""
    return await _load_plan(tx, await find_products_of_variants(tx, variants))


async def _load_plan(tx: Tx, products: Sequence[str], further_products: Sequence[str] = ()) -> MergePlan:
    """Load the products with all products merged with them, and the applied merges; return a plan without changes.

    Args:
        tx: The transaction.
        products: The IDs of products; unmerged ones are omitted.
        further_products: The IDs of products to load even if they are not merged.
    """
    cluster = await tx[CatalogueStore].load_cluster(products, further_products) if products else ProductCluster()
    ids = [*cluster.products, *cluster.map_products_by_variant()]
    return MergePlan(cluster, await tx[MergeStore].find_applied_merges(ids) if ids else (), tx.now)


async def supersede_unmergeable(tx: Tx, plan: MergePlan, pairs: Sequence[MatchPair]) -> None:
    """Mark the open pairs that can no longer be merged as superseded."""
    for pair, is_mergeable in zip(pairs, await check_mergeable(tx, plan, pairs), strict=True):
        if not is_mergeable:
            await change_pair(tx, pair, status=PairStatus.SUPERSEDED)


async def check_mergeable(tx: Tx, plan: MergePlan, pairs: Sequence[MatchPair]) -> list[bool]:
    """Return for each pair whether its variants can be merged.

    The variants merged with the first and with the second variant must come from different sources. Variants that the
    plan does not contain count as unmerged; a pair with an unknown variant cannot be merged.
    """
    ids = {id for pair in pairs for id in (pair.left, pair.right)}
    sources = {id: plan.collect_sources(id) for id in ids if plan.contains_variant(id)}
    unknown = sorted(ids.difference(sources))
    if unknown:
        sources |= {
            id: {source} for id, (_, source) in (await tx[CatalogueStore].find_source_products(unknown)).items()
        }
    nothing = set[str]()
    found = [(sources.get(pair.left, nothing), sources.get(pair.right, nothing)) for pair in pairs]
    return [bool(left and right) and left.isdisjoint(right) for left, right in found]


async def _reopen_pairs(tx: Tx, plan: MergePlan) -> None:
    """Reopen pairs after merges were undone.

    The pairs of these merges become open and held, so that only a person may decide them. Superseded pairs that can be
    merged again become open.
    """
    undone = {merge.id for merge in plan.undone}
    superseded = []
    for pair in await tx[PairStore].find_pairs_of_variants([*plan.cluster.map_products_by_variant()], lock=True):
        if pair.merge in undone:
            await change_pair(tx, pair, status=PairStatus.OPEN, merge=None, held=True)
        elif pair.status == PairStatus.SUPERSEDED and pair.probability >= MIN_STORED_PROBABILITY:
            superseded.append(pair)
    for pair, is_mergeable in zip(superseded, await check_mergeable(tx, plan, superseded), strict=True):
        if is_mergeable:
            await change_pair(tx, pair, status=PairStatus.OPEN)


_APPLIED = MergeStatus.APPLIED


async def undo_decisions(tx: Tx, act: AuditAct) -> None:
    """Undo the decisions of an audit act.

    Merges that the act made are undone, merges that it undid are applied again, and its pairs return to their earlier
    state.

    Raises NotFound; Conflict if another merge depends on one to be undone, or if a merge can no longer be applied.
    """
    await tx[CatalogueStore].lock_for_writing(merging=True)
    merges = {change.id: change for _, change in act.list_changes("merge")}
    pairs = {change.id: change for _, change in act.list_changes("match_pair")}
    if merges:
        await _restore_merges(tx, merges, pairs)
    for id, change in pairs.items():
        await _restore_pair(tx, id, change, act.entries[0].created_at)


async def _restore_merges(tx: Tx, changes: Mapping[str, Change], pair_changes: Mapping[str, Change]) -> None:
    """Reverse the changes of merges in an audit act. Raises Conflict if later changes prevent this.

    Args:
        tx: The transaction.
        changes: The changes of merges by ID.
        pair_changes: The changes of pairs in the same act by ID.
    """
    merges = [require_found(await tx[MergeStore].get(id, lock=True)) for id in changes]
    products = sorted({product for merge in merges for product in await _find_products_of_merge(tx, merge)})
    plan = await _load_plan(tx, products, products)
    cluster = plan.cluster
    known_pairs = await tx[PairStore].find_pairs_of_variants([*cluster.map_products_by_variant()])
    plan.add_pairs(known_pairs)
    separate_pairs = [
        pair for pair in known_pairs if pair.status == PairStatus.DISMISSED and pair.id not in pair_changes
    ]
    separate_pairs = [
        pair
        for pair in separate_pairs
        if cluster.find_representative(pair.left) != cluster.find_representative(pair.right)
    ]
    undone = [merge for merge in merges if changes[merge.id].after.get("status") == _APPLIED]
    reapplied = [merge for merge in merges if changes[merge.id].before.get("status") == _APPLIED]
    if moved := next((merge for merge in undone if merge.status != _APPLIED), None):
        raise Conflict(f"The merge {moved.id} is already undone.")
    if moved := next((merge for merge in reapplied if merge.status == _APPLIED), None):
        raise Conflict(f"The merge {moved.id} is already applied.")
    rests_on = {id: one.before["rests_on"] for id, one in changes.items() if not {"status"} & one.after.keys()}
    try:
        plan.switch_merges(undone, reapplied, rests_on)
    except (MergeStillNeeded, CannotMerge) as why:
        raise Conflict(str(why)) from why
    if one := next(
        (
            pair
            for pair in separate_pairs
            if cluster.find_representative(pair.left) == cluster.find_representative(pair.right)
        ),
        None,
    ):
        raise Conflict(f"The undo would merge the dismissed pair {one.id}. Reopen the pair first.")
    await save_plan(tx, plan)


async def _restore_pair(tx: Tx, id: str, change: Change, changed_at: datetime) -> None:
    """Restore the values that a pair had before a change.

    Args:
        tx: The transaction.
        id: The ID of the pair.
        change: The change to reverse.
        changed_at: The time of the change.
    """
    pair = require_found(await tx[PairStore].get(id, lock=True))
    values: dict[str, Any] = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
    reopened = pair.status == PairStatus.DISMISSED and values.get("status") == PairStatus.OPEN
    if reopened and await _has_become_unmergeable(tx, pair, changed_at):
        values["status"] = PairStatus.SUPERSEDED
    await change_pair(tx, pair, **convert_json_values(MatchPair, values))


async def _has_become_unmergeable(tx: Tx, pair: MatchPair, changed_at: datetime) -> bool:
    """Return whether merges that were made after `changed_at` prevent merging the pair."""
    plan = await load_plan(tx, (pair.left, pair.right))
    [is_mergeable] = await check_mergeable(tx, plan, [pair])
    return not is_mergeable and any(merge.created_at > changed_at for merge in plan.applied.values())


BULK_MERGE_JOB = "matching.merge_certain"
"""Kind of the job that merges all open pairs with a probability."""
MERGE_PAIR = "matching.merge_pair"
"""Operation that the audit log records for each portion of a bulk merge, so that each portion can be undone."""
_BULK_MERGE_PORTION = 50
"""Number of pairs that a bulk merge merges in one transaction."""


async def queue_bulk_merge(tx: Tx, min_probability: float) -> str:
    """Queue a job that merges the present open pairs without conflict as the acting person; return its ID."""
    actor = tx.context.actor
    args = {"min_probability": min_probability, "until": tx.now.isoformat(), "actor": [actor.kind, actor.id]}
    return await tx[JobStore].add(NewJob(BULK_MERGE_JOB, MATCHING_LANE, tx.tenant, args, key=BULK_MERGE_JOB))


@dataclass(frozen=True, slots=True)
class BulkMergeJob:
    """Handler of `matching.merge_certain` jobs. Repeating a job merges the pairs that are still open."""

    uow: UnitOfWork
    merging: MergeService = field(default_factory=MergeService)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Merge the pairs in portions, most likely first."""
        context = AuditContext(Actor(*job.args["actor"]), MERGE_PAIR, is_reversible=True, job_id=job.id)
        unmergeable: list[str] = []
        await execute_portions(
            self.uow, job, lost, lambda tx, job: self._merge_portion(tx, job, unmergeable), _end, context=context
        )

    async def _merge_portion(self, tx: Tx, job: ClaimedJob, unmergeable: list[str]) -> bool:
        """Merge the next pairs and add the pairs that cannot be merged to `unmergeable`; return whether none is left."""
        if tx.context.actor.kind == "user":
            await require_member_scope(tx, tx.context.actor.id, "products:write")
        await tx[CatalogueStore].lock_for_writing(merging=True)
        until = datetime.fromisoformat(str(job.args["until"]))
        pairs = await tx[PairStore].list_certain(
            float(job.args["min_probability"]), until, unmergeable, _BULK_MERGE_PORTION
        )
        if not pairs:
            await tx[JobStore].finish(job)
            return True
        merges, plan = await self.merging.merge_pairs(tx, pairs, DecidedBy.PERSON)
        for pair in pairs:
            if isinstance(result := merges[pair.id], CannotMerge):
                unmergeable.append(pair.id)
            else:
                await change_pair(tx, pair, status=PairStatus.MERGED, merge=result.id)
        variants = {member for pair in pairs for member in plan.list_members(pair.left)}
        await supersede_unmergeable(tx, plan, await tx[PairStore].lock_open_pairs(sorted(variants)))
        await tx[JobStore].renew_lease(job, LEASE)
        return False


async def _end(tx: Tx, job: ClaimedJob, _reason: str) -> None:
    await tx[JobStore].finish(job)


UPDATE_BATCH_SIZE = 200
"""Maximum number of products that are updated, with all products merged with them, in one transaction."""


@dataclass(frozen=True, slots=True)
class PrecedenceUpdateJob:
    """Handler of `matching.rank` jobs, which update merged products after the precedence of a source changed.

    Repeating a job changes nothing.
    """

    uow: UnitOfWork
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Update all merged products that contain a product of the source, in batches."""
        after: str | None = ""
        while after is not None and not lost.is_set():
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                after = await self._update_batch(tx, job, after)

    async def _update_batch(self, tx: Tx, job: ClaimedJob, after_id: str) -> str | None:
        """Update the next batch of merged products; return the last ID of the batch, or None at the end.

        Args:
            tx: The transaction.
            job: The job.
            after_id: The last ID of the previous batch, or an empty string.
        """
        await tx[CatalogueStore].lock_for_writing(merging=True)
        source = str(job.args["source"])
        ids = await tx[CatalogueStore].list_merged_products(source, after_id, UPDATE_BATCH_SIZE)
        current_source = await tx[SourceStore].get(source)
        if not ids or current_source is None:
            await tx[JobStore].finish(job)
            return None
        cluster = await tx[CatalogueStore].load_cluster(ids)
        previous_precedence = SourcePrecedence.from_settings(
            is_first_party=bool(job.args["first_party"]), licence_basis=str(job.args["licence_basis"])
        )
        builder = MergedViewBuilder(
            compute_view(
                replace(cluster, precedence_by_source={**cluster.precedence_by_source, source: previous_precedence})
            ),
            cluster,
            ViewChangeCause(None, tx.now),
        )
        merged_view = builder.build()
        if builder.events:
            await tx[CatalogueStore].save_merged_view(merged_view, tx.now)
            published = await refresh_listed(tx, merged_view.product_by_id.values(), builder.events)
            await tx[EventLog].append([*builder.events, *published])
        await tx[JobStore].renew_lease(job, self.lease)
        return ids[-1]
