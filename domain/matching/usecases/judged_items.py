"""The data of variants as the judge is shown it: what their own sources state, whatever they are merged with."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.catalogue.model import Product, Variant
from domain.catalogue.ports import CatalogueStore
from domain.matching.judging import JudgedItem
from domain.matching.prices import going_price
from domain.matching.usecases.merging import products_of
from ports.unit_of_work import Tx


async def judged_items(tx: Tx, variants: Sequence[str]) -> Mapping[str, JudgedItem]:
    """By variant; those that are gone are left out."""
    products = await products_of(tx, variants)
    tied = await tx[CatalogueStore].tied(products, products) if products else None
    if tied is None:
        return {}
    sought = set(variants)
    found = ((product, one) for product in tied.products.values() for one in product.variants if one.id in sought)
    return {variant.id: _item(product, variant) for product, variant in found}


def _item(product: Product, variant: Variant) -> JudgedItem:
    data: dict[str, Any] = {**product.data, **variant.data, "variant_title": variant.data.get("title")}
    offers = ((offer.id, offer.data) for offer in variant.offers if offer.withdrawn_at is None)
    price = going_price(offers)
    if price.amount is not None and price.currency is not None:
        data["currency"], data["price"] = price.currency, price.amount
    return JudgedItem(variant.id, product.id, product.data.get("title"), product.data.get("brand"), data)
