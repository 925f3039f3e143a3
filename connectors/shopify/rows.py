"""Conversion of the products in a Shopify shop's public list to rows with known fields, one row per variant."""

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
STOCK_HEADERS = frozenset({"id", "variants.id", "variants.sku", "variants.available"})
"""Headers of the columns in a table of the stock stream: keys and availability of a variant."""
_NO_OPTION = "Default Title"


def build_shopify_table(records: Iterator[Record], ctx: Context) -> Table:
    """Return the table of all products' variants. Raises BadData if there are no products."""
    first = next(records, None)
    if first is None:
        raise BadData("the shop lists no products")
    currency = ctx.config.get("currency")
    indices = [index for index, (header, _) in enumerate(COLUMNS) if ctx.stream != "stock" or header in STOCK_HEADERS]
    rows = _iterate_rows(chain([first], records), currency if isinstance(currency, str) else None)
    return Table(
        sheet=None,
        headers=tuple(COLUMNS[index][0] for index in indices),
        rows=rows if len(indices) == len(COLUMNS) else ((line, [cells[at] for at in indices]) for line, cells in rows),
        fields=tuple(COLUMNS[index][1] for index in indices),
    )


def _iterate_rows(records: Iterator[Record], currency: str | None) -> Iterator[Row]:
    for number, product in records:
        product_cells = _convert_product(product)
        images = {image["id"]: image for image in _list_objects(product, "images") if "id" in image}
        names = [str(option.get("name", "")) for option in _list_objects(product, "options")]
        for variant in _list_objects(product, "variants"):
            yield number, [*product_cells, *_convert_variant(variant, names, images, currency)]


def _convert_product(product: dict[str, Any]) -> list[Cell]:
    kind = product.get("product_type")
    return [
        _format_key(product.get("id")),
        product.get("handle"),
        product.get("title"),
        product.get("body_html"),
        product.get("vendor"),
        [kind] if isinstance(kind, str) and kind.strip() else None,
        _parse_tags(product.get("tags")),
        [_convert_image(image) for image in _list_objects(product, "images") if image.get("src")],
    ]


def _convert_variant(
    variant: dict[str, Any], names: list[str], images: dict[Any, dict[str, Any]], currency: str | None
) -> list[Cell]:
    title = variant.get("title")
    return [
        _format_key(variant.get("id")),
        variant.get("sku"),
        variant.get("barcode"),
        None if title == _NO_OPTION else title,
        _select_options(variant, names),
        variant.get("grams") or None,
        _find_variant_image(variant, images),
        variant.get("price"),
        variant.get("compare_at_price"),
        currency,
        _convert_availability(variant.get("available")),
    ]


def _select_options(variant: dict[str, Any], names: list[str]) -> dict[str, Any] | None:
    """Return the values of a variant's options by option name, such as `Colour`; None for a product without options."""
    axes = {
        name: variant[key]
        for name, key in zip(names, ("option1", "option2", "option3"), strict=False)
        if name and variant.get(key) not in {None, "", _NO_OPTION}
    }
    return axes or None


def _find_variant_image(variant: dict[str, Any], images: dict[Any, dict[str, Any]]) -> list[dict[str, Any]] | None:
    image = variant.get("featured_image") or images.get(variant.get("image_id"))
    return [_convert_image(image)] if isinstance(image, dict) and image.get("src") else None


def _convert_image(image: dict[str, Any]) -> dict[str, Any]:
    medium = {"url": image["src"], "alt": image.get("alt"), "position": image.get("position")}
    return {name: value for name, value in medium.items() if value is not None}


def _convert_availability(available: object) -> str | None:
    if not isinstance(available, bool):
        return None
    return "in_stock" if available else "out_of_stock"


def _parse_tags(tags: object) -> list[str] | None:
    """Return tags as a list, from an array or from a comma-separated text; None without tags."""
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, list):
        return None
    return [tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()] or None


def _format_key(value: object) -> str | None:
    return None if value is None else str(value)


def _list_objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = holder.get(name)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
