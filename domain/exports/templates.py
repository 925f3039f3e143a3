"""Formats of other systems: Shopify's product CSV and Google Merchant Center's XML (docs/exports.md#templates).

An item that lacks a value which the target requires is omitted and reported. No value is made up.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from domain.catalogue.categories import category_by_id
from domain.catalogue.model import Availability, ProductStatus
from domain.exports.columns import (
    Cell,
    Json,
    TableRow,
    convert_amount,
    convert_length,
    convert_weight,
    find_best_availability,
    list_images,
    split_rows,
)
from domain.exports.layout import ExportLayout, OmittedItem, RowLevel, UnitSystem

_PLACEHOLDER = re.compile(r"{(\w+)}")
LINK_PLACEHOLDERS: Final = (
    "handle",
    "sku",
    "gtin",
    "mpn",
    "product_id",
    "variant_id",
    "product_external_id",
    "variant_external_id",
)
"""Placeholders of `ExportLayout.link_template`."""
_BACKORDERED = (Availability.BACKORDER, Availability.PREORDER)


class ItemTemplate(Protocol):
    """Builder of the items of a file in the format of another system.

    Attributes:
        omitted: Items that the last call of `build_items` omitted.
    """

    omitted: list[OmittedItem]

    def build_items(self, product: Json) -> Iterator[Sequence[Any]]:
        """Yield the items of a product."""
        ...


def build_handle(product: Json) -> str:
    """Return the name of a product in Shopify, which identifies it there; it never changes, unlike a title."""
    return str(product["id"]).lower().replace("_", "-")


def find_template_error(template: str) -> str | None:
    """Return why an address with placeholders is invalid, or None."""
    try:
        parts = urlsplit(_PLACEHOLDER.sub("x", template))
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    except ValueError:
        is_web = False
    if not is_web or any(character <= " " for character in template):
        return "Enter an address that starts with https://."
    unknown = [name for name in _PLACEHOLDER.findall(template) if name not in LINK_PLACEHOLDERS]
    if unknown or "{" in _PLACEHOLDER.sub("", template) or "}" in _PLACEHOLDER.sub("", template):
        return f"Permitted placeholders are {', '.join('{' + name + '}' for name in LINK_PLACEHOLDERS)}."
    if not _PLACEHOLDER.search(template):
        return "The address needs a placeholder, such as {handle}, that differs between products."
    return None


def _omit(row: TableRow, reason: str) -> OmittedItem:
    variant = row.variants[0] if row.variants else {}
    data = variant.get("data", {})
    return OmittedItem(
        row.product["id"],
        variant.get("id"),
        data.get("sku"),
        row.product["data"].get("title") or data.get("title"),
        reason,
    )


def _find_cheapest_offer(row: TableRow, currency: str | None) -> Json | None:
    """Return the offer with the lowest selling price in a currency; None if no offer has one."""
    priced = [offer for offer in row.offers if "price" in offer and offer.get("currency") == currency]
    return min(priced, key=lambda offer: offer["price"], default=None)


SHOPIFY_COLUMNS: Final = (
    "Handle", "Title", "Body (HTML)", "Vendor", "Product Category", "Type", "Tags", "Published",
    "Option1 Name", "Option1 Value", "Option2 Name", "Option2 Value", "Option3 Name", "Option3 Value",
    "Variant SKU", "Variant Grams", "Variant Inventory Tracker", "Variant Inventory Qty", "Variant Inventory Policy",
    "Variant Fulfillment Service", "Variant Price", "Variant Compare At Price", "Variant Requires Shipping",
    "Variant Taxable", "Variant Barcode", "Image Src", "Image Position", "Image Alt Text", "Gift Card", "SEO Title",
    "SEO Description", "Variant Image", "Variant Weight Unit", "Variant Tax Code", "Cost per item", "Status",
)  # fmt: skip
"""Columns of Shopify's product CSV (Shopify Help Center, "Using CSV files to import and export products")."""
_MAX_OPTIONS = 3
_MAX_SHOPIFY_TITLE = 255
_MAX_IMAGES = 250


class ShopifyTemplate:
    """Rows of Shopify's product CSV: one for each variant, and further ones for further images of the product.

    Shopify accepts amounts in one currency only: that of the first item with a selling price.
    """

    def __init__(self, layout: ExportLayout) -> None:
        self._layout = layout
        self._currency: str | None = None
        self.omitted: list[OmittedItem] = []

    def build_items(self, product: Json) -> Iterator[list[Cell]]:
        """Yield the rows of a product."""
        self.omitted, rows = [], []
        title = product["data"].get("title")
        for row in split_rows(product, RowLevel.VARIANT, {}, self._layout.units):
            if not title:
                self.omitted.append(_omit(row, "The product has no title."))
            elif (offer := self._find_offer(row)) is None:
                self.omitted.append(_omit(row, self._describe_missing_price(row)))
            else:
                rows.append((row, offer))
        if not rows:
            return
        names, option_values = _build_options([row.variants[0] for row, _ in rows])
        images = list_images(TableRow(product, [row.variants[0] for row, _ in rows], ()))[:_MAX_IMAGES]
        alt_texts = _find_alt_texts(product)
        for number in range(max(len(rows), len(images))):
            cells: dict[str, Cell] = {"Handle": build_handle(product)}
            if number == 0:
                cells |= self._build_product_cells(product, names)
            if number < len(rows):
                for index, value in enumerate(option_values[number], 1):
                    cells[f"Option{index} Value"] = value
                cells |= self._build_variant_cells(*rows[number])
            if number < len(images):
                cells |= {"Image Src": images[number], "Image Position": number + 1}
                cells["Image Alt Text"] = alt_texts.get(images[number])
            yield [cells.get(column) for column in SHOPIFY_COLUMNS]

    def _find_offer(self, row: TableRow) -> Json | None:
        if not row.variants:
            return None
        if self._currency is None:
            self._currency = row.currency if _find_cheapest_offer(row, row.currency) else None
        return _find_cheapest_offer(row, self._currency) if self._currency else None

    def _describe_missing_price(self, row: TableRow) -> str:
        if not row.variants:
            return "The product has no variants."
        if self._currency and any("price" in offer for offer in row.offers):
            return f"The price is not in {self._currency.upper()}, the currency of the file."
        return "The variant has no price."

    def _build_product_cells(self, product: Json, option_names: Sequence[str]) -> Mapping[str, Cell]:
        data = product["data"]
        category = category_by_id().get(data.get("category", ""))
        is_discontinued = product["status"] == ProductStatus.DISCONTINUED
        return {
            "Title": data["title"][:_MAX_SHOPIFY_TITLE],
            "Body (HTML)": _build_html(data),
            "Vendor": data.get("brand"),
            "Type": category.name if category else None,
            "Tags": ", ".join(tag.replace(",", " ") for tag in data.get("tags", ())) or None,
            "Published": "TRUE",
            **{f"Option{index} Name": name for index, name in enumerate(option_names, 1)},
            "Gift Card": "FALSE",
            "Status": "archived" if is_discontinued else "active",
        }

    def _build_variant_cells(self, row: TableRow, offer: Json) -> Mapping[str, Cell]:
        variant, currency = row.variants[0], self._currency or ""
        data, weight = variant["data"], variant["data"].get("weight")
        quantities = [one["quantity"] for one in row.offers if "quantity" in one]
        compare_at = offer.get("compare_at")
        own_images = list_images(TableRow({**row.product, "data": {}}, row.variants, ()))
        return {
            "Variant SKU": data.get("sku"),
            "Variant Grams": int(convert_weight(weight, "kg") * 1000) if weight else None,
            "Variant Weight Unit": ("kg" if row.units == UnitSystem.METRIC else "lb") if weight else None,
            "Variant Inventory Tracker": "shopify" if quantities else None,
            "Variant Inventory Qty": sum(quantities) if quantities else None,
            "Variant Inventory Policy": "continue" if find_best_availability(row.offers) in _BACKORDERED else "deny",
            "Variant Fulfillment Service": "manual",
            "Variant Price": convert_amount(offer["price"], currency),
            "Variant Compare At Price": convert_amount(compare_at, currency)
            if compare_at is not None and compare_at > offer["price"]
            else None,
            "Variant Requires Shipping": "TRUE",
            "Variant Taxable": "TRUE",
            "Variant Barcode": data.get("gtin"),
            "Variant Image": own_images[0] if own_images else None,
            "Cost per item": row.find_lowest("cost", currency),
        }


def _build_options(variants: Sequence[Json]) -> tuple[list[str], list[list[str]]]:
    """Return the names of a product's options, and the values of each variant, which differ between variants.

    Shopify permits three options. Other variants, and those whose values are equal, have one option with their title.
    """
    if len(variants) == 1 and not variants[0]["data"].get("axes"):
        return ["Title"], [["Default Title"]]
    names = list(dict.fromkeys(name for variant in variants for name in variant["data"].get("axes", {})))
    values = [[str(variant["data"].get("axes", {}).get(name) or "n/a") for name in names] for variant in variants]
    if 0 < len(names) <= _MAX_OPTIONS and len({tuple(one) for one in values}) == len(values):
        return names, values
    titles = [_build_variant_title(variant) for variant in variants]
    counts = Counter(titles)
    return ["Variant"], [
        [title if counts[title] == 1 else f"{title} ({variant['id']})"]
        for title, variant in zip(titles, variants, strict=True)
    ]


def _build_variant_title(variant: Json) -> str:
    data = variant["data"]
    axes = " / ".join(map(str, data.get("axes", {}).values()))
    return str(data.get("title") or axes or data.get("sku") or variant["id"])


def _find_alt_texts(product: Json) -> Mapping[str, str]:
    data = (product["data"], *(variant["data"] for variant in product["variants"]))
    return {medium["url"]: medium["alt"] for one in data for medium in one.get("media", ()) if medium.get("alt")}


def _build_html(data: Json) -> str | None:
    """Return description and features as HTML, in which the texts are escaped."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", data.get("description") or "") if part.strip()]
    html = "".join("<p>" + escape(part).replace("\n", "<br>") + "</p>" for part in paragraphs)
    if features := data.get("features"):
        html += "<ul>" + "".join(f"<li>{escape(feature)}</li>" for feature in features) + "</ul>"
    return html or None


_GOOGLE_AVAILABILITIES: Final[Mapping[str, str]] = {
    Availability.IN_STOCK: "in_stock",
    Availability.LOW_STOCK: "in_stock",
    Availability.BACKORDER: "backorder",
    Availability.PREORDER: "preorder",
    Availability.OUT_OF_STOCK: "out_of_stock",
    Availability.DISCONTINUED: "out_of_stock",
}
_MAX_GOOGLE_TITLE, _MAX_GOOGLE_DESCRIPTION, _MAX_GOOGLE_LINK, _MAX_ADDITIONAL_IMAGES = 150, 5_000, 2_000, 10
_MAX_GOOGLE_TEXT = 100


class GoogleMerchantTemplate:
    """Items of Google Merchant Center's feed, one for each variant (Google Merchant Center Help, "Product data specification").

    An item is a list of names and texts of attributes.
    """

    def __init__(self, layout: ExportLayout) -> None:
        self._layout = layout
        self.omitted: list[OmittedItem] = []

    def build_items(self, product: Json) -> Iterator[list[tuple[str, str]]]:
        """Yield the items of a product."""
        self.omitted = []
        for row in split_rows(product, RowLevel.VARIANT, {}, self._layout.units):
            item = self._build_item(row)
            if isinstance(item, OmittedItem):
                self.omitted.append(item)
            else:
                yield [(name, str(value)) for name, value in item if value not in (None, "")]

    def _build_item(self, row: TableRow) -> list[tuple[str, Cell]] | OmittedItem:
        if not row.variants:
            return _omit(row, "The product has no variants.")
        product, variant = row.product["data"], row.variants[0]
        data = variant["data"]
        title = product.get("title") or data.get("title")
        if not title:
            return _omit(row, "The product has no title.")
        if not product.get("description"):
            return _omit(row, "The product has no description.")
        images = [image for image in list_images(row) if len(image) <= _MAX_GOOGLE_LINK]
        if not images:
            return _omit(row, "There is no image.")
        offer = _find_cheapest_offer(row, row.currency)
        if offer is None:
            return _omit(row, "There is no selling price.")
        availability = _GOOGLE_AVAILABILITIES.get(find_best_availability(row.offers) or "")
        if availability is None:
            return _omit(row, "The availability is unknown.")
        link = _fill_placeholders(self._layout.link_template or "", row)
        if link is None or len(link) > _MAX_GOOGLE_LINK:
            return _omit(row, "A value that the address of the product page contains is missing or too long.")
        available_at = min(
            (arrival["eta"] for one in row.offers for arrival in one.get("incoming", ()) if "eta" in arrival),
            default=None,
        )
        if availability in ("backorder", "preorder") and available_at is None:
            availability = "out_of_stock"  # Google requires the date for the others
        has_siblings = len(row.product["variants"]) > 1
        category = category_by_id().get(product.get("category", ""))
        currency, price, compare_at = offer["currency"], offer["price"], offer.get("compare_at") or 0
        is_reduced = compare_at > price
        return [
            ("id", variant["id"]),
            ("title", _build_google_title(title, variant if has_siblings else None)),
            ("description", product["description"][:_MAX_GOOGLE_DESCRIPTION]),
            ("link", link),
            ("image_link", images[0]),
            *(("additional_image_link", image) for image in images[1 : 1 + _MAX_ADDITIONAL_IMAGES]),
            ("availability", availability),
            ("availability_date", f"{available_at}T00:00Z" if availability in ("backorder", "preorder") else None),
            ("price", _format_price(compare_at if is_reduced else price, currency)),
            ("sale_price", _format_price(price, currency) if is_reduced else None),
            ("condition", "new"),
            ("brand", (product.get("brand") or "")[:70]),
            ("gtin", data.get("gtin")),
            ("mpn", (data.get("mpn") or "")[:70]),
            ("identifier_exists", None if data.get("gtin") or (data.get("mpn") and product.get("brand")) else "no"),
            ("item_group_id", row.product["id"] if has_siblings else None),
            ("google_product_category", category.google if category else None),
            ("product_type", " > ".join(category.path) if category else " > ".join(product.get("category_path", ()))),
            ("color", (data.get("colour") or "")[:_MAX_GOOGLE_TEXT]),
            ("material", "/".join(data.get("materials", ())[:3])[:200]),
            ("size", _find_axis(data, "size", "größe")[:_MAX_GOOGLE_TEXT]),
            *self._build_measures(data),
        ]

    def _build_measures(self, data: Json) -> Iterator[tuple[str, Cell]]:
        length, weight = ("cm", "kg") if self._layout.units == UnitSystem.METRIC else ("in", "lb")
        dimensions = data.get("dimensions", {})
        for attribute, name in (("product_length", "depth"), ("product_width", "width"), ("product_height", "height")):
            if name in dimensions:
                yield attribute, f"{convert_length(dimensions[name], length):f} {length}"
        if "weight" in data:
            yield "shipping_weight", f"{convert_weight(data['weight'], weight):f} {weight}"


def _build_google_title(title: str, variant: Json | None) -> str:
    """Return the title of an item, with what distinguishes the variant from its siblings if there are any."""
    suffix = "" if variant is None else f", {_build_variant_title(variant)}"
    return f"{title[: _MAX_GOOGLE_TITLE - len(suffix[:70])]}{suffix[:70]}"


def _format_price(amount: int, currency: str) -> str:
    return f"{convert_amount(amount, currency):f} {currency.upper()}"


def _find_axis(data: Json, *names: str) -> str:
    return next((str(value) for name, value in data.get("axes", {}).items() if name.lower() in names), "")


def _fill_placeholders(template: str, row: TableRow) -> str | None:
    """Return the address of a variant's page; None if a value of it is missing."""
    variant = row.variants[0]
    values: dict[str, Any] = {
        "handle": build_handle(row.product),
        "product_id": row.product["id"],
        "product_external_id": row.product.get("external_id"),
        "variant_id": variant["id"],
        "variant_external_id": variant.get("external_id"),
        **{name: variant["data"].get(name) for name in ("sku", "gtin", "mpn")},
    }
    if not all(values.get(name) for name in _PLACEHOLDER.findall(template)):
        return None
    return _PLACEHOLDER.sub(lambda match: quote(str(values[match[1]]), safe=""), template)
