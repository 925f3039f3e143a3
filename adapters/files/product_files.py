"""Files of products: CSV, XLSX and Google Merchant XML, written row by row so that memory does not depend on their number."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

import msgspec

from adapters.files.workbooks import FORMULA_STARTS, XlsxWorkbook
from domain.exports.columns import Cell, ColumnKind, TableBuilder, format_cell
from domain.exports.layout import (
    OMITTED_ITEM_COLUMNS,
    ExportFormat,
    ExportLayout,
    ExportLocale,
)
from domain.exports.templates import SHOPIFY_COLUMNS, GoogleMerchantTemplate, ItemTemplate, ShopifyTemplate
from domain.kernel.lines import Lines

CHUNK_BYTES = 256 * 1024
MAX_SHEET_ROWS = 1_048_576
"""Maximum number of rows of a sheet, including the heading."""
MAX_CELL_CHARS = 32_767
"""Maximum number of characters of a cell."""
_DECODE = msgspec.json.Decoder(float_hook=Decimal).decode
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_INVALID_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDTHS: Final[Mapping[ColumnKind, int]] = {
    ColumnKind.TEXT: 24, ColumnKind.LONG_TEXT: 48, ColumnKind.TIME: 18, ColumnKind.CODE: 18,
}  # fmt: skip
_DEFAULT_WIDTH = 12


def neutralise_formula(text: str) -> str:
    """Return a text so that spreadsheets do not execute it: with an apostrophe before a character that begins a formula.

    Source: OWASP, CSV Injection.
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class CsvEncoder:
    """Encoder of rows as CSV (RFC 4180), in UTF-8.

    Args:
        locale: Locale of numbers, times and the separator, with a byte order mark, as spreadsheet programs expect it; None
            for the formats of programs.
    """

    def __init__(self, locale: ExportLocale | None = None) -> None:
        self._locale = locale
        self._buffer = io.StringIO()
        delimiter = ";" if locale == ExportLocale.GERMAN else ","
        self._writer = csv.writer(self._buffer, delimiter=delimiter, lineterminator="\r\n")

    def encode(self, rows: Sequence[Sequence[Cell]]) -> bytes:
        """Return the rows as lines."""
        self._buffer.seek(0)
        self._buffer.truncate()
        self._writer.writerows([self._format(value) for value in row] for row in rows)
        return self._buffer.getvalue().encode("utf-8", "replace")

    def encode_headings(self, headings: Sequence[str]) -> bytes:
        """Return the first line of a file."""
        return (_BYTE_ORDER_MARK if self._locale else b"") + self.encode([headings])

    def _format(self, value: Cell) -> str:
        return neutralise_formula(value) if isinstance(value, str) else format_cell(value, self._locale)


class CsvTable:
    """CSV file with one table (port ProductFile in domain/exports/ports.py)."""

    def __init__(self, layout: ExportLayout, source_names: Mapping[str, str], folder: Path) -> None:
        self._table, self._encoder = TableBuilder(layout, source_names), CsvEncoder(layout.locale)
        self._is_empty = True

    def add(self, documents: Sequence[bytes]) -> Lines:
        rows = [row for document in documents for row in self._table.build_rows(_DECODE(document))]
        return Lines(len(rows), self._take_headings() + self._encoder.encode(rows))

    def finish(self) -> Iterator[bytes]:
        yield self._take_headings()

    def list_omitted(self) -> Iterator[Lines]:
        return iter(())

    def _take_headings(self) -> bytes:
        """Return the first line if it was not returned yet."""
        if not self._is_empty:
            return b""
        self._is_empty = False
        return self._encoder.encode_headings(self._table.headings)


class XlsxTable:
    """XLSX workbook with one table, continued on further sheets (port ProductFile in domain/exports/ports.py).

    Args:
        layout: The layout.
        source_names: Names of the organisation's sources by ID.
        folder: Folder for the rows, which the library writes to temporary files, and for the workbook.
        max_rows: Maximum number of rows of a sheet.
    """

    def __init__(
        self, layout: ExportLayout, source_names: Mapping[str, str], folder: Path, max_rows: int = MAX_SHEET_ROWS
    ) -> None:
        self._table, self._max_rows, self._path = TableBuilder(layout, source_names), max_rows, folder / "table.xlsx"
        self._workbook = XlsxWorkbook(str(self._path), constant_memory=True, tmpdir=str(folder))
        is_german, add_format = layout.locale == ExportLocale.GERMAN, self._workbook.book.add_format
        self._time = add_format({"num_format": "dd.mm.yyyy hh:mm" if is_german else "yyyy-mm-dd hh:mm"})
        self._money = {
            places: add_format({"num_format": "#,##0" + ("." + "0" * places if places else "")}) for places in range(4)
        }
        self._name = "Produkte" if is_german else "Products"
        self._add_sheet()

    def add(self, documents: Sequence[bytes]) -> Lines:
        count = 0
        for document in documents:
            for row in self._table.build_rows(_DECODE(document)):
                self._write_row(row)
                count += 1
        return Lines(count, b"")

    def finish(self) -> Iterator[bytes]:
        self._workbook.book.close()
        with self._path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def list_omitted(self) -> Iterator[Lines]:
        return iter(())

    def _add_sheet(self) -> None:
        headings = self._table.headings
        kinds = [_WIDTHS.get(column.kind, _DEFAULT_WIDTH) for column in self._table.columns]
        widths = [max(width, min(40, len(heading) + 2)) for width, heading in zip(kinds, headings, strict=True)]
        self._sheet = self._workbook.add_sheet(self._name, headings, widths)
        self._row = 1

    def _write_row(self, cells: Sequence[Cell]) -> None:
        if self._row >= self._max_rows:
            self._add_sheet()
        for index, value in enumerate(cells):
            if isinstance(value, str):
                self._sheet.write_string(self._row, index, value[:MAX_CELL_CHARS])
            elif isinstance(value, bool):
                self._sheet.write_boolean(self._row, index, value)
            elif isinstance(value, datetime):
                self._sheet.write_datetime(self._row, index, value.astimezone(UTC).replace(tzinfo=None), self._time)
            elif isinstance(value, Decimal) and self._table.columns[index].kind == ColumnKind.MONEY:
                places = max(0, -int(value.as_tuple().exponent))
                self._sheet.write_number(self._row, index, float(value), self._money.get(places))
            elif value is not None:
                self._sheet.write_number(self._row, index, float(value))
        self._row += 1


class _TemplateFile:
    """File in the format of another system, with a file of the omitted items beside it.

    Args:
        template: Builder of the items.
        folder: Folder for the omitted items.
    """

    def __init__(self, template: ItemTemplate, folder: Path) -> None:
        self._template = template
        self._omitted_path = folder / "omitted.csv"
        self._omitted_file: IO[bytes] = self._omitted_path.open("w+b")
        self._omitted_encoder = CsvEncoder()
        self._omitted_count = 0
        self._is_started = False

    def add(self, documents: Sequence[bytes]) -> Lines:
        items: list[Sequence[Any]] = []
        for document in documents:
            items += self._template.build_items(_DECODE(document))
            omitted = [tuple(item) for item in self._template.omitted]
            self._omitted_count += len(omitted)
            self._omitted_file.write(self._omitted_encoder.encode(omitted))
        return Lines(len(items), self._take_start() + self._encode(items))

    def finish(self) -> Iterator[bytes]:
        yield self._take_start() + self._end()

    def list_omitted(self) -> Iterator[Lines]:
        yield Lines(self._omitted_count, self._omitted_encoder.encode_headings(OMITTED_ITEM_COLUMNS))
        with self._omitted_file as file:
            file.seek(0)
            while chunk := file.read(CHUNK_BYTES):
                yield Lines(0, chunk)

    def _take_start(self) -> bytes:
        if self._is_started:
            return b""
        self._is_started = True
        return self._start()

    def _start(self) -> bytes:
        raise NotImplementedError

    def _encode(self, items: Sequence[Any]) -> bytes:
        raise NotImplementedError

    def _end(self) -> bytes:
        return b""


class ShopifyCsv(_TemplateFile):
    """Product CSV of Shopify (port ProductFile in domain/exports/ports.py)."""

    def __init__(self, layout: ExportLayout, source_names: Mapping[str, str], folder: Path) -> None:
        super().__init__(ShopifyTemplate(layout), folder)
        self._encoder = CsvEncoder()

    def _start(self) -> bytes:
        return self._encoder.encode_headings(SHOPIFY_COLUMNS)

    def _encode(self, items: Sequence[Any]) -> bytes:
        return self._encoder.encode(items)


class GoogleMerchantXml(_TemplateFile):
    """RSS 2.0 feed of Google Merchant Center (port ProductFile in domain/exports/ports.py)."""

    def __init__(self, layout: ExportLayout, source_names: Mapping[str, str], folder: Path) -> None:
        super().__init__(GoogleMerchantTemplate(layout), folder)
        parts = urlsplit(layout.link_template or "")
        self._shop = f"{parts.scheme}://{parts.netloc}/"

    def _start(self) -> bytes:
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0">\n<channel>\n'
            f"<title>Products</title>\n<link>{_escape_xml(self._shop)}</link>\n<description>Products</description>\n"
        ).encode()

    def _encode(self, items: Sequence[Any]) -> bytes:
        return "".join(
            "<item>" + "".join(f"<g:{name}>{_escape_xml(text)}</g:{name}>" for name, text in item) + "</item>\n"
            for item in items
        ).encode("utf-8", "replace")

    def _end(self) -> bytes:
        return b"</channel>\n</rss>\n"


def _escape_xml(text: str) -> str:
    """Escape a text for XML; characters that XML 1.0 cannot contain are replaced."""
    return escape(_INVALID_XML.sub("\ufffd", text), quote=False)


_TYPES: Final[Mapping[ExportFormat, Callable[[ExportLayout, Mapping[str, str], Path], Any]]] = {
    ExportFormat.CSV: CsvTable,
    ExportFormat.XLSX: XlsxTable,
    ExportFormat.SHOPIFY_CSV: ShopifyCsv,
    ExportFormat.GOOGLE_MERCHANT_XML: GoogleMerchantXml,
}


def create_product_file(layout: ExportLayout, source_names: Mapping[str, str], folder: Path) -> Any:
    """Return a new file (ProductFile) in the layout's format.

    Args:
        layout: The layout.
        source_names: Names of the organisation's sources by ID.
        folder: An empty folder for temporary files.
    """
    return _TYPES[layout.format](layout, source_names, folder)
