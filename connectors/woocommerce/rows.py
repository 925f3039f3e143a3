"""Conversion of WooCommerce products and variations to rows with known fields, measures in the shop's units."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.tables import Cell, Report, Row, Table
from connectors.sdk.trees import Branch, paths

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
_STATUS = {"instock": "in_stock", "outofstock": "out_of_stock", "onbackorder": "backorder"}
_WEIGHTS = {"kg": "kg", "g": "g", "lbs": "lb", "oz": "oz"}
_LENGTHS = {"m": "m", "cm": "cm", "mm": "mm", "in": "in"}
_ALONE = frozenset({"simple", "external", ""})


def tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the one table of a snapshot. Raises BadData."""
    if not path.stat().st_size:
        raise BadData("the file is empty")
    columns = STOCK if ctx.stream == "stock" else CATALOGUE
    yield Table(
        sheet=None,
        headers=tuple(header for header, _ in columns),
        rows=_rows(ctx, path, [header for header, _ in columns]),
        given=tuple(field for _, field in columns),
    )


def _rows(ctx: Context, path: Path, headers: list[str]) -> Iterator[Row]:
    shop = _Shop(ctx)
    count = 0
    for number, line in json_records.lines(path, None, ctx.limits, ctx.report):
        kind, items = line.get("kind"), line.get("page")
        if kind == "settings":
            shop.units = line
        elif kind == "categories" and isinstance(items, list):
            shop.add_categories(items)
        elif kind in {"products", "variations"} and isinstance(items, list):
            for item in items:
                if isinstance(item, dict) and item.get("id") is not None:
                    count += 1
                    cells = shop.variation(item, line.get("parent")) if kind == "variations" else shop.product(item)
                    yield count, [cells.get(header) for header in headers]
        else:
            raise BadData(f"line {number} is not a page of a WooCommerce shop")


class _Shop:
    """Units and categories of a shop, collected while its pages are read."""

    def __init__(self, ctx: Context) -> None:
        self.units: Mapping[str, Any] = {}
        self._categories: dict[int, Branch] = {}
        self._ctx = ctx
        self._reported: set[str] = set()

    def add_categories(self, items: list[Any]) -> None:
        """Add a page of categories."""
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("id"), int):
                self._categories[item["id"]] = Branch(str(item.get("name", "")), item.get("parent"))

    def product(self, item: Item) -> dict[str, Cell]:
        """Return a product's cells, with those of its one variant if it has no variations."""
        cells: dict[str, Cell] = {
            "product id": str(item["id"]),
            "name": item.get("name"),
            "description": item.get("description") or item.get("short_description"),
            "brands": next(iter(_names(item.get("brands"))), None),
            "categories": self._path(item.get("categories")),
            "tags": list(_names(item.get("tags"))) or None,
            "images": _images(item.get("images")),
            "attributes": _attributes(item.get("attributes")),
        }
        if str(item.get("type", "")) in _ALONE:
            cells |= {"id": str(item["id"]), **self._own(item)}
        return cells

    def variation(self, item: Item, parent: Any) -> dict[str, Cell]:
        """Return a variation's cells."""
        axes = {
            str(one["name"]): one["option"]
            for one in _objects(item.get("attributes"))
            if one.get("name") and one.get("option")
        }
        own = item.get("parent_id") or parent
        image = item.get("image")
        return {
            "product id": str(own) if own else None,
            "id": str(item["id"]),
            "variation attributes": axes or None,
            "image": _images([image]),
            **self._own(item),
        }

    def _own(self, item: Item) -> dict[str, Cell]:
        """Return the cells that simple products and variations share."""
        price, regular = item.get("price") or None, item.get("regular_price") or None
        managed = item.get("manage_stock")
        dimensions = item.get("dimensions")
        sides = dimensions if isinstance(dimensions, dict) else {}
        return {
            "sku": item.get("sku") or None,
            "global_unique_id": item.get("global_unique_id") or None,
            "weight": self._measure(item.get("weight"), "weight", _WEIGHTS.get(str(self.units.get("weight_unit")))),
            **{
                side: self._measure(sides.get(side), side, _LENGTHS.get(str(self.units.get("dimension_unit"))))
                for side in ("length", "width", "height")
            },
            "currency": str(self.units.get("currency") or "").lower() or None,
            "price": price or regular,
            "regular_price": regular if price and regular != price else None,
            "stock_status": _STATUS.get(str(item.get("stock_status"))),
            # A variation may share the count of its product, which then is not its own.
            "stock_quantity": item.get("stock_quantity") if managed is True else None,
        }

    def _measure(self, value: Any, name: str, unit: str | None) -> str | None:
        if not value or (isinstance(value, str) and not value.strip("0. ")):
            return None
        if unit is None:
            if name not in self._reported:
                self._reported.add(name)
                self._ctx.report(Report(f"the unit of {name} is not known: it is not used", None, name))
            return None
        return f"{value} {unit}"

    def _path(self, categories: Any) -> list[Cell] | None:
        ids = [category.get("id") for category in _objects(categories)]
        found: list[list[str]] = paths(self._categories, ids) or [[name] for name in _names(categories)]
        return [*max(found, key=len)] if found else None


def _objects(values: Any) -> list[Item]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _names(values: Any) -> Iterator[str]:
    for value in _objects(values):
        if isinstance(value.get("name"), str) and value["name"].strip():
            yield value["name"].strip()


def _images(values: Any) -> list[Any] | None:
    found = [
        {"url": one["src"], **({"alt": one["alt"]} if one.get("alt") else {})}
        for one in _objects(values)
        if one.get("src")
    ]
    return found or None


def _attributes(values: Any) -> list[Any] | None:
    """Return the attributes that do not distinguish variations, as texts (`Wood: Oak, Ash`)."""
    found = [
        f"{one['name']}: {', '.join(map(str, one['options']))}"
        for one in _objects(values)
        if not one.get("variation") and one.get("name") and isinstance(one.get("options"), list) and one["options"]
    ]
    return found or None
