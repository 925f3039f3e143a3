"""CSV and TSV files as vendors send them."""

import csv
import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from connectors.csv.connector import SPEC as CSV
from connectors.sdk import BadData, Limits
from connectors.sdk.testing import FakeContext


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("SKU,Name\nA,Küche\n".encode(), "Küche"),
        (b"\xef\xbb\xbf" + "SKU,Name\nA,Küche\n".encode(), "Küche"),
        ("SKU,Name\nA,Küche 5½”\n".encode("cp1252"), "Küche 5½”"),
        ("SKU,Name\nA,Küche\n".encode("utf-16"), "Küche"),
        ("SKU,Name\nA,Küche\n".encode("utf-16-be"), "Küche"),
        ("SKU,Name\nA,Küche\n".encode("utf-16-le"), "Küche"),
    ],
    ids=["utf-8", "bom", "windows-1252", "utf-16", "utf-16-be bare", "utf-16-le bare"],
)
def test_encodings(reader: Any, content: bytes, value: str) -> None:
    headers, rows = reader.read_table(content)
    assert headers == ("SKU", "Name")
    assert rows == [(2, ["A", value])]


def test_invalid_utf8_is_kept_and_reported(reader: Any) -> None:
    good = "".join(f"A{number},Küche Grün\n" for number in range(20)).encode()
    _, rows = reader.read_table(b"SKU,Name\n" + good + b"B,K\xfcche\n")
    assert rows[0][1][1] == "Küche Grün"
    assert rows[-1] == (22, ["B", "K\ufffdche"])
    assert "1 invalid UTF-8 sequences" in reader.context.reports[0].detail


def test_windows_1252_far_down(reader: Any) -> None:
    plain = b"".join(b"A%d,Oak\n" % number for number in range(100_000))
    _, rows = reader.read_table(b"SKU,Name\n" + plain + b"Z,K\xfcche\n")
    assert rows[-1] == (100_002, ["Z", "Küche"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(reader: Any, delimiter: str) -> None:
    text = f"sku{delimiter}price{delimiter}name\n" + "".join(
        f"A{n}{delimiter}1{'.' if delimiter == ',' else ','}5{delimiter}a, b\n".replace("a, b", '"a, b|c;d"')
        for n in range(9)
    )
    headers, rows = reader.read_table(text.encode())
    assert headers == ("sku", "price", "name")
    assert rows[8][1][2] == "a, b|c;d"


def test_sep_line(reader: Any) -> None:
    assert reader.read_table(b"sep=;\r\nsku;price\r\nA;1,5\r\n") == (("sku", "price"), [(3, ["A", "1,5"])])


def test_header_on_row_seven(reader: Any) -> None:
    rows = [["ACME Furniture", "", ""], ["Price list 11/20/2026"], [], ["Call us: 555 1234"], [], ["", "", "page"],
            ["SKU", "Colour", "Price"], ["A-1", "Oak", "12.50"], ["A-2", "Ash", "13"]]  # fmt: skip
    headers, got = reader.read_table(_encode_csv(rows))
    assert headers == ("SKU", "Colour", "Price")
    assert got == [(8, ["A-1", "Oak", "12.50"]), (9, ["A-2", "Ash", "13"])]


def test_header_without_known_words(reader: Any) -> None:
    headers, got = reader.read_table(
        _encode_csv([["Liste"], ["Artikelnr", "Farbe", "Preis"], ["1", "rot", "5"], ["2", "blau", "6"]])
    )
    assert headers == ("Artikelnr", "Farbe", "Preis")
    assert [line for line, _ in got] == [3, 4]


def test_units_are_added_to_headers(reader: Any) -> None:
    headers, got = reader.read_table(
        _encode_csv([["SKU", "Width", "Weight (lb)", "Qty"], ["", "in", "lb", "ea"], ["A", "3", "4", "5"]])
    )
    assert headers == ("SKU", "Width (in)", "Weight (lb)", "Qty")
    assert got == [(3, ["A", "3", "4", "5"])]


def test_group_headers_are_combined(reader: Any) -> None:
    rows = [["SKU", "Name", "Carton", "", "", "Product", ""],
            ["", "", "Width", "Depth", "Height", "Width", "Weight"],
            ["A", "Sofa", "1", "2", "3", "4", "5"]]  # fmt: skip
    headers, got = reader.read_table(_encode_csv(rows))
    assert headers == (
        "SKU",
        "Name",
        "Carton Width",
        "Carton Depth",
        "Carton Height",
        "Product Width",
        "Product Weight",
    )
    assert got == [(3, ["A", "Sofa", "1", "2", "3", "4", "5"])]


def test_title_next_to_a_date_is_not_a_group(reader: Any) -> None:
    rows = [
        ["Acme list", "", "", "November", ""],
        ["SKU", "Name", "Width", "Price", "Qty"],
        ["A", "Sofa", "1", "2", "3"],
    ]
    headers, _ = reader.read_table(_encode_csv(rows))
    assert headers == ("SKU", "Name", "Width", "Price", "Qty")


def test_duplicate_and_blank_headers(reader: Any) -> None:
    headers, got = reader.read_table(b"SKU,MSRP,,MSRP,\nA,1,x,2,\nB,3,y,4,\n")
    assert headers == ("SKU", "MSRP", "Column 3", "MSRP")
    assert got[0] == (2, ["A", "1", "x", "2"])


def test_ragged_rows(reader: Any) -> None:
    headers, got = reader.read_table(b"SKU,Name,Qty\nA\nB,b,1,,\nC,c,1,extra,more\nD,d,2\n")
    assert headers == ("SKU", "Name", "Qty")
    assert [cells for _, cells in got] == [["A", None, None], ["B", "b", "1"], ["C", "c", "1"], ["D", "d", "2"]]
    assert [(report.line, "2 more values" in report.detail) for report in reader.context.reports] == [(4, True)]


def test_blank_rows_and_repeated_headers_are_omitted(reader: Any) -> None:
    _, got = reader.read_table(b"SKU,Qty\n,\nA,1\n  , \n\nSKU,Qty\nB,2\n,\n,\n")
    assert got == [(3, ["A", "1"]), (7, ["B", "2"])]


def test_lines_of_quoted_breaks(reader: Any) -> None:
    _, got = reader.read_table(b'SKU,Description\r\nA,"one\r\ntwo"\r\nB,x\r\n')
    assert got == [(2, ["A", "one\r\ntwo"]), (4, ["B", "x"])]


def test_leading_zeros_and_text_guards_are_preserved(reader: Any) -> None:
    _, got = reader.read_table(b"SKU,UPC\n'101,0012345678905\n")
    assert got == [(2, ["'101", "0012345678905"])]


def test_zero_bytes_are_replaced(reader: Any) -> None:
    _, got = reader.read_table(b"SKU,Name\nA,So\0fa\n")
    assert got == [(2, ["A", "So\ufffdfa"])]


def test_open_quote(reader: Any) -> None:
    with pytest.raises(BadData, match="line 3: a quoted value is not closed"):
        reader.read_table(b'SKU,Name\nA,x\nB,"72in sofa\nC,y\nD,z\n')


def test_open_quote_over_a_whole_file(reader: Any) -> None:
    rows = b"".join(b"A%d,x\n" % number for number in range(5_000))
    with pytest.raises(BadData, match="line 2: a quoted value is not closed"):
        reader.read_table(b'SKU,Name\nB,"72in sofa\n' + rows + b'C,"y"\n')


def test_huge_value(reader: Any) -> None:
    with pytest.raises(BadData, match="longer than 1 MiB"):
        reader.read_table(b"SKU,Name\nA," + b"x" * 1_100_000 + b"\n")


def test_one_endless_line(reader: Any) -> None:
    with pytest.raises(BadData, match="the file is not a table"):
        reader.read_table(b"SKU,Name," * 1_000_000)


def test_two_hundred_columns(reader: Any) -> None:
    headers, got = reader.read_table(
        _encode_csv([["SKU", *[f"Attribute {at}" for at in range(199)]], ["A", *map(str, range(199))]])
    )
    assert len(headers) == len(got[0][1]) == 200
    with pytest.raises(BadData, match="200 columns; at most 100"):
        reader(_encode_csv([[f"H{at}" for at in range(200)]] * 2), limits=Limits(columns=100))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \r\n\r\n", "the file is empty"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "damaged"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "password"),
        (b"<!DOCTYPE html><html><body>Sign in", "web page"),
        (b"\n <html lang=en><head>", "web page"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04 not really", "damaged"),
    ],
)
def test_files_without_a_table(reader: Any, content: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content)


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        ("cp1250", ["Krzesło", "Dąb artisan", "Żółty", "Łóżko", "Świerk", "Głębokość"]),
        ("cp1250", ["Židle", "Skříň bílá", "Křeslo černé", "Stůl dub", "Žlutý", "Šířka"] * 5),
        ("cp1251", ["Стул", "Стол дубовый", "Кровать", "Зелёный"]),
        ("cp1252", ["Größe", "Stühle grün", "Füße", "Maße", "geölt"] * 5),
        ("cp1252", ["Qualità", "Città", "È in legno", "Perché", "Metà"] * 5),
        ("cp1252", ["¿Sofá?", "Diseño", "5 m³", "Mesa 20½", "30°"] * 5),
    ],
)
def test_code_pages(reader: Any, codec: str, names: list[str]) -> None:
    rows = [["SKU", "Name"], *[[f"A-{number}", name] for number, name in enumerate(names)]]
    _, found = reader.read_table("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows).encode(codec))
    assert [cells[1] for _, cells in found] == names
    assert any("was read as" in report.detail for report in reader.context.reports) == (codec != "cp1252")


def test_reading_streams(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("SKU,Name,Qty\n")
        file.writelines(f"SKU-{number},Sofa number {number},{number}\n" for number in range(200_000))
    tracemalloc.start()
    table = next(CSV.open().parse_tables(FakeContext(), path))
    count = sum(1 for _ in table.rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200_000
    assert peak < 4 * 1024 * 1024


def _encode_csv(rows: list[list[str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()


def test_delimiters_inside_quoted_values_are_ignored(reader: Any) -> None:
    many = ";".join(f"https://v.example/{at}.jpg" for at in range(300))
    lines = ["SKU,Pictures,Qty", *[f'A-{at},"{many}",3' for at in range(5)], f'"A;9","a\n;{many}\n","1;2"']
    headers, rows = reader.read_table("\n".join(lines).encode())
    assert headers == ("SKU", "Pictures", "Qty")
    assert [cells[0] for _, cells in rows] == [*[f"A-{at}" for at in range(5)], "A;9"]


def test_lost_characters_are_reported_with_their_position(reader: Any) -> None:
    content = "SKU,Title\nA-1,Stühle\nA-2,St\ufffdhle\n".encode() + b"A-3,St\xfchle\n"
    _, rows = reader.read_table(content)
    assert [cells[1] for _, cells in rows] == ["Stühle", "St\ufffdhle", "St\ufffdhle"]
    places = [(report.line, report.column) for report in reader.context.reports if report.line]
    assert places == [(3, "Title"), (4, "Title")]
