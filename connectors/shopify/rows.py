"""Conversion of a shop's products to rows, one a variant, with known fields."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Cell, Row, Table

Record = tuple[int, dict[str, Any]]

COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("id", "product_key"),
    ("handle", None),
    ("title", "title"),
    ("body_html", "description"),
    ("vendor", "brand"),
    ("product_type", "category_path"),
    ("tags", "tags"),
    ("images", "media"),
    ("variants.id", "variant_key"),
    ("variants.sku", "sku"),
    ("variants.barcode", "gtin"),
    ("variants.title", "variant_title"),
    ("options", "axes"),
    ("variants.grams", "weight@unit=g"),
    ("variants.image", "variant_media"),
    ("variants.price", "price"),
    ("variants.compare_at_price", "compare_at"),
    ("currency", "currency"),
    ("variants.available", "availability"),
)
STOCK = frozenset({"id", "variants.id", "variants.sku", "variants.available"})
"""Columns with the stock of a variant."""
_NO_OPTION = "Default Title"


def table(records: Iterator[Record], ctx: Context) -> Table:
    """Return the table of all products. Raises BadData if there are none."""
    first = next(records, None)
    if first is None:
        raise BadData("the shop lists no products")
    currency = ctx.config.get("currency")
    places = [at for at, (header, _) in enumerate(COLUMNS) if ctx.stream != "stock" or header in STOCK]
    rows = _rows(chain([first], records), currency if isinstance(currency, str) else None)
    return Table(
        sheet=None,
        headers=tuple(COLUMNS[at][0] for at in places),
        rows=rows if len(places) == len(COLUMNS) else ((line, [cells[at] for at in places]) for line, cells in rows),
        given=tuple(COLUMNS[at][1] for at in places),
    )


def _rows(records: Iterator[Record], currency: str | None) -> Iterator[Row]:
    for number, product in records:
        own = _product(product)
        images = {image["id"]: image for image in _objects(product, "images") if "id" in image}
        names = [str(option.get("name", "")) for option in _objects(product, "options")]
        for variant in _objects(product, "variants"):
            yield number, [*own, *_variant(variant, names, images, currency)]


def _product(product: dict[str, Any]) -> list[Cell]:
    kind = product.get("product_type")
    return [
        _key(product.get("id")),
        product.get("handle"),
        product.get("title"),
        product.get("body_html"),
        product.get("vendor"),
        [kind] if isinstance(kind, str) and kind.strip() else None,
        _tags(product.get("tags")),
        [_medium(image) for image in _objects(product, "images") if image.get("src")],
    ]


def _variant(
    variant: dict[str, Any], names: list[str], images: dict[Any, dict[str, Any]], currency: str | None
) -> list[Cell]:
    title = variant.get("title")
    return [
        _key(variant.get("id")),
        variant.get("sku"),
        variant.get("barcode"),
        None if title == _NO_OPTION else title,
        _axes(variant, names),
        variant.get("grams") or None,
        _own_media(variant, images),
        variant.get("price"),
        variant.get("compare_at_price"),
        currency,
        _availability(variant.get("available")),
    ]


def _axes(variant: dict[str, Any], names: list[str]) -> dict[str, Any] | None:
    """Return option names and values of this variant; a product without options has only `Title: Default Title`."""
    axes = {
        name: variant[key]
        for name, key in zip(names, ("option1", "option2", "option3"), strict=False)
        if name and variant.get(key) not in {None, "", _NO_OPTION}
    }
    return axes or None


def _own_media(variant: dict[str, Any], images: dict[Any, dict[str, Any]]) -> list[dict[str, Any]] | None:
    image = variant.get("featured_image") or images.get(variant.get("image_id"))
    return [_medium(image)] if isinstance(image, dict) and image.get("src") else None


def _medium(image: dict[str, Any]) -> dict[str, Any]:
    medium = {"url": image["src"], "alt": image.get("alt"), "position": image.get("position")}
    return {name: value for name, value in medium.items() if value is not None}


def _availability(available: object) -> str | None:
    if not isinstance(available, bool):
        return None
    return "in_stock" if available else "out_of_stock"


def _tags(tags: object) -> list[str] | None:
    """Return the tags; they are an array here, and comma-separated text in the shop's other interfaces."""
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, list):
        return None
    return [tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()] or None


def _key(value: object) -> str | None:
    return None if value is None else str(value)


def _objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = holder.get(name)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
