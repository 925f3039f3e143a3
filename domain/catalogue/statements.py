"""What a source states: a product with its variants and their offers, as a feed or a pushed record gave them."""

from dataclasses import dataclass, field

from domain.catalogue.data import OfferData, ProductData, VariantData


@dataclass(slots=True)
class OfferStatement:
    """A source's offer of one variant at one location; `data` holds only what this feed states."""

    location: str
    data: OfferData


@dataclass(slots=True)
class VariantStatement:
    """A source's statement of one variant; `key` is the source's own key for it, unique within the source.

    `restated`: its offers are all there are, so that others are withdrawn, whatever kind of run this is. `blank` names the
    fields of variant and offers whose columns its rows leave blank: `variant.dimensions.width`, `offer.compare_at`.
    """

    key: str
    data: VariantData
    offers: list[OfferStatement] = field(default_factory=list)
    restated: bool = False
    blank: frozenset[str] = frozenset()


@dataclass(slots=True)
class ProductStatement:
    """A source's statement of one product; `key` is the source's own key for it.

    `blank` names its own fields whose columns the rows leave blank: `product.brand`. `restated`: its variants are all there are.
    Of a pushed record, which is merged before it is applied (domain/ingestion/merging.py), data may hold None for what is to be removed, `discontinued` is None where it does not
    say, and `alone` marks one that names offers and nothing else.
    """

    key: str
    data: ProductData
    variants: list[VariantStatement] = field(default_factory=list)
    discontinued: bool | None = False
    restated: bool = False
    alone: bool = False
    blank: frozenset[str] = frozenset()


def together(first: ProductStatement, second: ProductStatement) -> ProductStatement:
    """Two sheets' statements of one product: the second fills in what the first does not say."""
    first.data = {**second.data, **first.data}
    first.blank |= second.blank
    known = {variant.key: variant for variant in first.variants}
    for variant in second.variants:
        mine = known.get(variant.key)
        if mine is None:
            first.variants.append(variant)
            continue
        mine.data = {**variant.data, **mine.data}
        mine.blank |= variant.blank
        places = {offer.location for offer in mine.offers}
        mine.offers += [offer for offer in variant.offers if offer.location not in places]
    first.discontinued = first.discontinued or second.discontinued
    return first
