"""The plan of a merge or its undoing: the resulting merges of variants and products, and their size limits."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from domain.catalogue.overlay import Extent, Families, TiedProducts, survivor
from domain.kernel.bounds import VARIANTS
from domain.kernel.ids import new_id
from domain.matching.model import DecidedBy, MatchPair, Merge, MergeKind, MergeStatus, PairStatus, key_of

FAMILY = "family"
"""The conflict of a pair that would exceed the automatic limit of a family."""


BY_ITSELF = Extent(64, 1_024)
"""The maximum size of families merged by rules and the judge."""
BY_HAND = Extent(256, 4 * VARIANTS)
"""The maximum size of any family: two of the largest products can be merged."""


_ALONE = (DecidedBy.RULES, DecidedBy.JUDGE)


OF_PRODUCTS = "Their variants are the same items."


class CannotMerge(Exception):
    """The two variants cannot be merged; the message gives the reason."""


class TooMany(CannotMerge):
    """The merge would exceed the size limit of a family."""


class StillNeeded(Exception):
    """The merge cannot be undone before another one that depends on it."""

    def __init__(self, merge: str, later: str) -> None:
        super().__init__(f"The merge {later} rests on {merge}: undo {later} first.")
        self.later = later


class MergePlan:
    """The plan of several merges and undone merges of a cluster, one after the other.

    Attributes:
        tied: The products; `tied.merged` follows the plan.
        applied: The merges that count by now, by what they merged.
        pairs: The known pairs by their variants: what was dismissed, or contradicts, is not made one through a third item.
        made: New merges to store.
        undone: Merges that count no more.
        kept: Merges that rest on others than before.
        again: Undone merges that count once more.
    """

    def __init__(self, tied: TiedProducts, applied: Sequence[Merge], now: datetime) -> None:
        self.tied, self.now = tied, now
        self.applied = {merge.merged: merge for merge in applied}
        self.pairs: dict[tuple[str, str], MatchPair] = {}
        self.made, self.undone, self.kept, self.again = (list[Merge]() for _ in range(4))
        self._before = dict(tied.merged)
        self._owners = tied.owners()
        self._variants = {one.id: one for product in tied.products.values() for one in product.variants}

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        """Return all products and variants by the ID under which they are shown."""
        return self.tied.members((*self.tied.products, *self._variants))

    def know(self, pairs: Iterable[MatchPair]) -> None:
        """Add pairs whose dismissals and conflicts joining must respect."""
        self.pairs |= {(pair.left, pair.right): pair for pair in pairs}

    def touched(self) -> tuple[TiedProducts, TiedProducts]:
        """Return the families affected by the plan, before and after it."""
        changed = {id for merge in (*self.made, *self.undone, *self.again) for id in (merge.survivor, merge.merged)}
        families = Families(self.tied)
        touched = {families.top(self._owners.get(id, id)) for id in changed}
        ids = [id for id in self.tied.products if families.top(id) in touched]
        return replace(self.tied, merged=self._before).only(ids), self.tied.only(ids)

    def knows(self, variant: str) -> bool:
        """Return whether the variant belongs to a product of the cluster."""
        return variant in self._variants

    def members(self, variant: str) -> list[str]:
        """Return all variants shown under the same ID as the variant."""
        return self._members.get(self.tied.root(variant), [variant])

    def sources(self, variant: str) -> set[str]:
        """Return the sources of all variants shown under the same ID as the variant."""
        return {self._variants[id].source for id in self.members(variant)}

    def join(self, pair: MatchPair, by: DecidedBy, reason: str | None) -> Merge:
        """Merge the pair's variants, and their products if that follows. Raises CannotMerge."""
        if missing := [id for id in (pair.left, pair.right) if id not in self._variants]:
            raise CannotMerge(f"The variant {missing[0]} no longer exists.")
        left, right = self.tied.root(pair.left), self.tied.root(pair.right)
        if left == right:
            raise CannotMerge("The variants are already merged.")
        if shared := self.sources(left) & self.sources(right):
            raise CannotMerge(f"Both are merged with items of the source {min(shared)}, which keeps these apart.")
        self._refuse_parted(pair, left, right, by)
        self._refuse_many(pair, by)
        stays, goes = survivor(self.tied, self._variants[left], self._variants[right])
        rests_on = (*self._path(pair.left), *self._path(pair.right))
        merge = Merge(
            new_id("mrg"), MergeStatus.APPLIED, MergeKind.VARIANT, stays, goes, by, self.now, pair.id, reason, rests_on
        )
        self._apply(merge)
        homes = self._owners[stays], self._owners[goes]
        one, other = map(self.tied.root, homes)
        if one != other and (ends := self._ends(one, other)):
            self._merge_products(ends, homes, by)
        self._families.join(*homes)
        return merge

    def _refuse_parted(self, pair: MatchPair, left: str, right: str, by: DecidedBy) -> None:
        """Refuse to join variants of a dismissed pair; for rules and the judge, also those of a pair with conflicts."""
        ends = itertools.product(self.members(left), self.members(right))
        found = [self.pairs[key] for one, other in ends if (key := key_of(one, other)) in self.pairs]
        for parted in found:
            if parted.status == PairStatus.DISMISSED:
                raise CannotMerge(
                    f"The pair {parted.id}, which this would make one as well, was dismissed: reopen it first."
                )
            if by in _ALONE and parted.id != pair.id and (parted.conflicts or parted.held):
                raise CannotMerge(f"The pair {parted.id}, which this would make one as well, needs a person's word.")

    def _refuse_many(self, pair: MatchPair, by: DecidedBy) -> None:
        """Refuse a family that is too large to be updated as a whole."""
        come = self._families.together(self._owners[pair.left], self._owners[pair.right])
        bound = BY_ITSELF if by in _ALONE else BY_HAND
        if come.products > bound.products or come.variants > bound.variants:
            raise TooMany(
                f"This would tie {come.products} products with {come.variants} variants together; "
                f"{bound.products} with {bound.variants} are the most."
            )

    @cached_property
    def _families(self) -> Families:
        return Families(self.tied)

    def _merge_products(self, ends: tuple[str, str], homes: tuple[str, str], by: DecidedBy) -> None:
        """Merge one product into another; `homes` are the products of the variants that imply it."""
        between = [own.id for own in self._between(*ends)]
        rests_on = dict.fromkeys((*between, *self._path(homes[0]), *self._path(homes[1])))
        self._apply(
            Merge(
                new_id("mrg"), MergeStatus.APPLIED, MergeKind.PRODUCT, *ends, by, self.now,
                None, OF_PRODUCTS, tuple(rests_on),
            )
        )  # fmt: skip

    def _join_empty(self) -> None:
        """Merge products without visible variants into the products that show their variants."""
        for id in sorted(self.tied.products):
            if id in self.tied.merged or self._shows(id):
                continue
            gone = min(one.id for part in self._members[id] for one in self.tied.products[part].variants)
            homes = self._owners[self.tied.root(gone)], self._owners[gone]
            self._merge_products((self.tied.root(homes[0]), id), homes, self.applied[gone].decided_by)

    def _ends(self, one: str, other: str) -> tuple[str, str] | None:
        """Return the survivor and the merged product, if the products' variants imply a merge; else None.

        A product without visible variants is merged. Otherwise all variants of one must be among the other's and make up
        at least half of them, and no source may have products in both.
        """
        for stays, goes in ((one, other), (other, one)):
            if not self._shows(goes) and self._parts(goes) & self._parts(stays):
                return stays, goes
        parts = self._parts(one), self._parts(other)
        least, most = sorted(map(len, parts))
        shared = len(parts[0] & parts[1])
        left, right = ({self.tied.products[id].source for id in self._members[product]} for product in (one, other))
        if left.isdisjoint(right) and shared == least and 2 * shared >= most:
            return survivor(self.tied, self.tied.products[one], self.tied.products[other])
        return None

    def _between(self, one: str, other: str) -> list[Merge]:
        """Return the merges of variants between the two products."""
        sides = {one, other}
        both = sorted(self._parts(one) & self._parts(other))
        near = [self.applied[id] for root in both for id in self._members[root] if id in self.applied]
        root, owners = self.tied.root, self._owners
        return [merge for merge in near if {root(owners[merge.survivor]), root(owners[merge.merged])} == sides]

    def _parts(self, product: str) -> set[str]:
        """Return the IDs under which all variants of the product are shown."""
        return {self.tied.root(one.id) for id in self._members[product] for one in self.tied.products[id].variants}

    def _shows(self, product: str) -> bool:
        """Return whether a variant of the product is shown itself, or the product never had one."""
        merged = self.tied.merged
        variants = [one.id for id in self._members[product] for one in self.tied.products[id].variants]
        return not variants or any(id not in merged for id in variants)

    def _path(self, id: str) -> Iterator[str]:
        """Yield the merges that lead from an object to the ID under which it is shown."""
        while id in self.tied.merged:
            yield self.applied[id].id
            id = self.tied.merged[id]

    def _apply(self, merge: Merge) -> None:
        self._members[merge.survivor] += self._members.pop(merge.merged)
        self.made.append(merge)
        self.applied[merge.merged] = merge
        self.tied.merged[merge.merged] = merge.survivor

    def undo(self, merge: Merge) -> None:
        """Undo a merge with those that only follow from it; products left empty are merged again. Raises StillNeeded."""
        self._part(merge)
        going = [merge]
        if merge.kind == MergeKind.PRODUCT:
            going += self._between(self.tied.root(merge.survivor), merge.merged)
        for own in going[1:]:
            self._part(own)
        ids = {own.id for own in going}
        for own in [*self.applied.values()]:
            if not ids.isdisjoint(own.rests_on):
                self._without(own, ids, merge)
        self._join_empty()

    def settle(self) -> None:
        """Undo merges of products without shared variants, after sources have moved variants."""
        for merge in [*self.applied.values()]:
            if merge.kind == MergeKind.PRODUCT and merge.merged in self.applied and self._share_nothing(merge):
                self._part(merge)
        self._join_empty()

    def _share_nothing(self, merge: Merge) -> bool:
        """Return whether neither product would show a variant of the other without this merge."""
        below, beside = set[str](), set[str]()
        for id in self._members[self.tied.root(merge.survivor)]:
            shown_as = {self.tied.root(one.id) for one in self.tied.products[id].variants}
            (below if self._under(id, merge.merged) else beside).update(shown_as)
        return below.isdisjoint(beside)

    def _under(self, id: str, product: str) -> bool:
        """Return whether a product is shown under another, or would be if that were not merged itself."""
        while id != product and id in self.tied.merged:
            id = self.tied.merged[id]
        return id == product

    def put_back(self, going: Sequence[Merge], coming: Sequence[Merge], rests_on: Mapping[str, Sequence[str]]) -> None:
        """Deactivate some merges and reactivate undone ones unchanged; `rests_on` has the dependencies of remaining merges, by ID.

        Raises StillNeeded if another merge depends on a deactivated one; CannotMerge if a reactivated one no longer fits.
        """
        ids = {merge.id for merge in going}
        for merge in going:
            self._part(self.applied[merge.merged])
        for own in [*self.applied.values()]:
            if own.id in rests_on:
                self._restore(replace(own, rests_on=tuple(rests_on[own.id])), self.kept)
            elif needed := ids.intersection(own.rests_on):
                raise StillNeeded(min(needed), own.id)
        for merge in sorted(coming, key=lambda one: one.id):
            self._count_again(merge)
        for merge in self.again:
            members = self.members(merge.survivor)
            if merge.kind == MergeKind.VARIANT and len(members) > len(self.sources(merge.survivor)):
                raise CannotMerge(f"Of what the merge {merge.id} had be one, two are of one source by now.")

    def _count_again(self, merge: Merge) -> None:
        known = self._owners if merge.kind == MergeKind.VARIANT else self.tied.products
        if merge.survivor not in known or merge.merged not in known:
            raise CannotMerge(f"What the merge {merge.id} had be one is gone.")
        if merge.merged in self.applied or self.tied.root(merge.survivor) == merge.merged:
            raise CannotMerge(f"{merge.merged} is merged otherwise by now.")
        self._restore(replace(merge, status=MergeStatus.APPLIED, undone_at=None), self.again)

    def _restore(self, merge: Merge, changed: list[Merge]) -> None:
        """Reactivate a merge that was removed from the plan, as changed in `changed`."""
        changed.append(merge)
        self.applied[merge.merged] = merge
        self.tied.merged[merge.merged] = merge.survivor
        vars(self).pop("_members", None)

    def _without(self, merge: Merge, ids: set[str], undoing: Merge) -> None:
        """Undo a product merge that rests on separated variants, unless other variants support it. Raises StillNeeded for any other dependent merge."""
        if merge.kind == MergeKind.VARIANT or (undoing.id in merge.rests_on and undoing.kind == MergeKind.PRODUCT):
            raise StillNeeded(undoing.id, merge.id)
        self._part(merge)
        if self._ends(self.tied.root(merge.survivor), merge.merged):
            self.undone.pop()
            self._restore(replace(merge, rests_on=tuple(id for id in merge.rests_on if id not in ids)), self.kept)
        elif later := next((own for own in self.applied.values() if merge.id in own.rests_on), None):
            raise StillNeeded(undoing.id, later.id)

    def _part(self, merge: Merge) -> None:
        """Remove a merge from the plan."""
        self.undone.append(replace(merge, status=MergeStatus.UNDONE, undone_at=self.now))
        del self.applied[merge.merged], self.tied.merged[merge.merged]
        vars(self).pop("_members", None)
