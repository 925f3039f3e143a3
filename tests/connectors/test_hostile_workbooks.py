"""Workbooks designed to exhaust memory, which are refused before a library reads them."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.connectors.isolated_reading import MIB, read_isolated

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>SKU</t></is></c><c r="B1" t="inlineStr"><is><t>Qty</t></is></c></row>'
CELL = '<c t="inlineStr"><is><t>a</t></is></c>'
LIKE = CELL.replace("<c", "<c x=\" r='A1'\"")
DATA = "<sheetData>{}</sheetData>"


def build_sheet(rows: str, around: str = DATA) -> str:
    """Return a worksheet with the rows."""
    return f'<worksheet xmlns="{MAIN}">{around.format(rows)}</worksheet>'


def build_archive(parts: dict[str, str | bytes]) -> bytes:
    """Return an archive with the parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def build_workbook(xml: str, *, part: str = "worksheets/sheet1.xml", folder: str = "xl/", **others: str) -> bytes:
    """Return a workbook with one worksheet at the part; `others` are further parts of its folder by name."""
    related = f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="{part}"/>'
    return build_archive(
        {
            "[Content_Types].xml": "<Types/>",
            "xl/here": "",
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1" Type="{OFFICE}/officeDocument" '
            f'Target="{folder}workbook.xml"/></Relationships>',
            f"{folder}workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
            '<sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>',
            f"{folder}_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{related}</Relationships>',
            f"{folder}{part}".replace("xl//", ""): xml,
            **{f"{folder}{name}.xml": text for name, text in others.items()},
        }
    )


FAR = "XFD1048576"
SPREAD = {
    "a reference": build_sheet(f'{HEAD}<row r="1048576"><c r="{FAR}"><v>1</v></c></row>'),
    "a row without cell references": build_sheet(f'<row r="1">{CELL * 16_000}</row><row r="1048576">{CELL}</row>'),
    "cells without references": build_sheet(f'<row r="1"><c r="{FAR[:3]}1"><v>1</v></c></row><row r="900000">{CELL * 9}</row>'),
    "rows without references": build_sheet(f"<row>{CELL * 16_000}</row>" + "<row/>" * 2_000 + f"<row>{CELL}</row>"),
    "ends without beginnings": build_sheet(f"<row>{CELL * 16_000}" + "</row>" * 2_000 + f"<row>{CELL}</row>"),
    "rows that begin twice": build_sheet(f'<row r="1">{CELL * 16_000}' + '<row r="1">' * 2_000 + "</row>" * 2_000 + f"<row>{CELL}</row>"),
    "a prefix": build_sheet(HEAD + f'<x:row r="9"><x:c r="{FAR}"><x:v>1</x:v></x:c></x:row>'),
    "a prefix and no references": build_sheet(f"<x:row>{CELL.replace('<c', '<x:c').replace('</c', '</x:c') * 16_000}</x:row><row r='900000'>{CELL}</row>"),
    "single quotes": build_sheet(HEAD + f"<row r='9'><c r='{FAR}'><v>1</v></c></row>"),
    "another order": build_sheet(HEAD + f'<row r="9"><c s="1" t="n" r = "{FAR}"><v>1</v></c></row>'),
    "no blank between": build_sheet(HEAD + f'<row r="9"><c s="1"r="{FAR}"><v>1</v></c></row>'),
    "lower case": build_sheet(HEAD + f'<row r="9"><c r="{FAR.lower()}"><v>1</v></c></row>'),
    "two references": build_sheet(HEAD + f'<row r="9"><c r="A1" r="{FAR}"><v>1</v></c></row>'),
    "a row's own column": build_sheet(f'<row r="1">{CELL * 16_000}</row><row r="A1048576">{CELL}</row>'),
    "rows hidden in a comment": build_sheet(f"<row>{CELL * 8_000}<!-- </row><row> -->{CELL * 8_000}</row><row r='900000'>{CELL}</row>"),
    "a row back in a comment": build_sheet(f'<row r="900000"><!-- <row r="1"> -->{CELL * 16_000}</row><row r="1">{CELL}</row>'),
}  # fmt: skip
ODD = {
    "a sign in quotes": build_sheet(HEAD + f'<row r="9"><c x=">" r="{FAR}"><v>1</v></c></row>'),
    "a row's sign in quotes": build_sheet(f'<row r="1">{CELL * 16_000}</row><row x=">" r="900000">{CELL}</row>'),
    "a tag in quotes": build_sheet(f'<row r="1">{CELL * 16_000}</row><row x="<a" r="900000">{CELL}</row>'),
    "a value that looks like a reference": build_sheet(f"<row>{LIKE * 16_000}</row><row r='900000'>{CELL}</row>"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPREAD)
@pytest.mark.parametrize("part", ["worksheets/sheet1.xml", "data.bin"])
def test_cells_set_far_apart(kind: str, part: str, tmp_path: Path) -> None:
    found = read_isolated(build_workbook(SPREAD[kind], part=part), tmp_path)
    assert found.message is not None
    assert "as CSV and send that file" in found.message


@pytest.mark.parametrize("kind", ODD)
def test_ambiguous_archives_are_refused(kind: str, tmp_path: Path) -> None:
    found = read_isolated(build_workbook(ODD[kind]), tmp_path)
    assert found.message is not None
    assert "save it" in found.message


def test_a_workbook_of_another_folder(tmp_path: Path) -> None:
    found = read_isolated(build_workbook(SPREAD["a reference"], part="s", folder="elsewhere/"), tmp_path)
    assert found.message is not None
    assert "as CSV and send that file" in found.message


@pytest.mark.parametrize(
    "rows",
    [
        HEAD + '<row r="2"><c r="A2" t="inlineStr"><is><t>a</t></is></c><c r="B2"><v>3</v></c></row>',
        HEAD.replace(' r="1"', "").replace(' r="A1"', "").replace(' r="B1"', "") + f"<row>{CELL}<c><v>3</v></c></row>",
        HEAD + f'<!-- two --><row r="2">{CELL}<c><v>3</v></c></row>',
        (HEAD + f'<row r="2">{CELL}<c><v>3</v></c></row>').replace("<c", "<x:c").replace("</c", "</x:c"),
        HEAD + f"<row r='2' spans='1:2'>{CELL}<c s='1' r='B2'><v>3</v></c></row>" + '<row r="3"/>' * 9,
    ],
)
def test_ordinary_worksheets_are_read(rows: str, tmp_path: Path) -> None:
    assert read_isolated(build_workbook(build_sheet(rows)), tmp_path).rows == 1


def test_excessive_shared_texts_are_refused(tmp_path: Path) -> None:
    texts = f'<sst xmlns="{MAIN}" count="1" uniqueCount="99999999999"><si><t>SKU</t></si></sst>'
    found = read_isolated(build_workbook(build_sheet(HEAD), sharedStrings=texts), tmp_path)
    assert "texts" in (found.message or "")


@pytest.mark.parametrize(
    "value", ["<v>1</v>", "<f>A1</f><v>1</v>", "<v>0</v><v>1</v>", "<v> 01 </v>", "<v><![CDATA[1]]></v>"]
)
def test_a_long_text_in_many_cells(value: str, tmp_path: Path) -> None:
    texts = f'<sst xmlns="{MAIN}"><si/><si><t>SKU</t></si><si><r><t>{"x" * MIB}</t></r></si></sst>'
    rows = "".join(f'<row r="{at}"><c r="A{at}" t="s">{value}</c></row>' for at in range(1, 2_000))
    found = read_isolated(build_workbook(build_sheet(rows), sharedStrings=texts), tmp_path)
    assert "in total" in (found.message or "")


def test_many_cells_of_short_texts_are_read(tmp_path: Path) -> None:
    texts = f'<sst xmlns="{MAIN}"><si><t>SKU</t></si><si><t>a</t></si><si><t>{"x" * MIB}</t></si></sst>'
    rows = "".join(f'<row r="{at}"><c r="A{at}" t="s"><v>{int(at > 1)}</v></c></row>' for at in range(1, 2_000))
    assert read_isolated(build_workbook(build_sheet(rows), sharedStrings=texts), tmp_path).rows == 1_998


def test_merged_areas(tmp_path: Path) -> None:
    merged = '<mergeCell ref="A1:XFD1"/>' * 150_000
    found = read_isolated(build_workbook(build_sheet(HEAD, DATA + f"<mergeCells>{merged}</mergeCells>")), tmp_path)
    assert "merged areas" in (found.message or "")
    wide = '<mergeCell ref="A1:XFD1"/>' * 90_000
    found = read_isolated(
        build_workbook(
            build_sheet(HEAD + '<row r="2"><c r="A2"><v>1</v></c></row>', DATA + f"<mergeCells>{wide}</mergeCells>")
        ),
        tmp_path,
    )
    assert found.seconds < 30


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "x"}, "damaged"),
        ({"xl/workbook.bin": b"\x83\x01\x00"}, "damaged"),
    ],
)
def test_other_files_named_as_workbooks_are_refused(
    parts: dict[str, str | bytes], message: str, tmp_path: Path
) -> None:
    found = read_isolated(build_archive({"[Content_Types].xml": "<Types/>", "xl/a": "", **parts}), tmp_path)
    assert message in (found.message or "")


def build_directory(count: int, name: bytes = b"xl/a") -> bytes:
    """Return the directory of an archive with the number of parts, which are missing."""
    fixed = b"PK\x01\x02" + b"\x14\x00\x14\x00" + b"\0" * 20 + len(name).to_bytes(2, "little") + b"\0" * 16
    return (fixed + name) * count


def build_end_record(entries: int, size: int, start: int, comment: bytes = b"") -> bytes:
    """Return the end record of an archive."""
    numbers = (entries.to_bytes(2, "little") * 2, size.to_bytes(4, "little"), start.to_bytes(4, "little"))
    return b"PK\x05\x06\0\0\0\0" + b"".join(numbers) + len(comment).to_bytes(2, "little") + comment


def test_a_large_directory_is_not_read(tmp_path: Path) -> None:
    listed = build_directory(400_000)
    found = read_isolated(b"PK\x03\x04" + listed + build_end_record(10, len(listed), 4), tmp_path)
    assert "parts" in (found.message or "")
    assert found.mib < 24


def test_a_large_directory_of_a_large_archive_is_not_read(tmp_path: Path) -> None:
    listed = build_directory(400_000)
    size, start = len(listed).to_bytes(8, "little"), (4).to_bytes(8, "little")
    count = (400_000).to_bytes(8, "little")
    wide = b"PK\x06\x06" + (44).to_bytes(8, "little") + b"\0" * 12 + count * 2 + size + start
    locator = b"PK\x06\x07" + b"\0" * 4 + (4 + len(listed)).to_bytes(8, "little") + (1).to_bytes(4, "little")
    tail = build_end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    found = read_isolated(b"PK\x03\x04" + listed + wide + locator + tail, tmp_path)
    assert "parts" in (found.message or "")
    assert found.mib < 24


def test_archives_that_two_readers_see_differently(tmp_path: Path) -> None:
    plain, hostile = build_workbook(build_sheet(HEAD)), build_workbook(SPREAD["a reference"])
    for content in (hostile + plain, plain + hostile, plain[:-2] + len(hostile).to_bytes(2, "little") + hostile):
        found = read_isolated(content, tmp_path)
        assert found.message is not None
