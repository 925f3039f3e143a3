"""Rows of one family become the variants of one product."""

from domain.ingestion.columns.families import Member, own_sizes, shared_title
from domain.ingestion.drafts.draft import ProductDraft, RowDraft


def join(row: RowDraft, key: str, member: Member | None) -> None:
    """Note the sizes and colour of a family's row; its title is its variant's own."""
    title = row.variant.get("title") or row.product.data.get("title")
    if member is not None and title is not None:
        row.variant["title"] = title
        row.product.family[key] = member.sizes, member.colour


def settle_family(product: ProductDraft) -> None:
    """Make what a family's titles differ in its variants' axes, and what they share the product's title, in place."""
    if len(product.family) < 2:
        return
    keys = list(product.family)
    sizes = own_sizes([product.family[key][0] for key in keys])
    colours = [product.family[key][1] for key in keys]
    apart: list[str] = []
    if _axis(product, "Size", None, keys, [" ".join(each) for each in sizes]):
        apart += sizes[0]
    if _axis(product, "Color", "colour", keys, colours):
        apart.append(colours[0])
    title = product.data.get("title", "")
    product.data["title"] = shared_title(title, apart) or title


def _axis(product: ProductDraft, axis: str, other_name: str | None, keys: list[str], values: list[str]) -> bool:
    """Give variants an axis when its values differ; answers whether they do."""
    if len({value.lower() for value in values}) < 2:
        return False
    for key, value in zip(keys, values, strict=True):
        variant = product.variants.get(key)
        known = {name.lower() for name in variant.data.get("axes", ())} if variant else set()
        if variant is not None and value and not known & {axis.lower(), other_name}:
            variant.data["axes"] = {**variant.data.get("axes", {}), axis: value}
    return True
