"""Loaded products made whole: with the variants and offers that their sources state."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.catalogue_batch import SQL
from adapters.postgres.session import Fetched, Session, texts
from domain.catalogue.model import Product, Variant

_MANY: Final = 200
"""Rows that are read beside the event loop."""


async def fill(session: Session, products: Mapping[str, Product], read: Any) -> None:
    """Give loaded products (by id) their variants and offers; `read` is `rows.plain` or `rows.packed`."""
    if not products:
        return
    ids = texts(products)
    variants = await session.all(SQL["variants_of"], ids=ids)
    offers = await session.all(SQL["offers_of"], ids=ids)
    if len(variants) + len(offers) > _MANY:
        await asyncio.to_thread(_filled, products, variants, offers, read)
    else:
        _filled(products, variants, offers, read)


def _filled(
    products: Mapping[str, Product], of_variants: Sequence[Fetched], of_offers: Sequence[Fetched], read: Any
) -> None:
    variants: dict[str, Variant] = {}
    for row in of_variants:
        variant = variants[row[0]] = rows.variant_of(row, read)
        products[variant.product].variants.append(variant)
    for row in of_offers:
        offer = rows.offer_of(row)
        variants[offer.variant].offers.append(offer)
