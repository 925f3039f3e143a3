"""Every file format from the upload through reader and database to the catalogue."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.connectors.test_json_ld import SOFA, build_page
from tests.connectors.test_merchant import RSS, build_item
from tests.connectors.test_x12 import PRICES, STOCK, build_interchange
from tests.connectors.workbook_writers import build_ods, build_xls, build_xlsb
from tests.flows.in_process_service import InProcessService, open_service

pytestmark = pytest.mark.asyncio
ROWS = [["SKU", "Title", "Price", "Qty"], ["A-1", "Chair", 19.5, 3], ["A-2", "Sofa", 900, 0]]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


@pytest.mark.parametrize("kind", ["xls", "xlsb", "ods"])
async def test_workbooks(service: InProcessService, kind: str) -> None:
    make = {"xls": build_xls, "xlsb": build_xlsb, "ods": build_ods}[kind]
    run = await service.import_file(gzip.compress(make({"Stock": ROWS})))
    assert run["status"] == "succeeded", run["error"]
    assert sorted(data["title"] for data in await service.list_product_data()) == ["Chair", "Sofa"]


async def test_prices_and_then_stock_by_edi(service: InProcessService) -> None:
    """An 832 creates the products; the following 846 states their stock by warehouse and creates none."""
    source = await service.create_source("file", config={"currency": "usd"})
    run = await service.import_file(build_interchange(PRICES).encode(), source)
    assert run["status"] == "succeeded", run["error"]
    assert run["stats"]["products_created"] == 2
    run = await service.import_file(build_interchange(STOCK).encode(), source)
    assert run["status"] == "succeeded", run["error"]
    assert "products_created" not in run["stats"]
    offers = (await service.client.get("/v1/offers?limit=100")).json()["data"]
    assert {(offer["location"], offer.get("quantity")) for offer in offers} >= {("E1", 8), ("E1", 0)}, offers


async def test_a_merchant_feed(service: InProcessService) -> None:
    run = await service.import_file(RSS.format(build_item()).encode(), currency="eur")
    assert run["status"] == "succeeded", run["error"]
    (data,) = await service.list_product_data()
    assert (data["title"], data["category_path"]) == ("Sofa Ada, oak", ["Living", "Sofas"])


async def test_a_saved_page(service: InProcessService) -> None:
    run = await service.import_file(build_page({**SOFA, "weight": 41}).encode(), format="json_ld")
    assert run["status"] == "succeeded", run["error"]
    assert [data["title"] for data in await service.list_product_data()] == ["Sofa Ada"]
    assert any("unit" in problem["detail"] for problem in run["problems"])
