"""Conversion of WooCommerce products and variations to rows with known fields, with measures in the shop's units."""

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
    ("id", "variant_key"),
    ("name", "title"),
    ("description", "description"),
    ("brands", "brand"),
    ("categories", "category_path"),
    ("tags", "tags"),
    ("images", "media"),
    ("image", "variant_media"),
    ("attributes", "features"),
    ("variation attributes", "axes"),
    ("sku", "sku"),
    ("global_unique_id", "gtin"),
    ("weight", "weight"),
    ("length", "dimensions.length"),
    ("width", "dimensions.width"),
    ("height", "dimensions.height"),
    ("currency", "currency"),
    ("price", "price"),
    ("regular_price", "compare_at"),
    ("stock_status", "availability"),
    ("stock_quantity", "quantity"),
)
STOCK: tuple[tuple[str, str | None], ...] = tuple(
    column for column in CATALOGUE if column[0] in {"product id", "id", "sku", "stock_status", "stock_quantity"}
)
_AVAILABILITY = {"instock": "in_stock", "outofstock": "out_of_stock", "onbackorder": "backorder"}
_WEIGHT_UNITS = {"kg": "kg", "g": "g", "lbs": "lb", "oz": "oz"}
_LENGTH_UNITS = {"m": "m", "cm": "cm", "mm": "mm", "in": "in"}
_SINGLE_VARIANT_TYPES = frozenset({"simple", "external", ""})


def read_woocommerce_tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the only table of a snapshot of a WooCommerce shop. Raises BadData."""
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
    converter = _ShopConverter(ctx)
    count = 0
    for number, line in json_records.iterate_lines(path, None, ctx.limits, ctx.report):
        kind, items = line.get("kind"), line.get("page")
        if kind == "settings":
            converter.units = line
        elif kind == "categories" and isinstance(items, list):
            converter.add_categories(items)
        elif kind in {"products", "variations"} and isinstance(items, list):
            for item in items:
                if isinstance(item, dict) and item.get("id") is not None:
                    count += 1
                    cells = (
                        converter.convert_variation(item, line.get("parent"))
                        if kind == "variations"
                        else converter.convert_product(item)
                    )
                    yield count, [cells.get(header) for header in headers]
        else:
            raise BadData(f"line {number} of the stored file is not a response of the WooCommerce API")


class _ShopConverter:
    """Converter of a shop's products and variations to cells, with units and categories from previous lines."""

    def __init__(self, ctx: Context) -> None:
        self.units: Mapping[str, Any] = {}
        self._categories: dict[int, CategoryNode] = {}
        self._ctx = ctx
        self._reported: set[str] = set()

    def add_categories(self, items: list[Any]) -> None:
        """Store a page of categories, for the category paths of products."""
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("id"), int):
                self._categories[item["id"]] = CategoryNode(str(item.get("name", "")), item.get("parent"))

    def convert_product(self, item: Item) -> dict[str, Cell]:
        """Return the cells of a product; for a product without variations, also the cells of its only variant."""
        cells: dict[str, Cell] = {
            "product id": str(item["id"]),
            "name": item.get("name"),
            "description": item.get("description") or item.get("short_description"),
            "brands": next(iter(_iterate_names(item.get("brands"))), None),
            "categories": self._find_category_path(item.get("categories")),
            "tags": list(_iterate_names(item.get("tags"))) or None,
            "images": _convert_images(item.get("images")),
            "attributes": _format_attributes(item.get("attributes")),
        }
        if str(item.get("type", "")) in _SINGLE_VARIANT_TYPES:
            cells |= {"id": str(item["id"]), **self._convert_variant_fields(item)}
        return cells

    def convert_variation(self, item: Item, parent_id: Any) -> dict[str, Cell]:
        """Return the cells of a variation; `parent_id` is the ID of its product, unless the variation states one."""
        axes = {
            str(one["name"]): one["option"]
            for one in _list_objects(item.get("attributes"))
            if one.get("name") and one.get("option")
        }
        product = item.get("parent_id") or parent_id
        image = item.get("image")
        return {
            "product id": str(product) if product else None,
            "id": str(item["id"]),
            "variation attributes": axes or None,
            "image": _convert_images([image]),
            **self._convert_variant_fields(item),
        }

    def _convert_variant_fields(self, item: Item) -> dict[str, Cell]:
        """Return the cells of the fields that both variations and products without variations have."""
        price, regular = item.get("price") or None, item.get("regular_price") or None
        managed = item.get("manage_stock")
        dimensions = item.get("dimensions")
        measures = dimensions if isinstance(dimensions, dict) else {}
        return {
            "sku": item.get("sku") or None,
            "global_unique_id": item.get("global_unique_id") or None,
            "weight": self._format_measure(
                item.get("weight"), "weight", _WEIGHT_UNITS.get(str(self.units.get("weight_unit")))
            ),
            **{
                dimension: self._format_measure(
                    measures.get(dimension), dimension, _LENGTH_UNITS.get(str(self.units.get("dimension_unit")))
                )
                for dimension in ("length", "width", "height")
            },
            "currency": str(self.units.get("currency") or "").lower() or None,
            "price": price or regular,
            "regular_price": regular if price and regular != price else None,
            "stock_status": _AVAILABILITY.get(str(item.get("stock_status"))),
            # A variation may share its product's count, which is then not its own.
            "stock_quantity": item.get("stock_quantity") if managed is True else None,
        }

    def _format_measure(self, value: Any, name: str, unit: str | None) -> str | None:
        if not value or (isinstance(value, str) and not value.strip("0. ")):
            return None
        if unit is None:
            if name not in self._reported:
                self._reported.add(name)
                self._ctx.report(Report(f"the unit of {name} is unknown; the value is not used", None, name))
            return None
        return f"{value} {unit}"

    def _find_category_path(self, categories: Any) -> list[Cell] | None:
        ids = [category.get("id") for category in _list_objects(categories)]
        found: list[list[str]] = build_category_paths(self._categories, ids) or [
            [name] for name in _iterate_names(categories)
        ]
        return [*max(found, key=len)] if found else None


def _list_objects(values: Any) -> list[Item]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _iterate_names(values: Any) -> Iterator[str]:
    for value in _list_objects(values):
        if isinstance(value.get("name"), str) and value["name"].strip():
            yield value["name"].strip()


def _convert_images(values: Any) -> list[Any] | None:
    found = [
        {"url": one["src"], **({"alt": one["alt"]} if one.get("alt") else {})}
        for one in _list_objects(values)
        if one.get("src")
    ]
    return found or None


def _format_attributes(values: Any) -> list[Any] | None:
    """Return the attributes that do not differ between variations, as texts such as `Wood: Oak, Ash`."""
    found = [
        f"{one['name']}: {', '.join(map(str, one['options']))}"
        for one in _list_objects(values)
        if not one.get("variation") and one.get("name") and isinstance(one.get("options"), list) and one["options"]
    ]
    return found or None
