"""Conversion of BigCommerce products to rows with known fields, one row per variant."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.tables import Cell, Report, Row, Table
from connectors.sdk.trees import CategoryNode, build_category_paths

Item = dict[str, Any]

CATALOGUE: tuple[tuple[str, str | None], ...] = (
    ("product id", "product_key"),
    ("variant id", "variant_key"),
    ("name", "title"),
    ("description", "description"),
    ("brand", "brand"),
    ("categories", "category_path"),
    ("images", "media"),
    ("image_url", "variant_media"),
    ("custom_fields", "features"),
    ("option_values", "axes"),
    ("sku", "sku"),
    ("gtin", "gtin"),
    ("mpn", "mpn"),
    ("weight", "weight"),
    ("width", "dimensions.width"),
    ("depth", "dimensions.depth"),
    ("height", "dimensions.height"),
    ("currency", "currency"),
    ("price", "price"),
    ("sale_price", "sale_price"),
    ("retail_price", "msrp"),
    ("map_price", "map"),
    ("cost_price", "cost"),
    ("availability", "availability"),
    ("inventory_level", "quantity"),
)
_STOCK_COLUMNS = {"product id", "variant id", "sku", "availability", "inventory_level"}
STOCK: tuple[tuple[str, str | None], ...] = tuple(column for column in CATALOGUE if column[0] in _STOCK_COLUMNS)
_WEIGHT_UNITS = {"lbs": "lb", "ounces": "oz", "kgs": "kg", "grams": "g", "tonnes": None}
_LENGTH_UNITS = {"inches": "in", "centimeters": "cm"}
_MONEY_FIELDS = ("price", "sale_price", "retail_price", "map_price", "cost_price")
_MEASURE_FIELDS = ("weight", "width", "depth", "height")


def read_bigcommerce_tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the only table of a snapshot of a BigCommerce store. Raises BadData."""
    if not path.stat().st_size:
        raise BadData("the file is empty")
    columns = STOCK if ctx.stream == "stock" else CATALOGUE
    yield Table(
        sheet=None,
        headers=tuple(header for header, _ in columns),
        rows=_iterate_rows(ctx, path, [header for header, _ in columns]),
        fields=tuple(field for _, field in columns),
    )


def _iterate_rows(ctx: Context, path: Path, headers: list[str]) -> Iterator[Row]:
    converter = _StoreConverter(ctx)
    count = 0
    for number, line in json_records.iterate_lines(path, None, ctx.limits, ctx.report):
        kind, page = line.get("kind"), line.get("page")
        items = page.get("data") if isinstance(page, dict) else None
        if kind == "store":
            converter.units = line
        elif kind in {"brands", "categories"} and isinstance(items, list):
            converter.add_names(kind, items)
        elif kind == "products" and isinstance(items, list):
            for item in items:
                if isinstance(item, dict) and item.get("id") is not None:
                    count += 1
                    for cells in converter.iterate_variant_cells(item):
                        yield count, [cells.get(header) for header in headers]
        else:
            raise BadData(f"line {number} of the stored file is not a response of the BigCommerce API")


class _StoreConverter:
    """Converter of products to cells, with the units, brands and categories from previous lines of the snapshot."""

    def __init__(self, ctx: Context) -> None:
        self.units: Mapping[str, Any] = {}
        self._brands: dict[Any, str] = {}
        self._categories: dict[int, CategoryNode] = {}
        self._ctx = ctx
        self._reported: set[str] = set()

    def add_names(self, kind: str, items: list[Any]) -> None:
        """Store the names on a page of brands or categories; `kind` is `brands` or `categories`."""
        for item in _list_objects(items):
            number = item.get("id", item.get("category_id"))
            if not isinstance(number, int):
                continue
            if kind == "brands":
                self._brands[number] = str(item.get("name", ""))
            else:
                self._categories[number] = CategoryNode(str(item.get("name", "")), item.get("parent_id"))

    def iterate_variant_cells(self, item: Item) -> Iterator[dict[str, Cell]]:
        """Yield the cells of each variant of a product; for a product without variants, the product's cells."""
        product_cells = self._convert_product(item)
        for variant in _list_objects(item.get("variants")) or [{}]:
            number = variant.get("id")
            yield {
                **product_cells,
                **self._convert_variant_fields(item, variant),
                "variant id": str(number) if number is not None else str(item["id"]),
                "image_url": variant.get("image_url") or None,
                "option_values": _convert_options(variant.get("option_values")),
            }

    def _convert_product(self, item: Item) -> dict[str, Cell]:
        ids = item.get("categories")
        found = build_category_paths(self._categories, ids if isinstance(ids, list) else [])
        path: list[Cell] | None = [*max(found, key=len)] if found else None
        return {
            "product id": str(item["id"]),
            "name": item.get("name"),
            "description": item.get("description") or None,
            "brand": self._brands.get(item.get("brand_id")),
            "categories": path,
            "images": _convert_images(item.get("images")),
            "custom_fields": _format_custom_fields(item.get("custom_fields")),
            "currency": str(self.units.get("currency") or "").lower() or None,
        }

    def _convert_variant_fields(self, item: Item, variant: Item) -> dict[str, Cell]:
        """Return the cells of a variant's prices, measures, codes and stock.

        Where the variant has no price or measure, the product's is used. Zero means that no value was entered.
        """
        cells: dict[str, Cell] = {name: variant.get(name) or item.get(name) or None for name in _MONEY_FIELDS}
        for name in _MEASURE_FIELDS:
            cells[name] = self._format_measure(name, variant.get(name) or item.get(name))
        # A product's codes are those of its only variant; with several variants, they belong to none.
        shared = item if len(_list_objects(item.get("variants"))) < 2 else {}
        cells["sku"] = variant.get("sku") or shared.get("sku") or None
        cells["gtin"] = next(
            filter(None, (record.get(name) for record in (variant, shared) for name in ("gtin", "upc"))), None
        )
        cells["mpn"] = variant.get("mpn") or shared.get("mpn") or None
        return {**cells, **_convert_stock(item, variant)}

    def _format_measure(self, name: str, value: Any) -> str | None:
        if not value or isinstance(value, (bool, list, dict)):
            return None
        known, stated = (_WEIGHT_UNITS, "weight_units") if name == "weight" else (_LENGTH_UNITS, "dimension_units")
        unit = known.get(str(self.units.get(stated)).lower())
        if unit is None:
            if name not in self._reported:
                self._reported.add(name)
                self._ctx.report(Report(f"the unit of {name} is unknown; the value is not used", None, name))
            return None
        return f"{value} {unit}"


def _convert_stock(item: Item, variant: Item) -> dict[str, Cell]:
    """Return the cells of a variant's availability and stock level, which is None if the store does not track it."""
    tracking = item.get("inventory_tracking")
    is_only_variant = len(_list_objects(item.get("variants"))) < 2
    level = None
    if tracking == "variant":
        level = variant.get("inventory_level")
    elif tracking == "product" and is_only_variant:
        level = item.get("inventory_level")
    word = item.get("availability")
    if word == "disabled" or variant.get("purchasing_disabled") is True:
        return {"inventory_level": level, "availability": "out_of_stock"}
    if word == "preorder":
        return {"inventory_level": level, "availability": "preorder"}
    return {"inventory_level": level, "availability": "in_stock" if tracking == "none" else None}


def _list_objects(values: Any) -> list[Item]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _convert_options(values: Any) -> dict[str, Any] | None:
    axes = {
        str(one["option_display_name"]): one["label"]
        for one in _list_objects(values)
        if one.get("option_display_name") and one.get("label")
    }
    return axes or None


def _convert_images(values: Any) -> list[Any] | None:
    """Return the images of a product: the thumbnail first, then the others in the store's order."""
    found = [one for one in _list_objects(values) if one.get("url_zoom") or one.get("url_standard")]
    found.sort(key=lambda one: (not one.get("is_thumbnail"), _get_sort_order(one)))
    return [
        {
            "url": one.get("url_zoom") or one["url_standard"],
            **({"alt": one["description"]} if one.get("description") else {}),
        }
        for one in found
    ] or None


def _get_sort_order(image: Item) -> int:
    order = image.get("sort_order")
    return order if isinstance(order, int) else 0


def _format_custom_fields(values: Any) -> list[Any] | None:
    return [f"{one['name']}: {one.get('value')}" for one in _list_objects(values) if one.get("name")] or None
