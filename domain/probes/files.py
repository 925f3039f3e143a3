"""Detection of product lists and of data files in the responses of a website."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from domain.probes.facts import ProbeResponse
from domain.probes.model import Platform

MAX_LISTED_FIELDS = 100
"""Maximum number of fields that are listed for a product list; further fields are omitted."""
_MAX_INSPECTED = 50
_COMMON_LIST_NAMES = ("products", "items", "data", "results", "records", "value", "content", "entries")


@dataclass(frozen=True, slots=True)
class ProductListing:
    """Summary of a product list.

    Attributes:
        product_count: The number of products in the response, or None if unknown.
        total_count: The number of all products, if the response states it.
        fields: The fields that at least one product has.
        currency: The currency of the prices in lower case, or None.
    """

    product_count: int | None = None
    total_count: int | None = None
    fields: tuple[str, ...] = ()
    currency: str | None = None


NO_LISTING = ProductListing()
"""The summary of a file whose products are unknown."""


@dataclass(frozen=True, slots=True)
class ListEndpoint:
    """URL of the product list of a platform, relative to the site."""

    platform: Platform
    path: str
    query: str

    @property
    def signal_text(self) -> str:
        """The path, which is the text of the platform's PlatformSignal for a product list that responds."""
        return self.path


LIST_ENDPOINTS = (
    ListEndpoint(Platform.SHOPIFY, "/products.json", "limit=25"),
    ListEndpoint(Platform.WOOCOMMERCE, "/wp-json/wc/store/v1/products", "per_page=25"),
)
"""The product lists that a probe requests."""
SHOP_METADATA_PATH = "/meta.json"
"""The path of the metadata of a Shopify shop, with its currency and number of published products."""


def parse_listing(endpoint: ListEndpoint, response: ProbeResponse, value: Any) -> ProductListing | None:
    """Return the summary of the product list in a response; None if the response is not the platform's product list.

    Args:
        endpoint: The requested endpoint.
        response: The response.
        value: The JSON value of the response.
    """
    if not response.is_success:
        return None
    if endpoint.platform == Platform.SHOPIFY:
        value = value.get("products") if isinstance(value, dict) else None
        return _summarise_shopify_list(value) if _are_objects_with(value, "variants") else None
    return _summarise_woocommerce_list(response, value) if _are_objects_with(value, "prices") else None


def _are_objects_with(products: Any, name: str) -> TypeGuard[list[Any]]:
    """Return whether the value is a list of objects that all have the member `name`."""
    return isinstance(products, list) and all(isinstance(one, dict) and name in one for one in products)


def _summarise_shopify_list(products: list[Any]) -> ProductListing:
    """Return the summary of a product list of Shopify."""
    total = len(products) if len(products) < 25 else None
    return ProductListing(len(products), total, list_field_paths(products))


def _summarise_woocommerce_list(response: ProbeResponse, products: list[Any]) -> ProductListing:
    """Return the summary of a product list of WooCommerce."""
    header = response.headers.get("x-wp-total", "")
    total = int(header) if header.isdigit() and header.isascii() and len(header) < 10 else None
    currencies = {_parse_currency(one.get("prices")) for one in products[:_MAX_INSPECTED]} - {None}
    currency = currencies.pop() if len(currencies) == 1 else None
    return ProductListing(len(products), total, list_field_paths(products), currency)


def _parse_currency(prices: Any) -> str | None:
    """Return the currency of a WooCommerce price in lower case, or None."""
    code = prices.get("currency_code") if isinstance(prices, dict) else None
    return code.lower() if isinstance(code, str) and len(code) == 3 else None


def parse_shop_metadata(value: Any) -> ProductListing:
    """Return the number of products and the currency from the metadata (SHOP_METADATA_PATH) of a Shopify shop."""
    metadata = value if isinstance(value, dict) else {}
    total, currency = metadata.get("published_products_count"), metadata.get("currency")
    return ProductListing(
        total_count=total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
        currency=currency.lower() if isinstance(currency, str) and len(currency) == 3 else None,
    )


def extract_records(value: Any) -> list[Mapping[str, Any]]:
    """Return the records of a JSON document.

    These are the objects in its list, or in the list under a common name such as `products`.
    """
    if isinstance(value, dict):
        value = next((value[name] for name in _COMMON_LIST_NAMES if isinstance(value.get(name), list)), None)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def list_field_paths(products: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the paths of the fields that have a value in any of the first 50 products, in order of appearance.

    Nested objects are searched two levels deep.
    """
    found: dict[str, None] = {}
    for product in products[:_MAX_INSPECTED]:
        for path in _iterate_paths(product):
            if len(found) == MAX_LISTED_FIELDS:
                return tuple(found)
            found[path] = None
    return tuple(found)


def _iterate_paths(product: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the fields of a product that have a value, two levels deep."""
    for name, value in list(product.items())[:MAX_LISTED_FIELDS]:
        if not name.strip():
            continue
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            for part, inner_value in list(inner.items())[:MAX_LISTED_FIELDS]:
                if inner_value not in (None, "", [], {}):
                    yield f"{name}.{part}"[:60]
        elif value not in (None, "", [], {}):
            yield name[:60]


MAX_INSPECTED_BYTES = 256 * 1024
"""Maximum number of bytes of a file that are inspected."""
_GOOGLE = "http://base.google.com/ns/1.0"
_DELIMITERS = ",;\t|"
_ROWS = 20
_OTHER_SIGNATURES = (
    b"%PDF",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"Rar!",
    b"7z\xbc\xaf",
    b"\xd0\xcf\x11\xe0",
    b"wOF",
)
_OTHER_MEDIA_TYPES = (
    "image/",
    "video/",
    "audio/",
    "font/",
    "text/css",
    "text/javascript",
    "application/javascript",
)
_SITEMAPS = ("<urlset", "<sitemapindex")


@dataclass(frozen=True, slots=True)
class FeedFile:
    """Data file on the website.

    Attributes:
        format: The setting `config.format` with which a source reads the file; None if no source can read the file.
        listing: The summary of the products in the file.
        remedy: The advice to the user if no source can read the file, else an empty string.
    """

    format: str | None
    listing: ProductListing = NO_LISTING
    remedy: str = ""


def detect_file(response: ProbeResponse) -> FeedFile | None:
    """Return the data file that a response contains, detected by its content.

    None for errors, web pages, sitemaps, media files and content without records.
    """
    head = response.body[:MAX_INSPECTED_BYTES]
    if response.is_page or not head.strip() or not response.is_success:
        return None
    if head.startswith(_OTHER_SIGNATURES) or response.media_type.startswith(_OTHER_MEDIA_TYPES):
        return None
    if head.startswith(b"PK\x03\x04"):
        workbook = b"xl/" in head or b"[Content_Types].xml" in head or _path_ends_with(response, ".xlsx")
        return (
            FeedFile("xlsx")
            if workbook
            else FeedFile(
                None, remedy="The file is a zip archive. Ask the vendor to publish the contained file directly."
            )
        )
    if head.startswith(b"\x1f\x8b"):
        return FeedFile(
            None, remedy="The file is compressed with gzip. Ask the vendor to publish the file uncompressed."
        )
    text = head.decode("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    start = text.lstrip()
    if start.startswith("<"):
        return _detect_xml(start)
    if start.startswith(("{", "[")):
        return _detect_json(response, start)
    return _detect_delimited(response, text)


def is_sitemap(response: ProbeResponse) -> bool:
    """Return whether the response is a sitemap, according to its first bytes."""
    return any(element in response.body[:2048].decode("utf-8", "replace").lower() for element in _SITEMAPS)


def _path_ends_with(response: ProbeResponse, *suffixes: str) -> bool:
    """Return whether the path of a response's URL ends with one of the suffixes, which are in lower case."""
    return urlsplit(response.url).path.lower().endswith(suffixes)


def _detect_xml(text: str) -> FeedFile | None:
    """Return the data file for an XML text; None for a sitemap."""
    start = text[:8192]
    if any(element in start.lower() for element in _SITEMAPS):
        return None
    return FeedFile("google_merchant" if _GOOGLE in start else "xml")


def _detect_json(response: ProbeResponse, text: str) -> FeedFile | None:
    """Return the data file for a JSON or JSON Lines text; None without records."""
    first, _, rest = text.partition("\n")
    if rest.lstrip().startswith("{") and (value := _parse_json(first)) is not None:
        return FeedFile("jsonl", ProductListing(None, None, list_field_paths([value])))
    if not response.is_complete or len(response.body) > MAX_INSPECTED_BYTES:
        return FeedFile("json")
    records = extract_records(_parse_json(text))
    return FeedFile("json", ProductListing(len(records), len(records), list_field_paths(records))) if records else None


def _parse_json(text: str) -> Any:
    """Return the JSON value of a text, or None if the text is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _detect_delimited(response: ProbeResponse, text: str) -> FeedFile | None:
    """Return the data file for a delimited table, else None.

    The first lines of a table have the same number of columns, at least two.
    """
    lines = text.splitlines()
    has_all_lines = response.is_complete and len(response.body) <= MAX_INSPECTED_BYTES
    if "\0" in text or len(lines) < 2:
        return None
    for delimiter in sorted(_DELIMITERS, key=lines[0].count, reverse=True)[:2]:
        try:
            rows = [row for row in csv.reader(lines[: _ROWS + 1], delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        matching_rows = sum(len(row) == width for row in rows[1:-1] or rows[1:])
        if width > 1 and matching_rows >= 0.8 * len(rows[1:-1] or rows[1:]):
            headers = tuple(name.strip()[:60] for name in rows[0] if name.strip())[:100]
            count = sum(1 for line in lines[1:] if line.strip()) if has_all_lines else None
            return FeedFile("tsv" if delimiter == "\t" else "csv", ProductListing(count, count, headers))
    return None
