"""The view of merged products: computed from the statements of each source, which are kept unchanged.

A merge joins two variants, or two products: one of them, the survivor, is shown for both. The view depends only on the
sources' statements and on the active merges, so undoing all merges restores the original view.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from domain.catalogue.model import LicenceBasis, Offer, Product, ProductStatus, Variant

OWN_FIELDS = frozenset({"sku", "replacement_sku", "axes"})
"""Fields of a variant that are meaningful only for its own source: another's value is used only where it has none."""
_STATUSES = (ProductStatus.ACTIVE, ProductStatus.PROBABLY_DISCONTINUED, ProductStatus.DISCONTINUED)
_STATUS_RANKS = {status: place for place, status in enumerate(_STATUSES)}


class Precedence(NamedTuple):
    """The priority of a source's statements: 0 for the brand itself, 1 for a vendor agreement, 2 for all others."""

    rank: int

    @classmethod
    def by(cls, *, first_party: bool, licence_basis: str) -> "Precedence":
        """Return the precedence of a source with these settings."""
        if first_party:
            return cls(0)
        return cls(1 if licence_basis == LicenceBasis.VENDOR_AGREEMENT else 2)

    @property
    def reason(self) -> str:
        """The reason why its statements are chosen before others'."""
        return ("first_party", "vendor_agreement", "freshest")[self.rank]


NO_PRECEDENCE = Precedence(2)


class Origin(NamedTuple):
    """The origin of a field of a merged object: its source, the time of the statement, and the reason for choosing it.

    `reason`: `only_source` (no other source states it), `own` (see OWN_FIELDS), `first_party`, `vendor_agreement` or `freshest`.
    """

    source: str
    stated_at: datetime
    reason: str


def root_of(merged: Mapping[str, str], id: str) -> str:
    """Return the ID under which a product or variant is shown; `merged` maps merged IDs to their survivors."""
    while id in merged:
        id = merged[id]
    return id


@dataclass(slots=True)
class TiedProducts:
    """Products as their sources state them, complete and with plain data, by ID, with the merges among them and their variants.

    `merged` maps merged products and variants to those they were merged into. `words` maps each source to its precedence.
    """

    products: dict[str, Product] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    words: Mapping[str, Precedence] = field(default_factory=dict)

    def root(self, id: str) -> str:
        """Return the ID under which a product or variant is shown."""
        return root_of(self.merged, id)

    def only(self, products: Iterable[str]) -> "TiedProducts":
        """Return a cluster of some of the products, which must be whole families, with their merges."""
        chosen = {id: self.products[id] for id in products}
        held = {*chosen, *(variant.id for product in chosen.values() for variant in product.variants)}
        return TiedProducts(chosen, {id: into for id, into in self.merged.items() if id in held}, self.words)

    def roots(self) -> dict[str, str]:
        """Return the survivors of the products that are merged into others, by product ID."""
        return {id: root for id in self.products if (root := self.root(id)) != id}

    def owners(self) -> dict[str, str]:
        """Return the product ID of each variant as its source states it."""
        return {variant.id: product.id for product in self.products.values() for variant in product.variants}

    def families(self) -> dict[str, str]:
        """Return the family of each merged product by product ID; a family is named by its smallest ID."""
        found = Families(self)
        tops = {id: found.top(id) for id in self.products}
        return {id: top for id, top in tops.items() if found.extents[top].products > 1}

    def members(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Return the IDs of the products or variants by the ID under which they are shown."""
        members = defaultdict(list)
        for id in ids:
            members[self.root(id)].append(id)
        return members

    @property
    def size(self) -> int:
        """The number of products and variants."""
        return sum(1 + len(product.variants) for product in self.products.values())


class Extent(NamedTuple):
    """The size of a family: numbers of products and variants that are merged, as their sources state them."""

    products: int
    variants: int


class Families:
    """The families of merged products, each named by its smallest ID, with their extents by name (a union-find structure)."""

    def __init__(self, tied: TiedProducts) -> None:
        self._parents = {id: id for id in tied.products}
        self.extents = {id: Extent(1, len(product.variants)) for id, product in tied.products.items()}
        owners = tied.owners()
        for one, other in tied.merged.items():
            self.join(owners.get(one, one), owners.get(other, other))

    def top(self, id: str) -> str:
        """Return the name of the product's family."""
        while (above := self._parents[id]) != id:
            self._parents[id] = self._parents[above]
            id = above
        return id

    def together(self, first: str, second: str) -> Extent:
        """Return the combined extent of the families of two products."""
        extents = [self.extents[top] for top in {self.top(first), self.top(second)}]
        return Extent(sum(extent.products for extent in extents), sum(extent.variants for extent in extents))

    def join(self, one: str, other: str) -> None:
        """Unite the families of two products."""
        first, second = sorted((self.top(one), self.top(other)))
        self.extents[first] = self.together(first, second)
        self._parents[second] = first


@dataclass(slots=True)
class Shown:
    """The view that readers see: products by ID, and the variant and product under which each variant is shown.

    `origins` maps each product and variant that represents several to the origin of each field.
    """

    products: dict[str, Product] = field(default_factory=dict)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    origins: dict[str, dict[str, Origin]] = field(default_factory=dict)

    def variants(self) -> dict[str, Variant]:
        """Return the visible variants by ID."""
        return {variant.id: variant for product in self.products.values() for variant in product.variants}


def shown(tied: TiedProducts) -> Shown:
    """Compute the products that readers see."""
    answer = Shown()
    owners = tied.owners()
    for id in owners:
        variant = tied.root(id)
        answer.places[id] = variant, tied.root(owners[variant])
    variants = _build_variants(tied, answer)
    for root, members in tied.members(tied.products).items():
        products = _rank(tied, [tied.products[id] for id in members])
        data, origins = _merge_fields(tied, products, tied.products[root])
        if len(products) > 1:
            answer.origins[root] = origins
        answer.products[root] = replace(
            tied.products[root],
            data=data,
            status=_best_status(products),
            updated_at=max(product.updated_at for product in products),
            variants=sorted(variants[root], key=_id),
        )
    return answer


def _build_variants(tied: TiedProducts, answer: Shown) -> dict[str, list[Variant]]:
    """Return the visible variants by the ID of the product that shows them."""
    stated = {variant.id: variant for product in tied.products.values() for variant in product.variants}
    made: dict[str, list[Variant]] = defaultdict(list)
    for root, members in tied.members(stated).items():
        product = answer.places[root][1]
        variants = _rank(tied, [stated[id] for id in members])
        data, origins = _merge_fields(tied, variants, stated[root])
        if len(variants) > 1:
            answer.origins[root] = origins
        offers = [_relocate_offer(offer, root, product) for variant in variants for offer in variant.offers]
        variant = replace(
            stated[root],
            product=product,
            data=data,
            status=_best_status(variants),
            updated_at=max(variant.updated_at for variant in variants),
            offers=sorted(offers, key=_id),
        )
        made[product].append(variant)
    return made


def _relocate_offer(offer: Offer, variant: str, product: str) -> Offer:
    """Return the offer with the variant and product that show it."""
    if offer.variant == variant and offer.product == product:
        return offer
    return replace(offer, variant=variant, product=product)


def _rank(tied: TiedProducts, things: Sequence[Any]) -> list[Any]:
    """Return the items by source priority, then by the time of their latest statement, newest first."""
    if len(things) == 1:
        return [*things]
    return sorted(
        sorted(things, key=lambda one: (said_at(one), one.id), reverse=True),
        key=lambda one: tied.words.get(one.source, NO_PRECEDENCE).rank,
    )


def _merge_fields(tied: TiedProducts, ranked: Sequence[Any], root: Any) -> tuple[Mapping[str, Any], dict[str, Origin]]:
    """Return the merged data of ranked items field by field, and the origin of each field."""
    if len(ranked) == 1:
        return root.data, {}
    data: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for name in dict.fromkeys(name for one in (root, *ranked) for name in one.data):
        candidates = [one for one in ranked if name in one.data]
        chosen, reason = candidates[0], tied.words.get(candidates[0].source, NO_PRECEDENCE).reason
        if len(candidates) == 1:
            reason = "only_source"
        elif name in OWN_FIELDS and root in candidates:
            chosen, reason = root, "own"
        data[name] = chosen.data[name]
        origins[name] = Origin(chosen.source, said_at(chosen), reason)
    return data, origins


def _best_status(things: Sequence[Any]) -> ProductStatus:
    """Return the best status: an item that one source still lists is available. Unknown statuses rank last."""
    best: ProductStatus = min(
        (one.status for one in things), key=lambda status: _STATUS_RANKS.get(status, len(_STATUS_RANKS))
    )
    return best


def said_at(thing: Product | Variant) -> datetime:
    """Return the time of the source's latest changed statement of the object."""
    if thing.stated_at is not None:
        return thing.stated_at
    return thing.created_at if isinstance(thing, Product) else thing.updated_at


def survivor(tied: TiedProducts, one: Product | Variant, other: Product | Variant) -> tuple[str, str]:
    """Return the IDs of the survivor and the merged object: higher precedence first, then the older one."""
    first, second = sorted((one, other), key=lambda each: (tied.words.get(each.source, NO_PRECEDENCE).rank, each.id))
    return first.id, second.id


def _id(thing: Variant | Offer) -> str:
    return thing.id
