"""What readers see of products that are merged: laid over what each source states, of which nothing is lost.

A merge ties two variants, or two products, together: one of them, the survivor, is shown for both. Everything here follows
from what the sources state and from the merges that count, so that without a merge everything is as it was before.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from domain.catalogue.model import LicenceBasis, Offer, Product, ProductStatus, Variant

OWN_FIELDS = frozenset({"sku", "replacement_sku", "axes"})
"""Fields of a variant that mean something with its own source alone: another's are taken only where it has none."""
_STATUSES = (ProductStatus.ACTIVE, ProductStatus.PROBABLY_DISCONTINUED, ProductStatus.DISCONTINUED)
_PLACES = {status: place for place, status in enumerate(_STATUSES)}


class Precedence(NamedTuple):
    """How far a source's word goes: 0 for the brand itself, 1 for a vendor's agreement, 2 for any other."""

    rank: int

    @classmethod
    def by(cls, *, first_party: bool, licence_basis: str) -> "Precedence":
        """Return the precedence of a source with these settings."""
        if first_party:
            return cls(0)
        return cls(1 if licence_basis == LicenceBasis.VENDOR_AGREEMENT else 2)

    @property
    def reason(self) -> str:
        """Why its word is taken before others'."""
        return ("first_party", "vendor_agreement", "freshest")[self.rank]


NO_PRECEDENCE = Precedence(2)


class Origin(NamedTuple):
    """Where a field of something merged comes from: source, since when it says so, and why it is taken.

    `reason`: `only_source` (nobody else states it), `own` (see OWN_FIELDS), `first_party`, `vendor_agreement` or `freshest`.
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
    """Products as their sources state them, whole and with plain data, by id; and the merges among them and their variants.

    `merged` leads from what was merged to what it was merged into, products and variants alike. `words` are the sources'.
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
        """Which of the products or variants are shown as each that is shown."""
        members = defaultdict(list)
        for id in ids:
            members[self.root(id)].append(id)
        return members

    @property
    def size(self) -> int:
        """How many products and variants there are."""
        return sum(1 + len(product.variants) for product in self.products.values())


class Extent(NamedTuple):
    """Products that merges tie together, and their variants, as their sources have them."""

    products: int
    variants: int


class Families:
    """The families of tied products, each named by the smallest id in it, and their extents by name; merges join them one by one."""

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

    def together(self, one: str, other: str) -> Extent:
        """Return the combined extent of the families of two products."""
        extents = [self.extents[top] for top in {self.top(one), self.top(other)}]
        return Extent(sum(one.products for one in extents), sum(one.variants for one in extents))

    def join(self, one: str, other: str) -> None:
        """Have the families of two products be one."""
        first, second = sorted((self.top(one), self.top(other)))
        self.extents[first] = self.together(first, second)
        self._parents[second] = first


@dataclass(slots=True)
class Shown:
    """What readers see: products by id, and as which variant and product each variant is shown.

    `origins` tells of the products and variants that stand for several where each field comes from.
    """

    products: dict[str, Product] = field(default_factory=dict)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    origins: dict[str, dict[str, Origin]] = field(default_factory=dict)

    def variants(self) -> dict[str, Variant]:
        """Those that are shown, by id."""
        return {variant.id: variant for product in self.products.values() for variant in product.variants}


def shown(tied: TiedProducts) -> Shown:
    """Compute the products that readers see."""
    answer = Shown()
    owners = tied.owners()
    for id in owners:
        variant = tied.root(id)
        answer.places[id] = variant, tied.root(owners[variant])
    variants = _shown_variants(tied, answer)
    for root, members in tied.members(tied.products).items():
        products = _ranked(tied, [tied.products[id] for id in members])
        data, origins = _overlaid(tied, products, tied.products[root])
        if len(products) > 1:
            answer.origins[root] = origins
        answer.products[root] = replace(
            tied.products[root],
            data=data,
            status=_status(products),
            updated_at=max(product.updated_at for product in products),
            variants=sorted(variants[root], key=_id),
        )
    return answer


def _shown_variants(tied: TiedProducts, answer: Shown) -> dict[str, list[Variant]]:
    """Return the visible variants by the ID of the product that shows them."""
    stated = {variant.id: variant for product in tied.products.values() for variant in product.variants}
    made: dict[str, list[Variant]] = defaultdict(list)
    for root, members in tied.members(stated).items():
        product = answer.places[root][1]
        variants = _ranked(tied, [stated[id] for id in members])
        data, origins = _overlaid(tied, variants, stated[root])
        if len(variants) > 1:
            answer.origins[root] = origins
        offers = [_placed(offer, root, product) for variant in variants for offer in variant.offers]
        variant = replace(
            stated[root],
            product=product,
            data=data,
            status=_status(variants),
            updated_at=max(variant.updated_at for variant in variants),
            offers=sorted(offers, key=_id),
        )
        made[product].append(variant)
    return made


def _placed(offer: Offer, variant: str, product: str) -> Offer:
    """Return the offer with the variant and product that show it."""
    if offer.variant == variant and offer.product == product:
        return offer
    return replace(offer, variant=variant, product=product)


def _ranked(tied: TiedProducts, things: Sequence[Any]) -> list[Any]:
    """Return the items by source priority, then by the time of their latest statement, newest first."""
    if len(things) == 1:
        return [*things]
    return sorted(
        sorted(things, key=lambda one: (said_at(one), one.id), reverse=True),
        key=lambda one: tied.words.get(one.source, NO_PRECEDENCE).rank,
    )


def _overlaid(tied: TiedProducts, ranked: Sequence[Any], root: Any) -> tuple[Mapping[str, Any], dict[str, Origin]]:
    """Return the merged data of ranked items field by field, and the origin of each field."""
    if len(ranked) == 1:
        return root.data, {}
    data: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for name in dict.fromkeys(name for one in (root, *ranked) for name in one.data):
        stating = [one for one in ranked if name in one.data]
        chosen, reason = stating[0], tied.words.get(stating[0].source, NO_PRECEDENCE).reason
        if len(stating) == 1:
            reason = "only_source"
        elif name in OWN_FIELDS and root in stating:
            chosen, reason = root, "own"
        data[name] = chosen.data[name]
        origins[name] = Origin(chosen.source, said_at(chosen), reason)
    return data, origins


def _status(things: Sequence[Any]) -> ProductStatus:
    """Return the best status: an item that one source still lists is available. Unknown statuses rank last."""
    best: ProductStatus = min((one.status for one in things), key=lambda status: _PLACES.get(status, len(_PLACES)))
    return best


def said_at(thing: Product | Variant) -> datetime:
    """Since when its source states what it states."""
    if thing.stated_at is not None:
        return thing.stated_at
    return thing.created_at if isinstance(thing, Product) else thing.updated_at


def survivor(tied: TiedProducts, one: Product | Variant, other: Product | Variant) -> tuple[str, str]:
    """Which of two is shown for both, and which is not: by how far their sources' words go, then the older one."""
    first, second = sorted((one, other), key=lambda each: (tied.words.get(each.source, NO_PRECEDENCE).rank, each.id))
    return first.id, second.id


def _id(thing: Variant | Offer) -> str:
    return thing.id
