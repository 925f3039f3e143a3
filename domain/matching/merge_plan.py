"""Plan of merges to make and to undo among the products of complete merge groups.

Merges of variants can imply merges of products.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from domain.catalogue.merged_statements import ClusterUnion, MergeGroupSize, ProductCluster, choose_survivor
from domain.catalogue.model import Visibility
from domain.kernel.bounds import MAX_IMPORTED_VARIANTS
from domain.kernel.ids import new_id
from domain.matching.model import DecidedBy, MatchPair, Merge, MergeKind, MergeStatus, PairStatus, build_pair_key

GROUP_SIZE_CONFLICT = "family"
"""The conflict of a pair whose merge would create a merge group larger than AUTOMATIC_LIMIT.

The value is stored and part of the API.
"""


AUTOMATIC_LIMIT = MergeGroupSize(64, 1_024)
"""The maximum numbers of products and variants in a merge group that rules or the judge may create."""
MANUAL_LIMIT = MergeGroupSize(256, 4 * MAX_IMPORTED_VARIANTS)
"""The maximum numbers of products and variants in a merge group that people and agents may create.

Two products with `MAX_STORED_VARIANTS` variants each do not exceed the limit.
"""


_AUTOMATIC = (DecidedBy.RULES, DecidedBy.JUDGE)


PRODUCT_MERGE_REASON = "The products share merged variants."


class CannotMerge(Exception):
    """Error for two variants that cannot be merged; the message states the reason."""


class ClusterTooLarge(CannotMerge):
    """Error for a merge that would exceed the size limit of a merge group."""


class MergeStillNeeded(Exception):
    """Error for a merge that cannot be undone, because a later merge depends on it.

    Attributes:
        later_merge: The ID of the later merge.
    """

    def __init__(self, merge: str, later_merge: str) -> None:
        super().__init__(f"The merge {later_merge} depends on {merge}. Undo {later_merge} first.")
        self.later_merge = later_merge


class MergePlan:
    """Plan of merges to make and to undo among the products of complete merge groups.

    Attributes:
        cluster: The products of the merge groups; `cluster.survivor_by_id` already contains the planned merges.
        now: The time of the planned merges.
        applied: The applied merges by the ID of the merged object.
        pairs: The known pairs of the variants, added by `add_pairs`, by the IDs of their two variants.
        new_merges: The new merges, to be stored.
        undone: The merges that the plan undoes.
        changed_merges: The applied merges whose dependencies change.
        reapplied: The undone merges that the plan applies again.
    """

    def __init__(self, cluster: ProductCluster, applied: Sequence[Merge], now: datetime) -> None:
        self.cluster, self.now = cluster, now
        self.applied = {merge.merged: merge for merge in applied}
        self.pairs: dict[tuple[str, str], MatchPair] = {}
        self.new_merges, self.undone, self.changed_merges, self.reapplied = (list[Merge]() for _ in range(4))
        self._before = dict(cluster.survivor_by_id)
        self._owners = cluster.map_products_by_variant()
        self._variants = {one.id: one for product in cluster.products.values() for one in product.variants}

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        """The IDs of all products and variants, by the ID under which they are shown."""
        return self.cluster.group_by_representative((*self.cluster.products, *self._variants))

    def add_pairs(self, pairs: Iterable[MatchPair]) -> None:
        """Add known pairs of the variants as constraints on the planned merges.

        Merges of other pairs must not indirectly merge a dismissed pair. Rules and the judge must not indirectly merge
        held pairs or pairs with conflicts either.
        """
        self.pairs |= {(pair.left, pair.right): pair for pair in pairs}

    def find_affected_groups(self) -> tuple[ProductCluster, ProductCluster]:
        """Return the merge groups that the plan affects, before and after the plan."""
        changed = {
            id for merge in (*self.new_merges, *self.undone, *self.reapplied) for id in (merge.survivor, merge.merged)
        }
        groups = ClusterUnion(self.cluster)
        touched = {groups.find_group(self._owners.get(id, id)) for id in changed}
        ids = [id for id in self.cluster.products if groups.find_group(id) in touched]
        return replace(self.cluster, survivor_by_id=self._before).restrict_to(ids), self.cluster.restrict_to(ids)

    def contains_variant(self, variant: str) -> bool:
        """Return whether the plan contains the variant."""
        return variant in self._variants

    def list_members(self, variant: str) -> list[str]:
        """Return the IDs of all variants that are shown under the same ID as the given variant."""
        return self._members.get(self.cluster.find_representative(variant), [variant])

    def collect_sources(self, variant: str) -> set[str]:
        """Return the IDs of the sources of all variants that are shown under the same ID as the given variant."""
        return {self._variants[id].source for id in self.list_members(variant)}

    def merge_pair(self, pair: MatchPair, decider: DecidedBy, reason: str | None) -> Merge:
        """Merge the variants of a pair, and their products if the merged variants imply this.

        Args:
            pair: The pair.
            decider: The kind of actor that decided.
            reason: The reason to record.

        Raises:
            CannotMerge: The variants cannot be merged.
        """
        if missing := [id for id in (pair.left, pair.right) if id not in self._variants]:
            raise CannotMerge(f"The variant {missing[0]} no longer exists.")
        left, right = self.cluster.find_representative(pair.left), self.cluster.find_representative(pair.right)
        if left == right:
            raise CannotMerge("The variants are already merged.")
        if shared := self.collect_sources(left) & self.collect_sources(right):
            raise CannotMerge(
                f"The merge would join two items of the source {min(shared)}. Undo an earlier merge of one of the variants first."
            )
        self._check_separations(pair, left, right, decider)
        self._check_size(self._owners[pair.left], self._owners[pair.right], decider)
        survivor, merged = choose_survivor(self.cluster, self._variants[left], self._variants[right])
        rests_on = (*self._list_merges_to_root(pair.left), *self._list_merges_to_root(pair.right))
        merge = Merge(
            new_id("mrg"),
            MergeStatus.APPLIED,
            MergeKind.VARIANT,
            survivor,
            merged,
            decider,
            self.now,
            pair.id,
            reason,
            rests_on,
        )
        self._apply(merge)
        source_products = self._owners[survivor], self._owners[merged]
        one, other = map(self.cluster.find_representative, source_products)
        if one != other and (product_ids := self._find_implied_merge(one, other)):
            self._merge_products(product_ids, source_products, decider)
        self._merge_groups.unite(*source_products)
        return merge

    def group_products(self, products: Sequence[str], decider: DecidedBy, reason: str) -> str:
        """Merge products that are variants of one product, and return the ID of the survivor.

        Args:
            products: The IDs of at least two products.
            decider: The kind of actor that decided.
            reason: The reason to record.

        Raises:
            CannotMerge: A product does not exist, the products are already merged, or only some of them are listed.
        """
        if missing := [id for id in products if id not in self.cluster.products]:
            raise CannotMerge(f"The product {missing[0]} no longer exists.")
        product_by_root = {self.cluster.find_representative(id): id for id in products}
        if len(product_by_root) == 1:
            raise CannotMerge("The products are already merged.")
        visibilities = {self.cluster.products[id].visibility for root in product_by_root for id in self._members[root]}
        if Visibility.LISTED in visibilities and len(visibilities) > 1:
            # Other organisations would no longer see the listed ones.
            raise CannotMerge(
                "Some of the products are listed, and others are not. Publish or withdraw all of them first."
            )
        survivor = next(iter(product_by_root))
        for root in product_by_root:
            survivor, _ = choose_survivor(self.cluster, self.cluster.products[survivor], self.cluster.products[root])
        first = product_by_root.pop(survivor)
        for root, product in product_by_root.items():
            self._check_size(first, product, decider)
            rests_on = (*self._list_merges_to_root(first), *self._list_merges_to_root(product))
            self._apply(
                Merge(
                    new_id("mrg"), MergeStatus.APPLIED, MergeKind.GROUP, survivor, root, decider, self.now, None, reason, rests_on
                )
            )  # fmt: skip
            self._merge_groups.unite(first, product)
        return survivor

    def _check_separations(self, pair: MatchPair, left: str, right: str, decider: DecidedBy) -> None:
        """Raise CannotMerge if the merge would combine two variants that must stay separate.

        The variants of a dismissed pair must stay separate. Rules and the judge must also keep the
        variants of held pairs, and of other pairs with conflicts, separate.

        Args:
            pair: The pair to merge.
            left: The ID under which the left variant is shown.
            right: The ID under which the right variant is shown.
            decider: The kind of actor that decided.
        """
        variant_pairs = itertools.product(self.list_members(left), self.list_members(right))
        existing_pairs = [
            self.pairs[key] for one, other in variant_pairs if (key := build_pair_key(one, other)) in self.pairs
        ]
        for other_pair in existing_pairs:
            if other_pair.status == PairStatus.DISMISSED:
                raise CannotMerge(
                    f"This merge would include the dismissed pair {other_pair.id}. Reopen that pair first."
                )
            if decider in _AUTOMATIC and other_pair.id != pair.id and (other_pair.conflicts or other_pair.held):
                raise CannotMerge(f"This merge would include the pair {other_pair.id}, which a person must decide.")

    def _check_size(self, first: str, second: str, decider: DecidedBy) -> None:
        """Raise ClusterTooLarge if merging two products would create a merge group that exceeds the size limit."""
        combined = self._merge_groups.compute_combined_size(first, second)
        limit = AUTOMATIC_LIMIT if decider in _AUTOMATIC else MANUAL_LIMIT
        if combined.products > limit.products or combined.variants > limit.variants:
            raise ClusterTooLarge(
                f"The merge would combine {combined.products} products with {combined.variants} variants. At most {limit.products} "
                f"products with {limit.variants} variants are allowed."
            )

    @cached_property
    def _merge_groups(self) -> ClusterUnion:
        """The merge groups, including the merges of this plan."""
        return ClusterUnion(self.cluster)

    def _merge_products(
        self, product_ids: tuple[str, str], source_products: tuple[str, str], decider: DecidedBy
    ) -> None:
        """Merge one product into another.

        Args:
            product_ids: The IDs of the surviving and the merged product.
            source_products: The IDs of the products to which the sources assign the two variants that imply the merge.
            decider: The kind of actor that decided.
        """
        between = [own.id for own in self._find_variant_merges(*product_ids)]
        rests_on = dict.fromkeys(
            (*between, *self._list_merges_to_root(source_products[0]), *self._list_merges_to_root(source_products[1]))
        )
        self._apply(
            Merge(
                new_id("mrg"), MergeStatus.APPLIED, MergeKind.PRODUCT, *product_ids, decider, self.now,
                None, PRODUCT_MERGE_REASON, tuple(rests_on),
            )
        )  # fmt: skip

    def _merge_products_with_only_merged_variants(self) -> None:
        """Merge each product that has only merged variants into the product that shows these variants."""
        for id in sorted(self.cluster.products):
            if id in self.cluster.survivor_by_id or not self._has_only_merged_variants(id):
                continue
            merged_variant = min(one.id for part in self._members[id] for one in self.cluster.products[part].variants)
            source_products = (
                self._owners[self.cluster.find_representative(merged_variant)],
                self._owners[merged_variant],
            )
            self._merge_products(
                (self.cluster.find_representative(source_products[0]), id),
                source_products,
                self.applied[merged_variant].decided_by,
            )

    def _find_implied_merge(self, first: str, second: str) -> tuple[str, str] | None:
        """Return the IDs of the surviving and the merged product if their variants imply a merge, else None.

        A product is merged into the other if all its variants are merged, at least one of them with a variant of the
        other product. Otherwise, the products are merged under three conditions: they contain no products of the same
        source; every variant of the smaller product is shown in the larger one; and the larger product has at most
        twice as many variants.
        """
        for survivor, merged in ((first, second), (second, first)):
            if self._has_only_merged_variants(merged) and self._find_visible_variants(
                merged
            ) & self._find_visible_variants(survivor):
                return survivor, merged
        parts = self._find_visible_variants(first), self._find_visible_variants(second)
        smaller, larger = sorted(map(len, parts))
        shared = len(parts[0] & parts[1])
        left, right = (
            {self.cluster.products[id].source for id in self._members[product]} for product in (first, second)
        )
        if left.isdisjoint(right) and shared == smaller and 2 * shared >= larger:
            return choose_survivor(self.cluster, self.cluster.products[first], self.cluster.products[second])
        return None

    def _find_variant_merges(self, first: str, second: str) -> list[Merge]:
        """Return the applied merges of a variant of one product with a variant of the other."""
        sides = {first, second}
        both = sorted(self._find_visible_variants(first) & self._find_visible_variants(second))
        applied = [self.applied[id] for root in both for id in self._members[root] if id in self.applied]
        root, owners = self.cluster.find_representative, self._owners
        return [merge for merge in applied if {root(owners[merge.survivor]), root(owners[merge.merged])} == sides]

    def _find_visible_variants(self, product: str) -> set[str]:
        """Return the IDs under which the variants of the product are shown."""
        return {
            self.cluster.find_representative(one.id)
            for id in self._members[product]
            for one in self.cluster.products[id].variants
        }

    def _has_only_merged_variants(self, product: str) -> bool:
        """Return whether the product has variants, and each of them is shown under the ID of another variant.

        The variants of products that are merged into the product count as well.
        """
        merged = self.cluster.survivor_by_id
        variants = [one.id for id in self._members[product] for one in self.cluster.products[id].variants]
        return bool(variants) and all(id in merged for id in variants)

    def _list_merges_to_root(self, id: str) -> Iterator[str]:
        """Yield the IDs of the merges that lead from an object to the object under whose ID it is shown."""
        while id in self.cluster.survivor_by_id:
            yield self.applied[id].id
            id = self.cluster.survivor_by_id[id]

    def _apply(self, merge: Merge) -> None:
        """Add a new merge to the plan."""
        self._members[merge.survivor] += self._members.pop(merge.merged)
        self.new_merges.append(merge)
        self.applied[merge.merged] = merge
        self.cluster.survivor_by_id[merge.merged] = merge.survivor

    def undo_merge(self, merge: Merge) -> None:
        """Undo a merge, and the merges that result only from it.

        A product whose variants are all still merged into another product stays merged with it. Raises MergeStillNeeded
        if another merge depends on the undone merge.
        """
        self._remove(merge)
        undone = [merge]
        if merge.kind == MergeKind.PRODUCT:
            undone += self._find_variant_merges(self.cluster.find_representative(merge.survivor), merge.merged)
        for own in undone[1:]:
            self._remove(own)
        ids = {own.id for own in undone}
        for own in [*self.applied.values()]:
            if not ids.isdisjoint(own.rests_on):
                self._undo_dependent(own, ids, merge)
        self._merge_products_with_only_merged_variants()

    def undo_unsupported_merges(self) -> None:
        """Undo merges of products that no longer share variants because their sources have moved variants."""
        for merge in [*self.applied.values()]:
            if merge.kind == MergeKind.PRODUCT and merge.merged in self.applied and self._lacks_shared_variants(merge):
                self._remove(merge)
        self._merge_products_with_only_merged_variants()

    def _lacks_shared_variants(self, merge: Merge) -> bool:
        """Return whether the two products of a merge would share no variant if the merge were undone."""
        merged_side, surviving_side = set[str](), set[str]()
        for id in self._members[self.cluster.find_representative(merge.survivor)]:
            shown_as = {self.cluster.find_representative(one.id) for one in self.cluster.products[id].variants}
            (merged_side if self._is_merged_into(id, merge.merged) else surviving_side).update(shown_as)
        return merged_side.isdisjoint(surviving_side)

    def _is_merged_into(self, id: str, target: str) -> bool:
        """Return whether a product is the target, or is merged into the target directly or indirectly."""
        while id != target and id in self.cluster.survivor_by_id:
            id = self.cluster.survivor_by_id[id]
        return id == target

    def switch_merges(
        self, undone: Sequence[Merge], reapplied: Sequence[Merge], dependencies_by_merge: Mapping[str, Sequence[str]]
    ) -> None:
        """Undo some merges, and apply some undone merges again.

        Args:
            undone: The merges to undo.
            reapplied: The undone merges to apply again.
            dependencies_by_merge: The IDs of the merges on which each changed merge depends afterwards, by the ID of the
                changed merge.

        Raises:
            MergeStillNeeded: Another merge depends on a merge in `undone`.
            CannotMerge: A merge in `reapplied` can no longer be applied.
        """
        ids = {merge.id for merge in undone}
        for merge in undone:
            self._remove(self.applied[merge.merged])
        for own in [*self.applied.values()]:
            if own.id in dependencies_by_merge:
                self._set_applied(replace(own, rests_on=tuple(dependencies_by_merge[own.id])), self.changed_merges)
            elif needed := ids.intersection(own.rests_on):
                raise MergeStillNeeded(min(needed), own.id)
        for merge in sorted(reapplied, key=lambda one: one.id):
            self._reapply(merge)
        for merge in self.reapplied:
            members = self.list_members(merge.survivor)
            if merge.kind == MergeKind.VARIANT and len(members) > len(self.collect_sources(merge.survivor)):
                raise CannotMerge(
                    f"Applying the merge {merge.id} again would join two items of one source. "
                    f"Undo the other merges of these items first."
                )

    def _reapply(self, merge: Merge) -> None:
        """Apply an undone merge again. Raises CannotMerge if its items are missing or merged elsewhere."""
        known = self._owners if merge.kind == MergeKind.VARIANT else self.cluster.products
        if merge.survivor not in known or merge.merged not in known:
            raise CannotMerge(f"An item of the merge {merge.id} no longer exists.")
        if merge.merged in self.applied or self.cluster.find_representative(merge.survivor) == merge.merged:
            raise CannotMerge(f"{merge.merged} is now merged elsewhere. Undo that merge first.")
        self._set_applied(replace(merge, status=MergeStatus.APPLIED, undone_at=None), self.reapplied)

    def _set_applied(self, merge: Merge, changed: list[Merge]) -> None:
        """Add a merge to the applied merges or replace its earlier version there; append the merge to `changed`."""
        changed.append(merge)
        self.applied[merge.merged] = merge
        self.cluster.survivor_by_id[merge.merged] = merge.survivor
        vars(self).pop("_members", None)

    def _undo_dependent(self, merge: Merge, undone_ids: set[str], requested_merge: Merge) -> None:
        """Undo a product merge that depends on undone merges, unless other variants still imply the product merge.

        Args:
            merge: The dependent merge.
            undone_ids: The IDs of the undone merges.
            requested_merge: The merge that the caller wants to undo.

        Raises:
            MergeStillNeeded: The dependent merge cannot be undone automatically.
        """
        if merge.kind == MergeKind.VARIANT or (
            requested_merge.id in merge.rests_on and requested_merge.kind != MergeKind.VARIANT
        ):
            raise MergeStillNeeded(requested_merge.id, merge.id)
        self._remove(merge)
        if self._find_implied_merge(self.cluster.find_representative(merge.survivor), merge.merged):
            self.undone.pop()
            self._set_applied(
                replace(merge, rests_on=tuple(id for id in merge.rests_on if id not in undone_ids)), self.changed_merges
            )
        elif later := next((own for own in self.applied.values() if merge.id in own.rests_on), None):
            raise MergeStillNeeded(requested_merge.id, later.id)

    def _remove(self, merge: Merge) -> None:
        """Remove a merge from the applied merges and record it as undone."""
        self.undone.append(replace(merge, status=MergeStatus.UNDONE, undone_at=self.now))
        del self.applied[merge.merged], self.cluster.survivor_by_id[merge.merged]
        vars(self).pop("_members", None)
