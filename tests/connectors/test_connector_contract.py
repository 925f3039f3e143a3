"""Contract tests of all built-in connectors."""

import json
from importlib import import_module
from pathlib import Path

from adapters.pluggy.allowlist import BUILT_IN
from adapters.pluggy.loader import load_plugins
from connectors.api.connector import SPEC as API
from connectors.csv.connector import SPEC as CSV
from connectors.sdk.testing import ConnectorContract, ConnectorExample, StockCheckItem, StubResponse
from connectors.shopify.connector import SPEC as SHOPIFY
from tests.connectors.test_json_ld import SOFA, build_page
from tests.connectors.test_merchant import RSS, build_item
from tests.connectors.test_x12 import PRICES, STOCK, build_interchange
from tests.connectors.workbook_writers import build_ods, build_xls, build_xlsb

SHOP = "https://shop.example/products.json?limit=250&page="


def build_product(number: int) -> dict[str, object]:
    """Return a product of a shop with two variants."""
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
            f"{SHOP}1": StubResponse(json.dumps({"products": [build_product(1)]}, indent=2).encode()),
            f"{SHOP}2": StubResponse(json.dumps({"products": [build_product(2)]}).encode()),
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


def build_file_example(content: bytes, rows: int, **config: str) -> ConnectorExample:
    """Return the example of the file connector with one file."""
    return ConnectorExample(
        spec=CSV, config={"url": ADDRESS, **config}, responses={ADDRESS: StubResponse(content)}, rows=rows
    )


class TestMerchant(ConnectorContract):
    """A Google Merchant feed."""

    example = build_file_example(RSS.format(build_item() * 2).encode(), 2, format="google_merchant")


class TestX12Prices(ConnectorContract):
    """An X12 price catalogue."""

    example = build_file_example(build_interchange(PRICES).encode(), 2)


class TestX12Stock(ConnectorContract):
    """X12 stock."""

    example = build_file_example(build_interchange(STOCK).encode(), 6)


class TestXls(ConnectorContract):
    """An old workbook."""

    example = build_file_example(build_xls(SHEET), 2)


class TestXlsb(ConnectorContract):
    """A binary workbook."""

    example = build_file_example(build_xlsb(SHEET), 2)


class TestOds(ConnectorContract):
    """An OpenDocument spreadsheet."""

    example = build_file_example(build_ods(SHEET), 2)


class TestSavedPage(ConnectorContract):
    """A web page with JSON-LD."""

    example = build_file_example(build_page(SOFA).encode(), 1, format="json_ld")


class TestCsvWithSemicolons(ConnectorContract):
    """A table as European spreadsheets write it."""

    example = build_file_example("SKU;Preis\r\nA-1;1.299,00\r\nA-2;49,90\r\n".encode("utf-16"), 2, decimal="comma")


class TestTabs(ConnectorContract):
    """A table with tabs, in Windows-1252."""

    example = build_file_example("SKU\tName\nA-1\tStühle\n".encode("cp1252"), 1)


class TestJsonLines(ConnectorContract):
    """JSON, a record a line."""

    example = build_file_example(b'{"sku": "A-1", "price": 49.90}\n{"sku": "A-2"}\n', 2)


class TestXml(ConnectorContract):
    """XML records."""

    example = build_file_example(b"<items><item><sku>A-1</sku></item><item><sku>A-2</sku></item></items>", 2)


def test_every_built_in_connector_has_a_contract_test() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.connectors.{path.stem}")
    proved = {
        suite.example.spec.name
        for suite in ConnectorContract.__subclasses__()
        if suite.__name__.startswith("Test") and suite.__module__.startswith("tests.connectors.")
    }
    assert set(load_plugins(BUILT_IN, release_version="1").connectors) <= proved
