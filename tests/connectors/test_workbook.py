"""XLSX workbooks: displayed values of cells, without formulas, links or macros."""

import io
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest

from connectors.sdk import BadData, Limits

Workbook: Any = pytest.importorskip("openpyxl").Workbook


def build_workbook(fill: Callable[[Any], object]) -> bytes:
    """Return a workbook whose first worksheet `fill` fills."""
    book = Workbook()
    fill(book.active)
    return save_workbook(book)


def save_workbook(book: Workbook) -> bytes:
    """Return the bytes of the workbook."""
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def repack_workbook(content: bytes, **changed: bytes) -> bytes:
    """Return the workbook with parts replaced or added; keys are names with __ for / and _ for a dot."""
    buffer = io.BytesIO()
    names = {name.replace("__", "/").replace("_", "."): part for name, part in changed.items()}
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if entry.filename not in names:
                new.writestr(entry.filename, old.read(entry))
        for name, part in names.items():
            new.writestr(name, part)
    return buffer.getvalue()


def test_values_are_exact_text(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["SKU", "UPC", "Price", "Listed", "Updated", "Active", "Weight"])
        sheet.append(["007", 4251090000000.0, 12.5, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4), True, 0.0000001])
        sheet.append([101.0, "0012345678905", 1234567.89, None, None, False, 3])

    headers, rows = reader.read_table(build_workbook(fill))
    assert headers == ("SKU", "UPC", "Price", "Listed", "Updated", "Active", "Weight")
    assert rows == [
        (2, ["007", "4251090000000", "12.5", "2026-01-02", "2026-01-02 03:04:00", "TRUE", "0.0000001"]),
        (3, ["101", "0012345678905", "1234567.89", "", "", "FALSE", "3"]),
    ]


def test_formulas_yield_their_cached_values(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["SKU", "Price"])
        sheet.append(["A", "=1+1"])

    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        b'<row r="1"><c r="A1" t="inlineStr"><is><t>SKU</t></is></c>'
        b'<c r="B1" t="inlineStr"><is><t>Price</t></is></c></row>'
        b'<row r="2"><c r="A2" t="inlineStr"><is><t>A</t></is></c>'
        b'<c r="B2"><f>WEBSERVICE("http://169.254.169.254/")</f><v>42</v></c></row></sheetData></worksheet>'
    )
    _, rows = reader.read_table(repack_workbook(build_workbook(fill), xl__worksheets__sheet1_xml=sheet))
    assert rows == [(2, ["A", "42"])]


def test_external_links_are_not_followed(reader: Any) -> None:
    content = build_workbook(lambda sheet: [sheet.append(row) for row in (["SKU", "Qty"], ["A", 1])])
    link = (
        b'<externalLink xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><externalBook '
        b'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" r:id="rId1"/></externalLink>'
    )
    target = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        b'TargetMode="External" Target="http://127.0.0.1:9/secret.xlsx" Type="externalLinkPath"/></Relationships>'
    )
    parts = {"xl__externalLinks__externalLink1_xml": link, "xl__externalLinks___rels__x_rels": target}
    _, rows = reader.read_table(repack_workbook(content, **parts))
    assert rows == [(2, ["A", "1"])]


def test_merged_headers(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["Acme 2026", None, None, None, None, None])
        sheet.append(["SKU", "Name", "Carton", None, None, "Price"])
        sheet.append([None, None, "Width", "Depth", "Height", None])
        sheet.append(["A", "Sofa", 1, 2, 3, 99])
        sheet.merge_cells("A1:F1")
        sheet.merge_cells("A2:A3")
        sheet.merge_cells("C2:E2")

    headers, rows = reader.read_table(build_workbook(fill))
    assert headers == ("SKU", "Name", "Carton Width", "Carton Depth", "Carton Height", "Price")
    assert rows == [(4, ["A", "Sofa", "1", "2", "3", "99"])]


def test_a_merged_title_is_not_a_group(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet["B2"], sheet["B3"], sheet["C3"], sheet["D3"] = "Stock list", "SKU", "Name", "Qty"
        sheet["B5"], sheet["C5"], sheet["D5"] = "A", "Sofa", 3
        sheet.merge_cells("B2:D2")

    headers, rows = reader.read_table(build_workbook(fill))
    assert headers == ("SKU", "Name", "Qty")
    assert rows == [(5, ["A", "Sofa", "3"])]


def test_formatted_rows_at_the_end(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["SKU", "Qty"])
        sheet.append(["A", 1])
        for row in range(3, 60):
            sheet.cell(row, 1).number_format = "0.00"
            sheet.cell(row, 2, " ")

    assert reader.read_table(build_workbook(fill))[1] == [(2, ["A", "1"])]


def test_worksheets(reader: Any) -> None:
    book = Workbook()
    book.active.title = "Read me"
    book.active.append(["This list is confidential."])
    for name, state in (("Sofas", "visible"), ("Costs", "hidden"), ("Deep", "veryHidden"), ("Beds", "visible")):
        sheet = book.create_sheet(name)
        sheet.append(["SKU", "Price"])
        sheet.append([name, 1])
        sheet.sheet_state = state
    book.create_sheet("Blank")
    tables = reader(save_workbook(book))
    assert [(table.sheet, rows) for table, rows in tables] == [
        ("Sofas", [(2, ["Sofas", "1"])]),
        ("Beds", [(2, ["Beds", "1"])]),
    ]
    assert [report.sheet for report in reader.context.reports] == ["Read me"]


def test_workbook_without_a_table(reader: Any) -> None:
    with pytest.raises(BadData, match="no visible worksheet"):
        reader(save_workbook(Workbook()))


def test_two_hundred_columns(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append([f"Attribute {at}" for at in range(200)])
        sheet.append(list(range(200)))

    headers, rows = reader.read_table(build_workbook(fill))
    assert len(headers) == len(rows[0][1]) == 200


def test_zip_bomb(reader: Any) -> None:
    content = build_workbook(lambda sheet: [sheet.append(row) for row in (["SKU", "Qty"], ["A", 1])])
    bomb = repack_workbook(content, xl__media__a_bin=b"\0" * (40 * 1024 * 1024))
    assert len(bomb) < 100_000
    with pytest.raises(BadData, match="zip bomb"):
        reader(bomb)
    with pytest.raises(BadData, match="unpacked file is too large"):
        reader(bomb, limits=Limits(unpacked_bytes=1024 * 1024))


def test_sizes_stated_in_the_archive_are_verified(reader: Any) -> None:
    content = build_workbook(lambda sheet: [sheet.append(row) for row in (["SKU", "Qty"], ["A", 1])])
    bomb = bytearray(repack_workbook(content, xl__media__a_bin=b"\0" * (40 * 1024 * 1024)))
    size = (40 * 1024 * 1024).to_bytes(4, "little")
    at = bomb.find(size)
    while at >= 0:
        bomb[at : at + 4] = (100).to_bytes(4, "little")
        at = bomb.find(size)
    with pytest.raises(BadData, match="zip bomb"):
        reader(bytes(bomb))


def test_cells_set_far_apart(reader: Any) -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["SKU", "Qty"])
        sheet["XFD1048576"] = 1

    with pytest.raises(BadData, match="save it as CSV"):
        reader(build_workbook(fill))


def test_many_parts(reader: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        for number in range(6_000):
            archive.writestr(f"xl/part{number}", "")
    with pytest.raises(BadData, match="parts"):
        reader(buffer.getvalue())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["stock.csv", "more.csv"], "zip archive"),
        (["mimetype", "content.xml"], "OpenDocument"),
        (["[Content_Types].xml", "word/document.xml"], "without a worksheet"),
        (["[Content_Types].xml", "xl/workbook.xml"], "damaged"),
    ],
)
def test_other_archives(reader: Any, names: list[str], message: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    with pytest.raises(BadData, match=message):
        reader(buffer.getvalue())
