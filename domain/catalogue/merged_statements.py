"""The view of merged and corrected products, computed from merges, corrections and the unchanged data of each source.

A merge joins two variants, or two products: one of them, the survivor, represents both. Corrections are the last layer. The view
depends only on the sources' statements, the active merges and the corrections, so undoing all of them restores the original
view.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from domain.catalogue.corrections import PERSON_EDIT, Corrections, correct_offer, set_field
from domain.catalogue.model import LicenceBasis, Offer, Product, ProductStatus, Variant

OWN_FIELDS = frozenset({"sku", "replacement_sku", "axes"})
"""Fields specific to a source: the survivor's own value is used, and another source's only if it has none."""
_STATUSES = (ProductStatus.ACTIVE, ProductStatus.PROBABLY_DISCONTINUED, ProductStatus.DISCONTINUED)
_STATUS_RANKS = {status: rank for rank, status in enumerate(_STATUSES)}


class SourcePrecedence(NamedTuple):
    """Priority of a source's data: 0 for the vendor's own source, 1 for one with a vendor agreement, 2 for others."""

    rank: int

    @classmethod
    def from_settings(cls, *, is_first_party: bool, licence_basis: str) -> "SourcePrecedence":
        """Return the precedence of a source with these settings."""
        if is_first_party:
            return cls(0)
        return cls(1 if licence_basis == LicenceBasis.VENDOR_AGREEMENT else 2)

    @property
    def reason(self) -> str:
        """Code of the reason why this source's values take precedence: `first_party`, `vendor_agreement` or `freshest`."""
        return ("first_party", "vendor_agreement", "freshest")[self.rank]


NO_PRECEDENCE = SourcePrecedence(2)


class FieldOrigin(NamedTuple):
    """Origin of a field of a merged object: the source, the time at which the source stated the value, and why this value was chosen.

    `reason`: `only_source` (no other source has a value), `own` (see OWN_FIELDS), `first_party`, `vendor_agreement`,
    `freshest` or `person_edit` (a correction).
    """

    source: str
    stated_at: datetime
    reason: str


def find_representative(survivor_by_id: Mapping[str, str], id: str) -> str:
    """Follow the merges of a product or variant to the last survivor; return the survivor's ID, or `id` if not merged.

    `survivor_by_id` maps each merged ID to the survivor of the merge.
    """
    while id in survivor_by_id:
        id = survivor_by_id[id]
    return id


@dataclass(slots=True)
class ProductCluster:
    """Products with the decoded data of their sources, and the merges between the products and between their variants.

    A cluster consists of whole merge groups, and of products that are not merged. A product with corrections, or with a corrected
    variant or offer, is a merge group even if it is not merged.

    Attributes:
        products: The products by ID, each with all variants and offers.
        survivor_by_id: Maps the ID of each merged product and variant to the ID of the survivor of the merge.
        precedence_by_source: The precedence of each source.
        corrections: The corrections of the products, variants and offers.
    """

    products: dict[str, Product] = field(default_factory=dict)
    survivor_by_id: dict[str, str] = field(default_factory=dict)
    precedence_by_source: Mapping[str, SourcePrecedence] = field(default_factory=dict)
    corrections: Corrections = field(default_factory=Corrections)

    def find_representative(self, id: str) -> str:
        """Return the ID of the last survivor of a product's or variant's merges; `id` itself if it is not merged."""
        return find_representative(self.survivor_by_id, id)

    def restrict_to(self, products: Iterable[str]) -> "ProductCluster":
        """Return a cluster of only these products and the merges between them; they must include whole merge groups."""
        chosen = {id: self.products[id] for id in products}
        ids = {*chosen, *(variant.id for product in chosen.values() for variant in product.variants)}
        return ProductCluster(
            chosen,
            {id: into for id, into in self.survivor_by_id.items() if id in ids},
            self.precedence_by_source,
            self.corrections.restrict_to(chosen),
        )

    def map_representatives(self) -> dict[str, str]:
        """Map the ID of each merged product to the ID of the product that represents it."""
        return {id: survivor for id in self.products if (survivor := self.find_representative(id)) != id}

    def map_products_by_variant(self) -> dict[str, str]:
        """Map the ID of each variant to the ID of the product to which its source assigns it."""
        return {variant.id: product.id for product in self.products.values() for variant in product.variants}

    def map_merge_groups(self) -> dict[str, str]:
        """Map the ID of each merged or corrected product to the ID of its merge group.

        A merge group consists of all products that merges connect; the smallest product ID is the ID of the merge group.
        """
        found = ClusterUnion(self)
        group_by_product = {id: found.find_group(id) for id in self.products}
        corrected = {group_by_product[one.product] for one in self.corrections.list_all()}
        return {
            id: group
            for id, group in group_by_product.items()
            if found.size_by_group[group].products > 1 or group in corrected
        }

    def group_by_representative(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Group the IDs of products or variants by the ID of the one that represents them."""
        members = defaultdict(list)
        for id in ids:
            members[self.find_representative(id)].append(id)
        return members

    @property
    def size(self) -> int:
        """The number of products and variants."""
        return sum(1 + len(product.variants) for product in self.products.values())


class MergeGroupSize(NamedTuple):
    """Numbers of products and variants, before merging, in a merge group."""

    products: int
    variants: int


class ClusterUnion:
    """Union-find structure of merge groups, each of which consists of all products that merges connect.

    The ID of a merge group is the smallest ID of its products; `size_by_group` has the sizes of the groups by ID.
    """

    def __init__(self, cluster: ProductCluster) -> None:
        self._parents = {id: id for id in cluster.products}
        self.size_by_group = {id: MergeGroupSize(1, len(product.variants)) for id, product in cluster.products.items()}
        owners = cluster.map_products_by_variant()
        for one, other in cluster.survivor_by_id.items():
            self.unite(owners.get(one, one), owners.get(other, other))

    def find_group(self, id: str) -> str:
        """Return the ID of the product's merge group."""
        while (parent := self._parents[id]) != id:
            self._parents[id] = self._parents[parent]
            id = parent
        return id

    def compute_combined_size(self, first: str, second: str) -> MergeGroupSize:
        """Return the size of the merge group that would result from merging the two products."""
        sizes = [self.size_by_group[group] for group in {self.find_group(first), self.find_group(second)}]
        return MergeGroupSize(sum(size.products for size in sizes), sum(size.variants for size in sizes))

    def unite(self, one: str, other: str) -> None:
        """Unite the merge groups of two products."""
        first, second = sorted((self.find_group(one), self.find_group(other)))
        self.size_by_group[first] = self.compute_combined_size(first, second)
        self._parents[second] = first


@dataclass(slots=True)
class CatalogueView:
    """Products that readers see, by ID.

    Attributes:
        representatives_by_variant: Maps each variant's ID to the IDs of the variant and the product that represent it.
        origins: The origin of each field, by the ID of the product or variant; only for those that represent several or are
            corrected. For offers, only the origins of corrected fields.
    """

    products: dict[str, Product] = field(default_factory=dict)
    representatives_by_variant: dict[str, tuple[str, str]] = field(default_factory=dict)
    origins: dict[str, dict[str, FieldOrigin]] = field(default_factory=dict)

    def map_variants(self) -> dict[str, Variant]:
        """Return the visible variants by ID."""
        return {variant.id: variant for product in self.products.values() for variant in product.variants}

    def map_offers(self) -> dict[str, Offer]:
        """Return the offers by ID."""
        return {offer.id: offer for variant in self.map_variants().values() for offer in variant.offers}


def compute_view(cluster: ProductCluster) -> CatalogueView:
    """Compute the products that readers see from the cluster's products and merges."""
    view = CatalogueView()
    owners = cluster.map_products_by_variant()
    for id in owners:
        variant = cluster.find_representative(id)
        view.representatives_by_variant[id] = variant, cluster.find_representative(owners[variant])
    variants = _build_variants(cluster, view)
    for survivor, members in cluster.group_by_representative(cluster.products).items():
        products = _sort_by_precedence(cluster, [cluster.products[id] for id in members])
        data, origins = _merge_fields(cluster, products, cluster.products[survivor])
        if origins:
            view.origins[survivor] = origins
        view.products[survivor] = replace(
            cluster.products[survivor],
            data=data,
            status=_find_best_status(products),
            updated_at=max(product.updated_at for product in products),
            variants=sorted(variants[survivor], key=_get_id),
        )
    return view


def _build_variants(cluster: ProductCluster, view: CatalogueView) -> dict[str, list[Variant]]:
    """Return the visible variants by product ID, and record the origins of their fields in the view."""
    stated = {variant.id: variant for product in cluster.products.values() for variant in product.variants}
    visible: dict[str, list[Variant]] = defaultdict(list)
    for survivor, members in cluster.group_by_representative(stated).items():
        product = view.representatives_by_variant[survivor][1]
        variants = _sort_by_precedence(cluster, [stated[id] for id in members])
        data, origins = _merge_fields(cluster, variants, stated[survivor])
        if origins:
            view.origins[survivor] = origins
        offers = [_relocate_offer(offer, survivor, product) for variant in variants for offer in variant.offers]
        if cluster.corrections:
            offers = [_correct_offer(cluster, view, offer) for offer in offers]
        variant = replace(
            stated[survivor],
            product=product,
            data=data,
            status=_find_best_status(variants),
            updated_at=max(variant.updated_at for variant in variants),
            offers=sorted(offers, key=_get_id),
        )
        visible[product].append(variant)
    return visible


def _relocate_offer(offer: Offer, variant: str, product: str) -> Offer:
    """Return the offer, moved to the variant and product under which readers see it."""
    if offer.variant == variant and offer.product == product:
        return offer
    return replace(offer, variant=variant, product=product)


def _correct_offer(cluster: ProductCluster, view: CatalogueView, offer: Offer) -> Offer:
    """Return the offer with its corrections, and record their origins in the view."""
    corrections = cluster.corrections.get(offer.id)
    if not corrections:
        return offer
    view.origins[offer.id] = {
        name: FieldOrigin(one.source, one.made_at, PERSON_EDIT) for name, one in corrections.items()
    }
    return replace(offer, data=correct_offer(offer, corrections.values()))


def _sort_by_precedence(cluster: ProductCluster, items: Sequence[Any]) -> list[Any]:
    """Sort products or variants by the precedence of their sources, then by the time at which the source last changed them, newest first."""
    if len(items) == 1:
        return [*items]
    return sorted(
        sorted(items, key=lambda one: (get_statement_time(one), one.id), reverse=True),
        key=lambda one: cluster.precedence_by_source.get(one.source, NO_PRECEDENCE).rank,
    )


def _merge_fields(
    cluster: ProductCluster, ranked: Sequence[Any], survivor: Any
) -> tuple[Mapping[str, Any], dict[str, FieldOrigin]]:
    """Return the merged data of products or variants with their corrections, and the origin of each field.

    The origins are empty if there is only one product or variant, without corrections.

    Args:
        cluster: The cluster, for the precedence of the sources.
        ranked: The products or variants that are shown as one, sorted by precedence.
        survivor: The product or variant in `ranked` that is shown for all.
    """
    corrections = cluster.corrections.choose(survivor.id, (one.id for one in ranked), OWN_FIELDS)
    if len(ranked) == 1 and not corrections:
        return survivor.data, {}
    data: dict[str, Any] = {}
    origins: dict[str, FieldOrigin] = {}
    for name in dict.fromkeys(name for one in (survivor, *ranked) for name in one.data):
        candidates = [one for one in ranked if name in one.data]
        chosen, reason = candidates[0], cluster.precedence_by_source.get(candidates[0].source, NO_PRECEDENCE).reason
        if len(candidates) == 1:
            reason = "only_source"
        elif name in OWN_FIELDS and survivor in candidates:
            chosen, reason = survivor, "own"
        data[name] = chosen.data[name]
        origins[name] = FieldOrigin(chosen.source, get_statement_time(chosen), reason)
    for path, correction in corrections.items():
        data = set_field(data, path, correction.value)
        origins[path] = FieldOrigin(correction.source, correction.made_at, PERSON_EDIT)
    return data, origins


def _find_best_status(items: Sequence[Any]) -> ProductStatus:
    """Return the first of ACTIVE, PROBABLY_DISCONTINUED and DISCONTINUED that an item has; unknown statuses rank last."""
    best: ProductStatus = min(
        (one.status for one in items), key=lambda status: _STATUS_RANKS.get(status, len(_STATUS_RANKS))
    )
    return best


def get_statement_time(item: Product | Variant) -> datetime:
    """Return when the source last changed the data of the product or variant."""
    if item.stated_at is not None:
        return item.stated_at
    return item.created_at if isinstance(item, Product) else item.updated_at


def choose_survivor(cluster: ProductCluster, one: Product | Variant, other: Product | Variant) -> tuple[str, str]:
    """Return the ID of the survivor, then the ID of the other object. Higher precedence survives, then the older object."""
    first, second = sorted(
        (one, other), key=lambda each: (cluster.precedence_by_source.get(each.source, NO_PRECEDENCE).rank, each.id)
    )
    return first.id, second.id


def _get_id(item: Variant | Offer) -> str:
    return item.id
