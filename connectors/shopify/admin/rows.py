"""Conversion of the lines of a bulk operation's file to rows with known fields, each line on its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.tables import Cell, Report, Row, Table

Line = dict[str, Any]

SHOP_KEY = "joinery_shop"
"""Key in the first line of a snapshot, whose value contains the shop's currency and the stream."""
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
_MAX_ITEMS = 3_000_000


def read_admin_tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the only table of a snapshot of the Admin API, with the catalogue or with stock. Raises BadData."""
    if not path.stat().st_size:
        raise BadData("the file is empty")
    is_stock = _is_stock(ctx, path)
    columns = STOCK if is_stock else CATALOGUE
    yield Table(
        sheet=None,
        headers=tuple(header for header, _ in columns),
        rows=_iterate_stock_rows(ctx, path) if is_stock else _iterate_catalogue_rows(ctx, path),
        fields=tuple(field for _, field in columns),
    )


def _iterate_lines(ctx: Context, path: Path) -> Iterator[tuple[int, Line]]:
    """Yield number and content of each line of the bulk operation's file.

    Reports a difference between the number of objects that the shop stated and the number of lines.
    """
    stated, count = _read_shop(ctx, path).get("objects"), 0
    for number, line in json_records.iterate_lines(path, None, ctx.limits, ctx.report):
        if SHOP_KEY not in line:
            count += 1
            yield number, line
    if isinstance(stated, int) and stated != count:
        ctx.report(Report(f"the shop counted {stated:,} objects for its file, but {count:,} were received"))


def _read_shop(ctx: Context, path: Path) -> Line:
    _, first = next(json_records.iterate_lines(path, None, ctx.limits), (0, {}))
    found = first.get(SHOP_KEY)
    if not isinstance(found, dict):
        raise BadData("the stored file is not a response of Shopify's Admin API")
    return found


def _is_stock(ctx: Context, path: Path) -> bool:
    return _read_shop(ctx, path).get("stream") == "stock"


def _iterate_catalogue_rows(ctx: Context, path: Path) -> Iterator[Row]:
    currency = _read_shop(ctx, path).get("currency") or ctx.config.get("currency")
    index_by_header = {header: index for index, (header, _) in enumerate(CATALOGUE)}
    for number, line in _iterate_lines(ctx, path):
        kind = _parse_gid_type(line.get("id"))
        if kind == "Product":
            found = _convert_product(line)
        elif kind == "ProductVariant":
            found = {**_convert_variant(line, currency), "product.id": _parse_gid_number(line.get("__parentId"))}
        elif "mediaContentType" in line:
            found = {"media": _convert_media(line), "product.id": _parse_gid_number(line.get("__parentId"))}
        else:
            ctx.report(Report("a line of the shop's file is neither a product, a variant nor an image", number))
            continue
        if not found["product.id"]:
            ctx.report(Report("a line of the shop's file names no product; it is ignored", number))
            continue
        cells: list[Cell] = [None] * len(CATALOGUE)
        for header, cell in found.items():
            cells[index_by_header[header]] = cell
        yield number, cells


def _convert_product(line: Line) -> dict[str, Cell]:
    category = line.get("category")
    kind = line.get("productType")
    return {
        "product.id": _parse_gid_number(line.get("id")),
        "title": line.get("title"),
        "descriptionHtml": line.get("descriptionHtml"),
        "vendor": line.get("vendor"),
        "productType": [kind] if isinstance(kind, str) and kind.strip() else None,
        "category.fullName": category.get("fullName") if isinstance(category, dict) else None,
        "tags": line.get("tags") or None,
    }


def _convert_variant(line: Line, currency: Any) -> dict[str, Cell]:
    title = line.get("title")
    item = line.get("inventoryItem")
    item = item if isinstance(item, dict) else {}
    available = line.get("availableForSale")
    return {
        "variant.id": _parse_gid_number(line.get("id")),
        "variant.title": None if title == _NO_OPTION else title,
        "sku": line.get("sku"),
        "barcode": line.get("barcode"),
        "selectedOptions": _convert_options(line.get("selectedOptions")),
        "variant.image": _convert_image(line.get("image")),
        "weight": _format_weight(item.get("measurement")),
        "countryCodeOfOrigin": item.get("countryCodeOfOrigin"),
        "currencyCode": currency,
        "price": line.get("price"),
        "compareAtPrice": line.get("compareAtPrice"),
        "unitCost": item.get("unitCost"),
        "availableForSale": _convert_availability(available),
    }


def _convert_availability(available: Any) -> str | None:
    return ("in_stock" if available else "out_of_stock") if isinstance(available, bool) else None


def _convert_options(options: Any) -> dict[str, Any] | None:
    pairs = [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    axes = {str(pair["name"]): pair.get("value") for pair in pairs if pair.get("name") and pair.get("value")}
    return axes if axes and list(axes.values()) != [_NO_OPTION] else None


def _convert_image(image: Any) -> list[Any] | None:
    if not isinstance(image, dict) or not image.get("url"):
        return None
    return [{"url": image["url"], **({"alt": image["altText"]} if image.get("altText") else {})}]


def _convert_media(line: Line) -> list[Any] | None:
    """Return a list with the image in a line of a product's media; None for a line without image, such as a video."""
    image = line.get("image")
    return _convert_image({**image, "altText": line.get("alt")}) if isinstance(image, dict) else None


def _format_weight(measurement: Any) -> str | None:
    """Return the weight of a measurement with its unit as text; None for zero, the value of a weight not entered."""
    weight = measurement.get("weight") if isinstance(measurement, dict) else None
    if not isinstance(weight, dict) or not weight.get("value"):
        return None
    unit = _WEIGHTS.get(str(weight.get("unit")))
    return f"{weight['value']} {unit}" if unit else None


def _iterate_stock_rows(ctx: Context, path: Path) -> Iterator[Row]:
    """Yield one row per location of each item, and one row for each item whose stock the shop does not track."""
    items = _map_items_to_variants(ctx, path)
    for number, line in _iterate_lines(ctx, path):
        kind = _parse_gid_type(line.get("id"))
        if kind == "InventoryItem":
            variant = line.get("variant")
            if isinstance(variant, dict) and line.get("tracked") is False:
                availability = _convert_availability(variant.get("availableForSale"))
                yield number, [_parse_gid_number(variant.get("id")), line.get("sku"), None, None, None, availability]
        elif kind == "InventoryLevel":
            parent = items.get(_parse_gid_number(line.get("__parentId")) or "")
            if parent is not None:
                yield number, [parent, None, _find_location_name(line), *_convert_quantities(line), None]
        else:
            ctx.report(Report("a line of the shop's file is not a stock level", number))


def _map_items_to_variants(ctx: Context, path: Path) -> dict[str, str]:
    """Return the IDs of variants by the ID of their inventory item, for items whose stock the shop tracks."""
    # Lines with stock levels name only the item, and may precede the item's line.
    found: dict[str, str] = {}
    for _, line in _iterate_lines(ctx, path):
        variant = line.get("variant")
        if isinstance(variant, dict) and line.get("tracked") is not False:
            item, key = _parse_gid_number(line.get("id")), _parse_gid_number(variant.get("id"))
            if item and key:
                found[item] = key
        if len(found) > _MAX_ITEMS:
            raise BadData(f"the shop has more than {_MAX_ITEMS:,} items")
    return found


def _find_location_name(line: Line) -> str | None:
    location = line.get("location")
    return location.get("name") if isinstance(location, dict) else None


def _convert_quantities(line: Line) -> list[Cell]:
    quantities = line.get("quantities")
    quantity_by_name = (
        {one.get("name"): one.get("quantity") for one in quantities if isinstance(one, dict)}
        if isinstance(quantities, list)
        else {}
    )
    return [quantity_by_name.get("available"), quantity_by_name.get("incoming") or None]


def _parse_gid_type(gid: Any) -> str:
    """Return the type in a global ID of the Admin API, such as `Product` in `gid://shopify/Product/7`."""
    parts = gid.split("/") if isinstance(gid, str) else []
    return parts[3] if len(parts) > 4 and parts[0] == "gid:" else ""


def _parse_gid_number(gid: Any) -> str | None:
    """Return the number in a global ID of the Admin API, such as `7` in `gid://shopify/Product/7`, or None."""
    if not isinstance(gid, str) or "/" not in gid:
        return None
    return gid.rsplit("/", 1)[-1].partition("?")[0] or None
