"""Loaded products made whole: with the variants and offers that their sources state."""

from collections.abc import Mapping
from typing import Any

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.catalogue_batch import SQL
from adapters.postgres.session import Session, texts
from domain.catalogue.model import Product, Variant


async def fill(session: Session, products: Mapping[str, Product], read: Any) -> None:
    """Give loaded products (by id) their variants and offers; `read` is `rows.plain` or `rows.packed`."""
    if not products:
        return
    ids = texts(products)
    variants: dict[str, Variant] = {}
    for row in await session.all(SQL["variants_of"], ids=ids):
        variant = variants[row[0]] = rows.variant_of(row, read)
        products[variant.product].variants.append(variant)
    for row in await session.all(SQL["offers_of"], ids=ids):
        offer = rows.offer_of(row)
        variants[offer.variant].offers.append(offer)
