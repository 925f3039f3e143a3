"""Writers of older workbook formats, independent of the code that reads them."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

import xlwt
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

Sheets = Mapping[str, Sequence[Sequence[object]]]


def build_xls(sheets: Sheets) -> bytes:
    """Return a workbook of Excel 97 to 2003 (BIFF8), by xlwt."""
    book = xlwt.Workbook()
    for name, rows in sheets.items():
        sheet = book.add_sheet(name)
        for line, row in enumerate(rows):
            for column, value in enumerate(row):
                if value is not None:
                    sheet.write(line, column, value)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def build_ods(sheets: Sheets, **repeats: str) -> bytes:
    """Return an OpenDocument spreadsheet, by odfpy; `repeats` are attributes of every cell of the last data row."""
    book = OpenDocumentSpreadsheet()
    for name, rows in sheets.items():
        table = Table(name=name)
        for row in rows:
            line = TableRow()
            for value in row:
                line.addElement(_cell(value, repeats if row is rows[-1] else {}))
            table.addElement(line)
        book.spreadsheet.addElement(table)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _cell(value: object, repeats: Mapping[str, str]) -> TableCell:
    if value is None:
        return TableCell()
    if isinstance(value, str):
        cell = TableCell(valuetype="string", **repeats)
    else:
        cell = TableCell(valuetype="float", value=str(value), **repeats)
    cell.addElement(P(text=str(value)))
    return cell


def build_record(kind: int, content: bytes = b"") -> bytes:
    """Return a record of a binary workbook (MS-XLSB 2.1.4), with kind and size in bytes of seven bits."""
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(content)
    sizes = bytearray()
    while True:
        byte, size = size & 0x7F, size >> 7
        sizes.append(byte | 0x80 if size else byte)
        if not size:
            return head + bytes(sizes) + content


def encode_text(value: str) -> bytes:
    """Encode a text of a binary workbook: its length in UTF-16 units, then the units."""
    return struct.pack("<I", len(value.encode("utf-16-le")) // 2) + value.encode("utf-16-le")


def build_binary_sheet(rows: Sequence[Sequence[object]], *, first: int = 0) -> bytes:
    """Return a worksheet of a binary workbook, whose first row is `first`."""
    out = build_record(129) + build_record(148, struct.pack("<4I", first, first + len(rows), 0, 99)) + build_record(145)
    for line, row in enumerate(rows, start=first):
        out += build_record(0, struct.pack("<I", line) + b"\0" * 13)
        for column, value in enumerate(row):
            place = struct.pack("<II", column, 0)
            if isinstance(value, str):
                out += build_record(6, place + encode_text(value))
            elif isinstance(value, (int, float)):
                out += build_record(5, place + struct.pack("<d", value))
    return out + build_record(146) + build_record(130)


def build_xlsb(sheets: Sheets, *, first: int = 0) -> bytes:
    """Return a binary workbook of Excel 2007 and later, written by its published format."""
    relations, bundles = "", b""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        for number, (name, rows) in enumerate(sheets.items(), start=1):
            archive.writestr(f"xl/worksheets/sheet{number}.bin", build_binary_sheet(rows, first=first))
            relations += (
                f'<Relationship Id="rId{number}" Type="{kind}/worksheet" Target="worksheets/sheet{number}.bin"/>'
            )
            bundles += build_record(
                156, struct.pack("<II", 0, number) + encode_text(f"rId{number}") + encode_text(name)
            )
        archive.writestr(
            "xl/workbook.bin", build_record(131) + build_record(143) + bundles + build_record(144) + build_record(132)
        )
        spaces = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
        archive.writestr("xl/_rels/workbook.bin.rels", f"<Relationships {spaces}>{relations}</Relationships>")
        archive.writestr(
            "_rels/.rels",
            f'<Relationships {spaces}><Relationship Id="rId1" Type="{kind}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
        )
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="bin" ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>',
        )
    return out.getvalue()
