"""Conversion of BigCommerce products to rows, one a variant, with the product's values where a variant has none."""

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
_STOCK = {"product id", "variant id", "sku", "availability", "inventory_level"}
STOCK: tuple[tuple[str, str | None], ...] = tuple(column for column in CATALOGUE if column[0] in _STOCK)
_WEIGHTS = {"lbs": "lb", "ounces": "oz", "kgs": "kg", "grams": "g", "tonnes": None}
_LENGTHS = {"inches": "in", "centimeters": "cm"}
_MONEY = ("price", "sale_price", "retail_price", "map_price", "cost_price")
_MEASURES = ("weight", "width", "depth", "height")


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
    store = _Store(ctx)
    count = 0
    for number, line in json_records.lines(path, None, ctx.limits, ctx.report):
        kind, page = line.get("kind"), line.get("page")
        items = page.get("data") if isinstance(page, dict) else None
        if kind == "store":
            store.units = line
        elif kind in {"brands", "categories"} and isinstance(items, list):
            store.add(kind, items)
        elif kind == "products" and isinstance(items, list):
            for item in items:
                if isinstance(item, dict) and item.get("id") is not None:
                    count += 1
                    for cells in store.variants(item):
                        yield count, [cells.get(header) for header in headers]
        else:
            raise BadData(f"line {number} is not a page of a BigCommerce store")


class _Store:
    """Units, brands and categories of a store, collected while its pages are read."""

    def __init__(self, ctx: Context) -> None:
        self.units: Mapping[str, Any] = {}
        self._brands: dict[Any, str] = {}
        self._categories: dict[int, Branch] = {}
        self._ctx = ctx
        self._reported: set[str] = set()

    def add(self, kind: str, items: list[Any]) -> None:
        """Add a page of brands or of categories."""
        for item in _objects(items):
            number = item.get("id", item.get("category_id"))
            if not isinstance(number, int):
                continue
            if kind == "brands":
                self._brands[number] = str(item.get("name", ""))
            else:
                self._categories[number] = Branch(str(item.get("name", "")), item.get("parent_id"))

    def variants(self, item: Item) -> Iterator[dict[str, Cell]]:
        """Yield the cells of each of a product's variants, or of the product itself if it has none."""
        own = self._product(item)
        for variant in _objects(item.get("variants")) or [{}]:
            number = variant.get("id")
            yield {
                **own,
                **self._facts(item, variant),
                "variant id": str(number) if number is not None else str(item["id"]),
                "image_url": variant.get("image_url") or None,
                "option_values": _axes(variant.get("option_values")),
            }

    def _product(self, item: Item) -> dict[str, Cell]:
        ids = item.get("categories")
        found = paths(self._categories, ids if isinstance(ids, list) else [])
        path: list[Cell] | None = [*max(found, key=len)] if found else None
        return {
            "product id": str(item["id"]),
            "name": item.get("name"),
            "description": item.get("description") or None,
            "brand": self._brands.get(item.get("brand_id")),
            "categories": path,
            "images": _images(item.get("images")),
            "custom_fields": _fields(item.get("custom_fields")),
            "currency": str(self.units.get("currency") or "").lower() or None,
        }

    def _facts(self, item: Item, variant: Item) -> dict[str, Cell]:
        """Return the values of a variant, or else of its product; zero means that a price or measure was not entered."""
        cells: dict[str, Cell] = {name: variant.get(name) or item.get(name) or None for name in _MONEY}
        for name in _MEASURES:
            cells[name] = self._measure(name, variant.get(name) or item.get(name))
        # A product's codes are those of its only variant; with several variants, they belong to none.
        shared = item if len(_objects(item.get("variants"))) < 2 else {}
        cells["sku"] = variant.get("sku") or shared.get("sku") or None
        cells["gtin"] = next(
            filter(None, (record.get(name) for record in (variant, shared) for name in ("gtin", "upc"))), None
        )
        cells["mpn"] = variant.get("mpn") or shared.get("mpn") or None
        return {**cells, **_stock(item, variant)}

    def _measure(self, name: str, value: Any) -> str | None:
        if not value or isinstance(value, (bool, list, dict)):
            return None
        known, stated = (_WEIGHTS, "weight_units") if name == "weight" else (_LENGTHS, "dimension_units")
        unit = known.get(str(self.units.get(stated)).lower())
        if unit is None:
            if name not in self._reported:
                self._reported.add(name)
                self._ctx.report(Report(f"the unit of {name} is not known: it is not used", None, name))
            return None
        return f"{value} {unit}"


def _stock(item: Item, variant: Item) -> dict[str, Cell]:
    """Return the availability, and the stock level if the store tracks it by variant, or for the only variant."""
    tracking = item.get("inventory_tracking")
    alone = len(_objects(item.get("variants"))) < 2
    level = None
    if tracking == "variant":
        level = variant.get("inventory_level")
    elif tracking == "product" and alone:
        level = item.get("inventory_level")
    word = item.get("availability")
    if word == "disabled" or variant.get("purchasing_disabled") is True:
        return {"inventory_level": level, "availability": "out_of_stock"}
    if word == "preorder":
        return {"inventory_level": level, "availability": "preorder"}
    return {"inventory_level": level, "availability": "in_stock" if tracking == "none" else None}


def _objects(values: Any) -> list[Item]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _axes(values: Any) -> dict[str, Any] | None:
    axes = {
        str(one["option_display_name"]): one["label"]
        for one in _objects(values)
        if one.get("option_display_name") and one.get("label")
    }
    return axes or None


def _images(values: Any) -> list[Any] | None:
    """Return the images, the thumbnail first, the others in their order."""
    found = [one for one in _objects(values) if one.get("url_zoom") or one.get("url_standard")]
    found.sort(key=lambda one: (not one.get("is_thumbnail"), _place(one)))
    return [
        {
            "url": one.get("url_zoom") or one["url_standard"],
            **({"alt": one["description"]} if one.get("description") else {}),
        }
        for one in found
    ] or None


def _place(image: Item) -> int:
    place = image.get("sort_order")
    return place if isinstance(place, int) else 0


def _fields(values: Any) -> list[Any] | None:
    return [f"{one['name']}: {one.get('value')}" for one in _objects(values) if one.get("name")] or None
