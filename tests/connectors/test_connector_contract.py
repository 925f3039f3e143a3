"""Every built-in connector keeps what the kit promises of connectors."""

import json
from importlib import import_module
from pathlib import Path

from adapters.pluggy.allowlist import BUILT_IN
from adapters.pluggy.loader import load_plugins
from connectors.api.connector import SPEC as API
from connectors.csv.connector import SPEC as CSV
from connectors.sdk.testing import ConnectorContract, ConnectorExample, StockCheckItem, StubResponse
from connectors.shopify.connector import SPEC as SHOPIFY
from tests.connectors.test_json_ld import SOFA, page
from tests.connectors.test_merchant import RSS, item
from tests.connectors.test_x12 import PRICES, STOCK, interchange
from tests.connectors.workbook_writers import ods, xls, xlsb

SHOP = "https://shop.example/products.json?limit=250&page="


def product(number: int) -> dict[str, object]:
    """A product as a shop lists it, with two variants."""
    return {
        "id": number,
        "title": f"Sofa {number}",
        "body_html": "<p>Soft</p>",
        "vendor": "Maker",
        "product_type": "Sofas",
        "tags": ["soft"],
        "variants": [
            {"id": number * 10 + at, "title": colour, "option1": colour, "sku": f"S{number}-{at}", "price": "10.00",
             "compare_at_price": None, "grams": 4100, "available": at == 1}
            for at, colour in ((1, "Red"), (2, "Blue"))
        ],
        "images": [{"id": 5, "src": "https://cdn.example/a.jpg", "position": 1}],
        "options": [{"name": "Colour", "position": 1, "values": ["Red", "Blue"]}],
    }  # fmt: skip


class TestCsv(ConnectorContract):
    """The connector for files."""

    example = ConnectorExample(
        spec=CSV,
        config={"url": "https://files.example/stock.csv"},
        credentials={"username": "joiner", "password": "s3cret-word"},
        responses={
            "https://files.example/stock.csv": StubResponse(b"SKU,Qty\r\nA-1,3\r\nA-2,0\r\n", content_type="text/csv")
        },
        rows=2,
    )


class TestShopify(ConnectorContract):
    """The connector for Shopify shops."""

    example = ConnectorExample(
        spec=SHOPIFY,
        config={"url": "https://shop.example", "platform": "shopify", "currency": "usd"},
        responses={
            f"{SHOP}1": StubResponse(json.dumps({"products": [product(1)]}, indent=2).encode()),
            f"{SHOP}2": StubResponse(json.dumps({"products": [product(2)]}).encode()),
            f"{SHOP}3": StubResponse(b'{"products": []}'),
        },
        rows=4,
        item=StockCheckItem("1", "11", "S1-1"),
        stock_responses={
            "https://shop.example/variants/11.js": StubResponse(b'{"id": 11, "sku": "S1-1", "available": false}')
        },
    )


class TestApi(ConnectorContract):
    """The connector for JSON services."""

    example = ConnectorExample(
        spec=API,
        config={"url": "https://api.example/items", "paging": {"style": "page", "size": 2, "size_param": "n"}},
        credentials={"query": "key", "value": "s3cret-word"},
        responses={
            "https://api.example/items?n=2&page=1&key=s3cret-word": StubResponse(
                b'{"items": [{"sku": "A", "w": 1.50}]}'
            ),
            "https://api.example/items?n=2&page=2&key=s3cret-word": StubResponse(b'{"items": [{"sku": "B"}]}'),
            "https://api.example/items?n=2&page=3&key=s3cret-word": StubResponse(b'{"items": []}'),
        },
        rows=2,
    )


ADDRESS = "https://files.example/feed"
SHEET = {"Stock": [["SKU", "Qty"], ["A-1", 3], ["A-2", 0]]}


def file(content: bytes, rows: int, **config: str) -> ConnectorExample:
    """The connector for files over one file."""
    return ConnectorExample(
        spec=CSV, config={"url": ADDRESS, **config}, responses={ADDRESS: StubResponse(content)}, rows=rows
    )


class TestMerchant(ConnectorContract):
    """A Google Merchant feed."""

    example = file(RSS.format(item() * 2).encode(), 2, format="google_merchant")


class TestX12Prices(ConnectorContract):
    """An X12 price catalogue."""

    example = file(interchange(PRICES).encode(), 2)


class TestX12Stock(ConnectorContract):
    """X12 stock."""

    example = file(interchange(STOCK).encode(), 6)


class TestXls(ConnectorContract):
    """An old workbook."""

    example = file(xls(SHEET), 2)


class TestXlsb(ConnectorContract):
    """A binary workbook."""

    example = file(xlsb(SHEET), 2)


class TestOds(ConnectorContract):
    """An OpenDocument spreadsheet."""

    example = file(ods(SHEET), 2)


class TestSavedPage(ConnectorContract):
    """A web page with JSON-LD."""

    example = file(page(SOFA).encode(), 1, format="json_ld")


class TestCsvWithSemicolons(ConnectorContract):
    """A table as European spreadsheets write it."""

    example = file("SKU;Preis\r\nA-1;1.299,00\r\nA-2;49,90\r\n".encode("utf-16"), 2, decimal="comma")


class TestTabs(ConnectorContract):
    """A table with tabs, in Windows-1252."""

    example = file("SKU\tName\nA-1\tStühle\n".encode("cp1252"), 1)


class TestJsonLines(ConnectorContract):
    """JSON, a record a line."""

    example = file(b'{"sku": "A-1", "price": 49.90}\n{"sku": "A-2"}\n', 2)


class TestXml(ConnectorContract):
    """XML records."""

    example = file(b"<items><item><sku>A-1</sku></item><item><sku>A-2</sku></item></items>", 2)


def test_every_connector_that_is_shipped_is_held_to_the_suite() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.connectors.{path.stem}")
    proved = {
        suite.example.spec.name
        for suite in ConnectorContract.__subclasses__()
        if suite.__name__.startswith("Test") and suite.__module__.startswith("tests.connectors.")
    }
    assert set(load_plugins(BUILT_IN, release_version="1").connectors) <= proved
