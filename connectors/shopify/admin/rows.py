"""Conversion of a bulk operation's lines to rows, each by itself, as children need not follow their parents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.tables import Cell, Report, Row, Table

Line = dict[str, Any]

SHOP = "joinery_shop"
"""The key of the first line of a snapshot, which holds the shop's currency."""
CATALOGUE: tuple[tuple[str, str | None], ...] = (
    ("product.id", "product_key"),
    ("title", "title"),
    ("descriptionHtml", "description"),
    ("vendor", "brand"),
    ("productType", "category_path"),
    ("category.fullName", "google_category"),
    ("tags", "tags"),
    ("media", "media"),
    ("variant.id", "variant_key"),
    ("variant.title", "variant_title"),
    ("sku", "sku"),
    ("barcode", "gtin"),
    ("selectedOptions", "axes"),
    ("variant.image", "variant_media"),
    ("weight", "weight"),
    ("countryCodeOfOrigin", "compliance.country_of_origin"),
    ("currencyCode", "currency"),
    ("price", "price"),
    ("compareAtPrice", "compare_at"),
    ("unitCost", "cost"),
    ("availableForSale", "availability"),
)
STOCK: tuple[tuple[str, str | None], ...] = (
    ("variant.id", "variant_key"),
    ("sku", "sku"),
    ("location", "location"),
    ("available", "quantity"),
    ("incoming", "incoming.0.quantity"),
    ("availableForSale", "availability"),
)
_WEIGHTS = {"KILOGRAMS": "kg", "GRAMS": "g", "POUNDS": "lb", "OUNCES": "oz"}
_NO_OPTION = "Default Title"
_MOST_ITEMS = 3_000_000


def tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the one table of a snapshot, of the catalogue or of stock. Raises BadData."""
    if not path.stat().st_size:
        raise BadData("the file is empty")
    stock = _is_stock(ctx, path)
    columns = STOCK if stock else CATALOGUE
    yield Table(
        sheet=None,
        headers=tuple(header for header, _ in columns),
        rows=_stock_rows(ctx, path) if stock else _catalogue_rows(ctx, path),
        given=tuple(field for _, field in columns),
    )


def _lines(ctx: Context, path: Path) -> Iterator[tuple[int, Line]]:
    """Yield the lines without the header line, numbered as in the file, and report a wrong count."""
    stated, count = _shop(ctx, path).get("objects"), 0
    for number, line in json_records.lines(path, None, ctx.limits, ctx.report):
        if SHOP not in line:
            count += 1
            yield number, line
    if isinstance(stated, int) and stated != count:
        ctx.report(Report(f"the shop counted {stated:,} objects for its file, {count:,} were received"))


def _shop(ctx: Context, path: Path) -> Line:
    _, first = next(json_records.lines(path, None, ctx.limits), (0, {}))
    found = first.get(SHOP)
    if not isinstance(found, dict):
        raise BadData("this is not a snapshot of a shop's Admin API")
    return found


def _is_stock(ctx: Context, path: Path) -> bool:
    return _shop(ctx, path).get("stream") == "stock"


def _catalogue_rows(ctx: Context, path: Path) -> Iterator[Row]:
    currency = _shop(ctx, path).get("currency") or ctx.config.get("currency")
    places = {header: place for place, (header, _) in enumerate(CATALOGUE)}
    for number, line in _lines(ctx, path):
        kind = _kind(line.get("id"))
        if kind == "Product":
            found = _product(line)
        elif kind == "ProductVariant":
            found = {**_variant(line, currency), "product.id": _number(line.get("__parentId"))}
        elif "mediaContentType" in line:
            found = {"media": _media(line), "product.id": _number(line.get("__parentId"))}
        else:
            ctx.report(Report("a line of the shop's file is neither product, variant nor picture", number))
            continue
        if not found["product.id"]:
            ctx.report(Report("a line of the shop's file names no product that it belongs to; it is left out", number))
            continue
        cells: list[Cell] = [None] * len(CATALOGUE)
        for header, cell in found.items():
            cells[places[header]] = cell
        yield number, cells


def _product(line: Line) -> dict[str, Cell]:
    category = line.get("category")
    kind = line.get("productType")
    return {
        "product.id": _number(line.get("id")),
        "title": line.get("title"),
        "descriptionHtml": line.get("descriptionHtml"),
        "vendor": line.get("vendor"),
        "productType": [kind] if isinstance(kind, str) and kind.strip() else None,
        "category.fullName": category.get("fullName") if isinstance(category, dict) else None,
        "tags": line.get("tags") or None,
    }


def _variant(line: Line, currency: Any) -> dict[str, Cell]:
    title = line.get("title")
    item = line.get("inventoryItem")
    item = item if isinstance(item, dict) else {}
    available = line.get("availableForSale")
    return {
        "variant.id": _number(line.get("id")),
        "variant.title": None if title == _NO_OPTION else title,
        "sku": line.get("sku"),
        "barcode": line.get("barcode"),
        "selectedOptions": _axes(line.get("selectedOptions")),
        "variant.image": _image(line.get("image")),
        "weight": _weight(item.get("measurement")),
        "countryCodeOfOrigin": item.get("countryCodeOfOrigin"),
        "currencyCode": currency,
        "price": line.get("price"),
        "compareAtPrice": line.get("compareAtPrice"),
        "unitCost": item.get("unitCost"),
        "availableForSale": _availability(available),
    }


def _availability(available: Any) -> str | None:
    return ("in_stock" if available else "out_of_stock") if isinstance(available, bool) else None


def _axes(options: Any) -> dict[str, Any] | None:
    pairs = [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    axes = {str(pair["name"]): pair.get("value") for pair in pairs if pair.get("name") and pair.get("value")}
    return axes if axes and list(axes.values()) != [_NO_OPTION] else None


def _image(image: Any) -> list[Any] | None:
    if not isinstance(image, dict) or not image.get("url"):
        return None
    return [{"url": image["url"], **({"alt": image["altText"]} if image.get("altText") else {})}]


def _media(line: Line) -> list[Any] | None:
    """Return an image; videos and models have addresses of other kinds, which are ignored."""
    image = line.get("image")
    return _image({**image, "altText": line.get("alt")}) if isinstance(image, dict) else None


def _weight(measurement: Any) -> str | None:
    """Return a weight with its unit; zero means that it was not entered."""
    weight = measurement.get("weight") if isinstance(measurement, dict) else None
    if not isinstance(weight, dict) or not weight.get("value"):
        return None
    unit = _WEIGHTS.get(str(weight.get("unit")))
    return f"{weight['value']} {unit}" if unit else None


def _stock_rows(ctx: Context, path: Path) -> Iterator[Row]:
    """Yield a row for each item and location, and one for each untracked item."""
    items = _items(ctx, path)
    for number, line in _lines(ctx, path):
        kind = _kind(line.get("id"))
        if kind == "InventoryItem":
            variant = line.get("variant")
            if isinstance(variant, dict) and line.get("tracked") is False:
                availability = _availability(variant.get("availableForSale"))
                yield number, [_number(variant.get("id")), line.get("sku"), None, None, None, availability]
        elif kind == "InventoryLevel":
            parent = items.get(_number(line.get("__parentId")) or "")
            if parent is not None:
                yield number, [parent, None, _place(line), *_quantities(line), None]
        else:
            ctx.report(Report("a line of the shop's file is not a stock level", number))


def _items(ctx: Context, path: Path) -> dict[str, str]:
    """Return each tracked item's variant. Levels name only their item, and may precede it."""
    found: dict[str, str] = {}
    for _, line in _lines(ctx, path):
        variant = line.get("variant")
        if isinstance(variant, dict) and line.get("tracked") is not False:
            item, key = _number(line.get("id")), _number(variant.get("id"))
            if item and key:
                found[item] = key
        if len(found) > _MOST_ITEMS:
            raise BadData(f"the shop has more than {_MOST_ITEMS:,} items")
    return found


def _place(line: Line) -> str | None:
    location = line.get("location")
    return location.get("name") if isinstance(location, dict) else None


def _quantities(line: Line) -> list[Cell]:
    listed = line.get("quantities")
    given = (
        {one.get("name"): one.get("quantity") for one in listed if isinstance(one, dict)}
        if isinstance(listed, list)
        else {}
    )
    return [given.get("available"), given.get("incoming") or None]


def _kind(gid: Any) -> str:
    """Return the type in a global ID (`gid://shopify/Product/7`)."""
    parts = gid.split("/") if isinstance(gid, str) else []
    return parts[3] if len(parts) > 4 and parts[0] == "gid:" else ""


def _number(gid: Any) -> str | None:
    """Return the number in a global ID, which is the ID in the public list."""
    if not isinstance(gid, str) or "/" not in gid:
        return None
    return gid.rsplit("/", 1)[-1].partition("?")[0] or None
