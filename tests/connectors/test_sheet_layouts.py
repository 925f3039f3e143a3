"""Sheets as people draw them: several tables, titles, sections, units, repeated headers and items in columns."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.csv import SPEC as CSV
from connectors.csv.sheets import SheetFormat, read_sheet_tables
from connectors.sdk.errors import BadData
from connectors.sdk.fakes import FakeContext
from domain.ingestion.vocabulary.header_meanings import count_known_headers

Rows = Sequence[Sequence[str]]
Tables = list[tuple[tuple[str, ...], list[list[Any]]]]


def _encode_csv(rows: Rows) -> bytes:
    width = max(map(len, rows))
    buffer = io.StringIO()
    csv.writer(buffer).writerows([*row, *[""] * (width - len(row))] for row in rows)
    return buffer.getvalue().encode()


def _read(path: Path, content: bytes) -> tuple[Tables, list[str]]:
    """Return headers and rows of all tables in a file, and the details of all reports."""
    path.write_bytes(content)
    ctx = FakeContext(score_header=count_known_headers)
    tables = [(table.headers, [cells for _, cells in table.rows]) for table in CSV.open().parse_tables(ctx, path)]
    return tables, [report.detail for report in ctx.reports]


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Return a function that reads the tables of rows from a CSV file."""
    return lambda rows: _read(tmp_path / "feed", _encode_csv(rows))


TABLES = [
    ["SKU", "Name", "Width (cm)", "Depth (cm)", "Price"],
    ["T-1", "Oak table", "180", "90", "899.00"],
    ["T-2", "Ash table", "200", "95", "999.00"],
]
ROUND = [
    ["SKU", "Name", "Diameter (cm)", "Price"],
    ["R-1", "Round table", "120", "749.00"],
    ["R-2", "Side table", "45", "149.00"],
]


def test_table_below_another(read: Any) -> None:
    """A diameter of the second table is not read as a width of the first."""
    for between in ([[""]], [["Round tables"]], [[""], ["Round tables"], [""]], []):
        tables, _ = read([*TABLES, *between, *ROUND])
        assert [headers for headers, _ in tables] == [tuple(TABLES[0]), tuple(ROUND[0])]
        assert tables[1][1] == ROUND[1:]
        assert [row[:5] for row in tables[0][1][:2]] == TABLES[1:]


def test_tables_side_by_side_with_equal_headers(read: Any) -> None:
    rows = [
        [*left, *right]
        for left, right in zip(ROUND, [ROUND[0], ["R-3", "Bar table", "60", "99.00"], ["", "", "", ""]], strict=True)
    ]
    tables, _ = read(rows)
    assert [headers for headers, _ in tables] == [tuple(ROUND[0])] * 2
    assert tables[0][1] == ROUND[1:]
    assert tables[1][1] == [["R-3", "Bar table", "60", "99.00"]]


def test_legend_at_the_right_of_a_table(read: Any) -> None:
    data = [[f"C-{n}", f"Chair {n}", str(100 + n)] for n in range(8)]
    legend = [["Code", "Fabric"], ["10", "Linen"], ["11", "Velvet"]]
    rows = [
        [*left, "", *right]
        for left, right in zip([["SKU", "Name", "Price"], *data], [*legend, *[["", ""]] * 6], strict=True)
    ]
    tables, _ = read(rows)
    assert tables[0] == (("SKU", "Name", "Price"), data)
    assert tables[1] == (("Code", "Fabric"), legend[1:])


def test_blank_column_within_a_table(read: Any) -> None:
    rows = [["SKU", "Name", "", "Price", "Stock"], *[[f"C-{n}", f"Chair {n}", "", "99", "4"] for n in range(5)]]
    ((headers, data),), _ = read(rows)
    assert headers == ("SKU", "Name", "Column 3", "Price", "Stock")
    assert len(data) == 5


def test_titles_and_notes_above_the_header_are_reported(read: Any) -> None:
    tables, reports = read([["Vega Möbel GmbH"], ["Price list 2026", "", "valid from 01.02.2026"], [""], *TABLES])
    assert tables == [(tuple(TABLES[0]), TABLES[1:])]
    assert any("lines 1 to 2 above the header" in report for report in reports)


def test_notes_apply_to_all_tables_of_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    path.write_bytes(_encode_csv([["Preisliste"], ["Alle Preise in EUR"], [""], *TABLES, [""], ["Tische"], *ROUND]))
    ctx = FakeContext(score_header=count_known_headers)
    notes = [table.notes for table in CSV.open().parse_tables(ctx, path) if list(table.rows)]
    assert notes == ["Preisliste\nAlle Preise in EUR"] * 2


def test_three_header_rows(read: Any) -> None:
    rows = [
        ["", "", "Dimensions", "", "", "", "Logistics", ""],
        ["", "", "Item", "", "Carton", "", "", ""],
        ["SKU", "Name", "Width", "Depth", "Width", "Depth", "Gross weight", "Volume"],
        ["T-1", "Oak table", "180", "90", "185", "95", "40", "0.3"],
        ["T-2", "Ash table", "200", "95", "205", "99", "44", "0.4"],
    ]
    ((headers, data),), _ = read(rows)
    assert headers[2:6] == (
        "Dimensions Item Width",
        "Dimensions Item Depth",
        "Dimensions Carton Width",
        "Dimensions Carton Depth",
    )
    assert data == rows[3:]


def test_rows_of_units_and_descriptions_are_no_items(read: Any) -> None:
    rows = [
        ["SKU", "Name", "Width", "Available from", "Price"],
        ["text", "text", "cm", "DD/MM/YYYY", "EUR"],
        [
            "Your article number",
            "The name shown to customers",
            "Without packaging",
            "First day of delivery",
            "Net price",
        ],
        ["T-1", "Oak table", "180", "01/02/2026", "899.00"],
        ["T-2", "Ash table", "200", "01/02/2026", "999.00"],
    ]
    ((headers, data),), reports = read(rows)
    assert headers == ("SKU", "Name", "Width (cm)", "Available from", "Price (EUR)")
    assert data == rows[3:]
    assert len(reports) == 2


def test_descriptions_can_contain_a_number(read: Any) -> None:
    descriptions = ["Unique", "Do not include the brand", "Side to side", "Front to back", "12 digits"]
    header, *rows = TABLES
    tables, reports = read([header, descriptions, *rows])
    assert tables == [(tuple(header), rows)]
    assert any("descriptions of the columns" in report for report in reports)


def test_attributes_of_the_root_of_xml_are_notes(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(b'<list valuta="EUR"><item><sku>A-1</sku></item><item><sku>A-2</sku></item></list>')
    assert [table.notes for table in CSV.open().parse_tables(FakeContext(), path)] == ["valuta EUR"]


def test_technical_names_below_the_header(read: Any) -> None:
    rows = [
        ["Seller SKU", "Product Name", "Brand", "Item Width", "Standard Price"],
        ["item_sku", "item_name", "brand_name", "item_width", "standard_price"],
        ["T-1", "Oak table", "Vega", "180", "899.00"],
        ["T-2", "Ash table", "Vega", "200", "999.00"],
    ]
    ((_, data),), _ = read(rows)
    assert data == rows[2:]


def test_repeated_headers_are_reported(read: Any) -> None:
    ((_, data),), reports = read(
        [*TABLES, [], ["sku", "NAME", "Width (cm)", "Depth (cm)", "Price"], ["T-3", "Pine table", "100", "60", "99"]]
    )
    assert [row[0] for row in data] == ["T-1", "T-2", "T-3"]
    assert any("line 5 repeat" in report for report in reports)


def test_items_in_columns(read: Any) -> None:
    rows = [list(column) for column in zip(*TABLES, strict=True)]
    ((headers, data),), _ = read([["Data sheet"], *rows])
    assert headers == tuple(TABLES[0])
    assert data == TABLES[1:]


def test_cells_merged_over_several_rows(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in (
        ["Name", "SKU", "Colour", "Price"],
        ["Oak table", "T-1", "natural", 899],
        [None, "T-2", "white", 899],
        ["Chair", "C-1", "red", 99],
    ):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    content = io.BytesIO()
    book.save(content)
    ((_, data),), _ = _read(tmp_path / "feed", content.getvalue())
    assert [row[0] for row in data] == ["Oak table", "Oak table", "Chair"]


def test_merged_areas_that_overlap() -> None:
    """One value is kept per column, whatever number of areas a damaged workbook has."""
    rows = [["SKU", "Name", "Price"], ["T-1", "Oak", "1"], ["T-2", "Ash", "2"], ["T-3", "", "3"]]
    areas = {line: [(line, 1, 4, 1)] for line in (2, 3)}
    ctx = FakeContext(score_header=count_known_headers)
    tables = read_sheet_tables(ctx, lambda: iter(enumerate(rows, start=1)), SheetFormat(merged_areas=areas))
    assert [cells[1] for _, cells in next(tables).rows] == ["Oak", "Ash", "Ash"]


@pytest.mark.parametrize(
    "rows",
    [
        [["SKU", *["Oak"] * 9_000], ["Name", *["Table"] * 9_000], ["Price", *["99"] * 9_000]],
        [["SKU", "Name", "Price"], *[["A-1", "Oak table", "99"]] * 5, *[["Ash", "Bench", "on request"]] * 9_000],
    ],
    ids=["items in columns", "rows without numbers"],
)
def test_few_cells_are_compared_with_known_headers(rows: Rows, tmp_path: Path) -> None:
    compared = 0

    def score_header(cells: Sequence[str]) -> int:
        nonlocal compared
        compared += len(cells)
        return count_known_headers(cells)

    path = tmp_path / "feed"
    path.write_bytes(_encode_csv(rows))
    for table in CSV.open().parse_tables(FakeContext(score_header=score_header), path):
        assert any(table.rows)
    assert compared < 20_000


def test_values_at_the_right_of_tables_side_by_side_are_reported(read: Any) -> None:
    tables, reports = read(
        [["SKU", "Name", "", "SKU", "Name"], *[["A-1", "Oak", "", "B-1", "Ash"]] * 3, ["a", "b", "", *"defg"]]
    )
    assert [headers for headers, _ in tables] == [("SKU", "Name")] * 2
    assert any("2 more values" in report for report in reports)


def test_many_tables_side_by_side_are_refused(read: Any) -> None:
    """The limit of columns applies before a sheet is divided, because each table is read from the sheet again."""
    with pytest.raises(BadData, match="2400 columns"):
        read([["SKU", "Name", "Price"] * 800, ["A-1", "Oak table", "99"] * 800])


_WORDS = st.sampled_from(
    "Oak Ash Walnut Linen Velvet Round Large Grey Black Nordic Classic Extending Folding Outdoor".split()
)
_KINDS = ["table", "chair", "sofa", "bench", "shelf"]


@st.composite
def _tables(draw: Any) -> tuple[list[str], list[list[str]]]:
    """Draw a table: a header with key and name, and rows of items."""
    columns = draw(
        st.lists(
            st.sampled_from(["Width (cm)", "Height (cm)", "Colour", "Price", "Stock", "EAN", "Brand", "Description"]),
            min_size=2,
            max_size=6,
            unique=True,
        )
    )
    number = draw(st.integers(2, 6))
    rows = []
    for _ in range(number):
        row = [
            f"{draw(st.sampled_from('ABC'))}-{draw(st.integers(100, 999))}",
            f"{draw(_WORDS)} {draw(st.sampled_from(_KINDS))}",
        ]
        for column in columns:
            texts = {
                "Colour": draw(_WORDS),
                "Brand": "Vega",
                "Description": f"{draw(_WORDS)} and {draw(_WORDS)}",
                "EAN": "4006381333931",
            }
            row.append(texts.get(column) or str(draw(st.integers(1, 300))))
        rows.append(row)
    return ["SKU", "Name", *columns], rows


@given(st.data())
def test_generated_sheets_lose_nothing(tmp_path_factory: Any, data: Any) -> None:
    """Every item of a generated sheet is read under its own header, whatever stands around it."""
    first, second = data.draw(_tables()), data.draw(_tables())
    title = data.draw(st.sampled_from([[], [["Price list 2026"]], [["Vega"], ["Valid until further notice"], []]]))
    between = data.draw(st.sampled_from([[[]], [["Further articles"]], [[], ["Further articles"]]]))
    repeats = data.draw(st.booleans())
    body = first[1] if not repeats else [*first[1][:1], first[0], *first[1][1:]]
    rows = [*title, first[0], *body, *between, second[0], *second[1]]
    tables, _ = _read(tmp_path_factory.mktemp("sheets") / "feed", _encode_csv(rows))
    found = [
        {header: cell for header, cell in zip(headers, cells, strict=True) if cell}
        for headers, rows in tables
        for cells in rows
        if any(cells[1:])
    ]
    expected = [dict(zip(header, row, strict=True)) for header, rows in (first, second) for row in rows]
    assert found == expected


def test_codes_that_contain_a_header_are_no_labels(read: Any) -> None:
    rows = [["SKU", "NJ", "CA"], *[[f"SKU-{number:04d}", "12", "20+"] for number in range(4)]]
    ((headers, data),), _ = read(rows)
    assert headers == ("SKU", "NJ", "CA")
    assert len(data) == 4
