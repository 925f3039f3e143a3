"""Product lists and files that a website offers."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from domain.probes.facts import Response
from domain.probes.model import Platform

MOST_FIELDS = 100
_LOOKED_AT = 50
_USUAL = ("products", "items", "data", "results", "records", "value", "content", "entries")


@dataclass(frozen=True, slots=True)
class Listing:
    """The products of a response, the total number if stated, and the fields with a value in any product."""

    products: int | None = None
    total: int | None = None
    fields: tuple[str, ...] = ()
    currency: str | None = None


NOTHING = Listing()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The product list of a platform; `signal` is its name as evidence."""

    platform: Platform
    path: str
    query: str

    @property
    def signal(self) -> str:
        """The path, as evidence names it."""
        return self.path


ENDPOINTS = (
    Endpoint(Platform.SHOPIFY, "/products.json", "limit=25"),
    Endpoint(Platform.WOOCOMMERCE, "/wp-json/wc/store/v1/products", "per_page=25"),
)
SHOP = "/meta.json"
"""The path where a Shopify shop states its currency and its number of published products."""


def listing(endpoint: Endpoint, response: Response, value: Any) -> Listing | None:
    """Parse the product list of a platform; return None for any other response."""
    if not response.is_good:
        return None
    if endpoint.platform == Platform.SHOPIFY:
        value = value.get("products") if isinstance(value, dict) else None
        return _shopify(value) if _all_have(value, "variants") else None
    return _woocommerce(response, value) if _all_have(value, "prices") else None


def _all_have(products: Any, name: str) -> TypeGuard[list[Any]]:
    return isinstance(products, list) and all(isinstance(one, dict) and name in one for one in products)


def _shopify(products: list[Any]) -> Listing:
    total = len(products) if len(products) < 25 else None
    return Listing(len(products), total, fields_of(products))


def _woocommerce(response: Response, products: list[Any]) -> Listing:
    told = response.headers.get("x-wp-total", "")
    total = int(told) if told.isdigit() and told.isascii() and len(told) < 10 else None
    currencies = {_currency(one.get("prices")) for one in products[:_LOOKED_AT]} - {None}
    currency = currencies.pop() if len(currencies) == 1 else None
    return Listing(len(products), total, fields_of(products), currency)


def _currency(prices: Any) -> str | None:
    code = prices.get("currency_code") if isinstance(prices, dict) else None
    return code.lower() if isinstance(code, str) and len(code) == 3 else None


def shop(value: Any) -> Listing:
    """Parse a Shopify shop's /meta.json: the number of products, and the currency."""
    told = value if isinstance(value, dict) else {}
    total, currency = told.get("published_products_count"), told.get("currency")
    return Listing(
        total=total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
        currency=currency.lower() if isinstance(currency, str) and len(currency) == 3 else None,
    )


def records_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the records of a JSON document: the items of its list, or of the list under a common name."""
    if isinstance(value, dict):
        value = next((value[name] for name in _USUAL if isinstance(value.get(name), list)), None)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def fields_of(products: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the paths with a value in any of the products, two levels deep, in order of appearance."""
    found: dict[str, None] = {}
    for product in products[:_LOOKED_AT]:
        for path in _paths(product):
            if len(found) == MOST_FIELDS:
                return tuple(found)
            found[path] = None
    return tuple(found)


def _paths(product: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(product.items())[:MOST_FIELDS]:
        if not name.strip():
            continue
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            for part, below in list(inner.items())[:MOST_FIELDS]:
                if below not in (None, "", [], {}):
                    yield f"{name}.{part}"[:60]
        elif value not in (None, "", [], {}):
            yield name[:60]


HEAD = 256 * 1024
"""Bytes of a file that are inspected."""
_GOOGLE = "http://base.google.com/ns/1.0"
_DELIMITERS = ",;\t|"
_ROWS = 20
_NO_TABLES = (
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
_NO_TABLE_TYPES = (
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
class File:
    """A file and the `config.format` that reads it; None if no source can read it as it is, with the `remedy`."""

    format: str | None
    listing: Listing = NOTHING
    remedy: str = ""


def recognised(response: Response) -> File | None:
    """Detect the file format of a response by its content; return None for pages, sitemaps and content without records."""
    head = response.body[:HEAD]
    if response.is_page or not head.strip() or not response.is_good:
        return None
    if head.startswith(_NO_TABLES) or response.media_type.startswith(_NO_TABLE_TYPES):
        return None
    if head.startswith(b"PK\x03\x04"):
        workbook = b"xl/" in head or b"[Content_Types].xml" in head or _ends(response, ".xlsx")
        return File("xlsx") if workbook else File(None, remedy="It is a zip archive: publish the file inside it.")
    if head.startswith(b"\x1f\x8b"):
        return File(None, remedy="It is packed with gzip: publish the file unpacked.")
    text = head.decode("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    start = text.lstrip()
    if start.startswith("<"):
        return _xml(start)
    if start.startswith(("{", "[")):
        return _json(response, start)
    return _delimited(response, text)


def is_sitemap(response: Response) -> bool:
    """Return whether the response is a sitemap, by its first element."""
    return any(element in response.body[:2048].decode("utf-8", "replace").lower() for element in _SITEMAPS)


def _ends(response: Response, *names: str) -> bool:
    return urlsplit(response.url).path.lower().endswith(names)


def _xml(text: str) -> File | None:
    start = text[:8192]
    if any(element in start.lower() for element in _SITEMAPS):
        return None
    return File("google_merchant" if _GOOGLE in start else "xml")


def _json(response: Response, text: str) -> File | None:
    first, _, rest = text.partition("\n")
    if rest.lstrip().startswith("{") and (value := _value(first)) is not None:
        return File("jsonl", Listing(None, None, fields_of([value])))
    if not response.whole or len(response.body) > HEAD:
        return File("json")
    records = records_in(_value(text))
    return File("json", Listing(len(records), len(records), fields_of(records))) if records else None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _delimited(response: Response, text: str) -> File | None:
    """Detect a delimited table: at least two columns, with the same number in the first lines."""
    lines = text.splitlines()
    whole = response.whole and len(response.body) <= HEAD
    if "\0" in text or len(lines) < 2:
        return None
    for delimiter in sorted(_DELIMITERS, key=lines[0].count, reverse=True)[:2]:
        try:
            rows = [row for row in csv.reader(lines[: _ROWS + 1], delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        alike = sum(len(row) == width for row in rows[1:-1] or rows[1:])
        if width > 1 and alike >= 0.8 * len(rows[1:-1] or rows[1:]):
            heads = tuple(name.strip()[:60] for name in rows[0] if name.strip())[:100]
            count = sum(1 for line in lines[1:] if line.strip()) if whole else None
            return File("tsv" if delimiter == "\t" else "csv", Listing(count, count, heads))
    return None
