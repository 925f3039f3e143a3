"""XLS, XLSB and ODS are read like XLSX: every sheet, exact cells, limited memory."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from connectors.sdk import BadData, Limits
from tests.connectors.workbook_writers import Sheets, build_ods, build_xls, build_xlsb

SHEETS: Sheets = {
    "Stühle": [["SKU", "Title", "Price", "Qty"], ["00712", "Fåtölj", 499.9, 3], ["A-2", None, 1299, 0.5]],
    "Tische": [["SKU", "Qty"], ["T-1", 12]],
}
WRITERS = {"xls": build_xls, "ods": build_ods, "xlsb": build_xlsb}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_sheet_and_cell(reader: Any, kind: str) -> None:
    first, second = reader(WRITERS[kind](SHEETS))
    assert (first[0].sheet, second[0].sheet) == ("Stühle", "Tische")
    assert first[0].headers == ("SKU", "Title", "Price", "Qty")
    assert first[1] == [(2, ["00712", "Fåtölj", "499.9", "3"]), (3, ["A-2", "", "1299", "0.5"])]
    assert second[1] == [(2, ["T-1", "12"])]


@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_and_damaged_workbooks(reader: Any, kind: str) -> None:
    """Any truncation or change yields rows or an error message."""
    whole = WRITERS[kind](SHEETS)
    for at in range(8, len(whole), max(1, len(whole) // 60)):
        for damaged in (whole[:at], whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :]):
            try:
                reader(damaged)
            except BadData as error:
                assert str(error)


@pytest.mark.parametrize(
    "make",
    [
        lambda: build_xlsb({"A": [["SKU"], ["A"]]}, first=900_000) + b"",
        lambda: build_ods(SHEETS, numbercolumnsrepeated="2000000"),
    ],
    ids=["far row", "repeated cell"],
)
def test_sheets_that_span_too_much(reader: Any, make: Callable[[], bytes]) -> None:
    with pytest.raises(BadData, match="spans"):
        reader(make(), limits=Limits(sheet_cells=100_000))


def test_texts_repeated_in_open_documents(reader: Any) -> None:
    long = {"A": [["SKU", "Title"], ["A-1", "x" * 60_000]]}
    with pytest.raises(BadData, match="too long in total"):
        reader(build_ods(long, numbercolumnsrepeated="20000"), limits=Limits(unpacked_bytes=64 * 1024 * 1024))


def test_repeated_trailing_blank_rows_are_ignored(reader: Any) -> None:
    """Spreadsheet programs write the blank rest of a sheet as one row repeated a million times."""
    sheet = {"A": [["SKU", "Qty"], ["A-1", 3]]}
    content = build_ods(sheet)
    assert reader(content)[0][1] == [(2, ["A-1", "3"])]


def test_a_record_longer_than_the_file_is_refused(reader: Any) -> None:
    content = build_xlsb({"A": [["SKU"], ["A" + struct.pack("<I", 7).decode("latin-1")]]})
    assert reader(content)


def patch_bytes(content: bytes, at: int, piece: bytes) -> bytes:
    """Return the content with a part replaced."""
    return content[:at] + piece + content[at + len(piece) :]


OLD = build_xls(SHEETS)
DIMENSIONS = OLD.index(b"\x00\x02\x0e\x00")
FAT = 512 + 512 * struct.unpack_from("<I", OLD, 76)[0]
DIRECTORY = struct.unpack_from("<I", OLD, 48)[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (patch_bytes(OLD, 44, b"\xff\xff\xff\x7f"), "damaged"),
        (patch_bytes(OLD, 64, b"\xff\xff\x00\x00"), "damaged"),
        (patch_bytes(OLD, 68, struct.pack("<II", 0, 1)), "damaged"),
        (patch_bytes(OLD, FAT + 4 * DIRECTORY, struct.pack("<I", DIRECTORY)), "damaged"),
        (patch_bytes(OLD, DIMENSIONS + 4, struct.pack("<IIHH", 0, 0xFFFFFFFF, 0, 0xFF)), "span more"),
        (patch_bytes(OLD, DIMENSIONS + 4, struct.pack("<IIHH", 9, 1, 0, 9)), "span more"),
        (build_xls({"A": [["SKU"], *[[]] * 40_000, [None] * 200 + ["x"]]}), "span more"),
    ],
    ids=[
        "many tables",
        "many small tables",
        "list of lists",
        "chain in a circle",
        "stated",
        "stated backwards",
        "far cell",
    ],
)
def test_old_workbooks_that_exhaust_memory_are_refused(reader: Any, content: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content)


def test_old_documents_without_a_workbook(reader: Any) -> None:
    with pytest.raises(BadData, match="without a workbook"):
        reader(OLD.replace("Workbook".encode("utf-16-le"), "WordDocu".encode("utf-16-le")))
