"""The grouping agent: proposes to show products of one source as the variants of one product."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from domain.agents.usecases.categories import MAX_PRODUCTS
from domain.audit.model import AuditAct
from domain.catalogue.ports import CatalogueStore
from domain.corrections.usecases.service import CorrectionService
from domain.matching.ports import MatchIndexStore
from domain.matching.usecases.merges import MergeService, find_decider_kind, undo_decisions
from domain.matching.variant_groups import Grouping, SingleVariant, VariantGroup
from domain.proposals.model import MAX_SAMPLES, Proof, ProofCounts, ProofSample
from ports.unit_of_work import Tx

MAX_NEW_GROUPS: Final = 100
"""Maximum number of groups that are proposed after one run."""
GROUPING_REASON: Final = "The products are variants of one product."
_READ_BATCH = 200
"""Number of products that are read at once."""


@dataclass(frozen=True, slots=True)
class VariantGrouper:
    """Use cases that group products as the variants of one product."""

    merging: MergeService
    corrections: CorrectionService

    async def lock_variants(self, tx: Tx, grouping: Grouping) -> str:
        """Lock the catalogue for merging, and return the fingerprint of the grouped variants."""
        await tx[CatalogueStore].lock_for_writing(merging=True)
        variants = await tx[MatchIndexStore].load_variants(sorted(grouping["variants"]))
        return compute_group_fingerprint([SingleVariant.from_variant(one) for one in variants])

    async def group_products(self, tx: Tx, grouping: Grouping) -> None:
        """Merge the products of the variants, and correct the title of the product and the options of the variants.

        Raises:
            Conflict: The products are merged already, or one of them no longer exists.
            Unprocessable: The title or an option is invalid.
        """
        product_by_variant = await tx[CatalogueStore].find_source_products(sorted(grouping["variants"]))
        products = sorted({product for product, _ in product_by_variant.values()})
        survivor = await self.merging.group_products(tx, products, find_decider_kind(tx.context), GROUPING_REASON)
        options = [
            (variant, f"axes.{axis}", value)
            for variant, axes in grouping["variants"].items()
            for axis, value in axes.items()
        ]
        await self.corrections.override(tx, products, [(survivor, "title", grouping["title"]), *options])

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Undo an act of `group_products`. Raises Conflict if later changes depend on it."""
        await self.corrections.undo(tx, act)
        await undo_decisions(tx, act)


async def load_single_variants(tx: Tx, source: str) -> list[SingleVariant]:
    """Return the source's first active products with only one variant, at most MAX_PRODUCTS."""
    found: list[SingleVariant] = []
    while len(found) < MAX_PRODUCTS:
        after = found[-1].product if found else ""
        batch = await tx[MatchIndexStore].list_single_variants(source, after, _READ_BATCH)
        found += map(SingleVariant.from_variant, batch)
        if len(batch) < _READ_BATCH:
            break
    return found


async def list_separate_groups(tx: Tx, groups: Sequence[VariantGroup]) -> list[VariantGroup]:
    """Return the groups whose products are not shown as one product yet."""
    ids = [member.product for group in groups for member in group.members]
    shown = await tx[MatchIndexStore].find_shown_products(ids)
    return [group for group in groups if len({shown.get(member.product) for member in group.members}) > 1]


def build_group_proof(run: str, group: VariantGroup) -> Proof:
    """Return the proof of a group: the number of products before and after it, and the options of the first ones."""
    samples = [
        ProofSample(member.title, None, ", ".join(f"{axis}: {value}" for axis, value in member.axes.items()))
        for member in group.members[:MAX_SAMPLES]
    ]
    return Proof(run, ProofCounts(products=len(group.members)), ProofCounts(products=1), tuple(samples))


def build_group_summary(group: VariantGroup) -> str:
    """Return the text of the proposal of a group."""
    axes = " and ".join(axis.lower() for axis in group.members[0].axes)
    return f"Show {len(group.members)} products as variants of {group.title}. They differ in {axes}."


def compute_group_fingerprint(variants: Sequence[SingleVariant]) -> str:
    """Return a hash of the variants with the data by which their products were grouped."""
    return blake2b(repr(sorted(variants, key=lambda one: one.variant)).encode(), digest_size=16).hexdigest()
