"""Small files of every supported or refused format, and mutations of their bytes and parts."""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.connectors.test_bigcommerce import SOFA as BIG
from tests.connectors.test_hostile_workbooks import build_archive, build_sheet, build_workbook
from tests.connectors.test_json_ld import SOFA, build_page
from tests.connectors.test_merchant import RSS, build_item
from tests.connectors.test_shopify_admin import LEVELS, LINES
from tests.connectors.test_woocommerce import GREY
from tests.connectors.test_woocommerce import SOFA as WOO
from tests.connectors.test_x12 import PRICES, STOCK, build_interchange
from tests.connectors.workbook_writers import build_ods, build_xls, build_xlsb

HEADERS = ("Handle", "SKU", "Title", "Size", "Price", "Qty NJ", "Category", "Image 1", "Package(s)", "ETA")
ROWS = (
    ("sofa", "A-1", "Söta fåtölj", '80 1/2"W x 36"D', "499.90", "3", "Living > Sofas", "https://v.example/a.jpg", "1", "2026-12-01"),
    ("sofa", "A-2", 'Oak, "solid" <b>', "200 x 90 cm", "1.299,00", ">10", "A|B", "", "2", "soon"),
    ("", "", "", "", "", "", "", "", "", ""),
    ("rug", "B-1", "Rug\nlong", "8' x 10'", "abc", "-1", "", "//v.example/b", "(1)", "1/2/26"),
)  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    {
        **dict(zip(HEADERS, row, strict=True)),
        "brand": {"name": "Lindgren"},
        "tags": ["a", "b"],
        "variants": [{"sku": f"{row[1]}-{n}", "price": "10.50", "option1": "Oak"} for n in range(2)],
    }
    for row in ROWS
]
SHOP = {
    "products": [
        {
            "id": 7, "title": "Oak sofa", "handle": "oak-sofa", "body_html": "<p>Made<br>in <b>oak</b></p>", "vendor": "Lindgren",
            "product_type": "Sofa", "tags": ["oak"], "options": [{"name": "Size", "position": 1, "values": ["2", "3"]}],
            "variants": [{"id": 8, "title": "2", "option1": "2", "sku": "S-2", "price": "10.00", "grams": 900, "available": True}],
            "images": [{"id": 9, "src": "https://v.example/a.jpg", "position": 1, "variant_ids": [8]}],
        }
    ]
}  # fmt: skip


def _build_delimited(delimiter: str) -> bytes:
    quoted = [[f'"{cell}"'.replace('"s', '""s').replace('d"', 'd""') for cell in row] for row in ROWS]
    return "\r\n".join(delimiter.join(row) for row in [HEADERS, *quoted]).encode()


def _build_xml() -> bytes:
    items = "".join(
        "<item id='1'>" + "".join(f"<g:{tag}>{value}</g:{tag}>" for tag, value in cells) + "</item>"
        for cells in (
            [("id", "A-1"), ("title", "Oak &amp; ash"), ("price", "10 USD"), ("image_link", "https://v.example/a.jpg")],
            [("id", "A-2"), ("title", "<![CDATA[<b>Sofa</b>]]>"), ("product_detail", "<g:a>1</g:a>")],
        )
    )
    return (
        f'<?xml version="1.0"?><rss xmlns:g="http://base.google.com/ns/1.0"><channel>{items}</channel></rss>'.encode()
    )


def _build_cells(row: Sequence[str], number: int) -> str:
    cells = "".join(
        f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{cell.replace("<", "&lt;")}</t></is></c>'
        for at, cell in enumerate(row)
    )
    return f'<row r="{number}">{cells}</row>'


_SHEET = build_sheet("".join(_build_cells(row, number) for number, row in enumerate([HEADERS, *ROWS], start=1)))
_SHARED = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>SKU</t></si><si><t>Qty</t></si></sst>'
_SHARING = build_sheet(
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
    '<row r="2"><c r="A2"><v>17</v></c><c r="B2"><f>1+1</f><v>2</v></c></row><row r="3"><c r="A3" t="b"><v>1</v></c></row>'
)


def list_parts(archive: bytes) -> list[tuple[str, bytes]]:
    """Return the parts of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return [(entry.filename, opened.read(entry)) for entry in opened.infolist()]


WORKBOOKS = (build_workbook(_SHEET), build_workbook(_SHARING, sharedStrings=_SHARED))
MERCHANT = RSS.format(build_item() * 3)
OPEN_DOCUMENT = build_archive({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<a/>"})
SEEDS: dict[str, tuple[bytes, ...]] = {
    "csv": (_build_delimited(","), _build_delimited(";"), _build_delimited(",").decode().encode("utf-16")),
    "tsv": (_build_delimited("\t"), _build_delimited("|")),
    "json": (json.dumps(RECORDS).encode(), json.dumps({"data": {"items": RECORDS}}, indent=1).encode()),
    "jsonl": (b"\n".join(json.dumps(record).encode() for record in RECORDS),),
    "shop": (json.dumps(SHOP).encode(), b"\n".join([json.dumps(SHOP).encode()] * 2)),
    "xml": (_build_xml(),),
    "xlsx": WORKBOOKS,
    "ods": (OPEN_DOCUMENT, build_ods({"A": [HEADERS, *ROWS]})),
    "xls": (build_xls({"A": [HEADERS, *ROWS], "B": [HEADERS, *ROWS]}),),
    "xlsb": (build_xlsb({"A": [HEADERS, *ROWS]}),),
    "merchant": (MERCHANT.encode(),),
    "x12": (build_interchange(PRICES).encode(), build_interchange(STOCK, end="\n").encode()),
    "html": (build_page(SOFA).encode(), build_page(SOFA, {"@graph": [SOFA, {**SOFA, "hasVariant": [SOFA]}]}).encode()),
    "site": (
        b"".join(
            json.dumps({"url": "https://a.example/1", "html": build_page(SOFA)}).encode() + b"\n" for _ in range(2)
        ),
    ),
    "admin": tuple(
        b"".join(json.dumps(line).encode() + b"\n" for line in [{"joinery_shop": {"stream": stream}}, *lines])
        for stream, lines in (("catalogue", LINES), ("stock", LEVELS))
    ),
    "woo": (
        b"".join(
            json.dumps({"kind": kind, "page": [item]}).encode() + b"\n"
            for kind, item in (("products", WOO), ("variations", GREY))
        ),
    ),
    "big": (json.dumps({"kind": "products", "page": {"data": [BIG]}}).encode(),),
    "zip": (build_archive({"feed.csv": _build_delimited(",")}),),
    "gzip": (gzip.compress(_build_delimited(",")),),
}
TOKENS: dict[str, tuple[bytes, ...]] = {
    "text": (
        b"~", b"*", b">", b"ISA*", b"GS*", b"ST*846*1~", b"SE*1*1~", b"LIN**VN*A~", b"QTY*33*1~", b"SDQ*EA*92*A*1~", b"N1*WH*A~", b"PID*F*08***A~",
        b'"', b'""', b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xed\xa0\x80",
        b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"\x85", b"\x1a", b"'", b"\\", b"=cmd|' /C calc'!A0", b" ", b"\xc2\xa0",
        b"9" * 400, b"1e999999", b"1e-999999", b"NaN", b"Infinity", b"-0", b"0x1F", b"1/0", b"0/0 in", b"1 0/0", "½⅓".encode(), "٣".encode(),
        b"99999999999999999999 x 1e400 cm", b"9999-99-99", b"0000-00-00", b"1/1/1", b"SKU", b"Price", b"Qty", b"Title", b"<b>&#x110000;",
        b"&#0;", b"&#xd800;", b"&#99999999999999999999;", b"https://[", b"http://a:b@c:99999999/", b"%00", "\u202e\ufeff".encode(),
    ),
    "json": (
        b"{", b"}", b"[", b"]", b":", b",", b'"', b"null", b"true", b"NaN", b"-Infinity", b"1e99999999", b"9" * 5000, b"-", b"0.",
        b'"\\ud800"', b'"\\u0000"', b'"\\', b'{"a":' * 200, b"[" * 3000, b'{"":{}}', b'"__proto__":1,', b'"sku":', b'"variants":[[]],',
        b'"variants":{"sku":1},', b'"products":', b'"price":{},', b"[[]]", b"{}", b'"images":[null],', b'"options":"x",', b"//", b"\x1e",
        b"1E400", b"-1E-400", b"123456789012345678901234567890.5",
    ),
    "xml": (
        b"<", b">", b"</", b"/>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&", b"&amp;", b"&x;", b"&#0;", b"&#x110000;", b"<?", b"?>",
        b"<!DOCTYPE a [<!ENTITY x 'xx'>]>", b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'>", b"<a>" * 400, b"<a b='1' b='2'>", b"xmlns:g=''",
        b"<?xml version='1.0' encoding='utf-16'?>", b"<?xml version='1.1' encoding='nothing'?>", b"<item>", b"</item>", b"g:", b"\0",
        b"<c r='XFD1048576'>", b"<row r='1048576'>", b"<row r='-1'>", b"<c r='A0'>", b"<c t='s'><v>99</v></c>", b"<v>1e999</v>",
        b"<mergeCell ref='A1:XFD1048576'/>", b"<dimension ref='A1:XFD1048576'/>", b"r='99999999999999999999'", b"t='e'", b"t='d'",
        b"<c><v>9e99999</v></c>", b"s='999'", b"<c r='A1' t='n'><v>-1</v></c>", b"xl/", b"../", b"Target='/'", b"Id='r1'", b"r:id=''",
    ),
    "zip": (
        b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff" * 8, b"xl/",
        b"\x01\0", b"\x63\0", b"\x0c\0", b"\x0e\0", b"\x5d\0", struct.pack("<H", 0x0800), b"workbook.xml", b"mimetype", b"\x1f\x8b\x08",
    ),
}  # fmt: skip
_FAMILY = {
    **dict.fromkeys(("x12", "html"), "text"),
    **dict.fromkeys(("site", "admin", "woo", "big"), "json"),
    "csv": "text",
    "tsv": "text",
    "json": "json",
    "jsonl": "json",
    "shop": "json",
    "xml": "xml",
}
FORMATS = tuple(SEEDS)
MAX_BYTES = 400_000
"""Bytes of a mutated file."""


@dataclass(frozen=True)
class Mutation:
    """Mutation of up to `length` bytes at a relative place between 0 and 1: cut, repeated or replaced."""

    action: str
    place: float
    length: int
    token: bytes
    times: int

    def apply(self, content: bytes) -> bytes:
        """Return the mutated bytes."""
        at = int(self.place * len(content))
        piece = content[at : at + self.length]
        match self.action:
            case "cut":
                return content[:at] + content[at + self.length :]
            case "end":
                return content[:at]
            case "repeat":
                return content[:at] + (piece * self.times)[:MAX_BYTES] + content[at:]
            case "replace":
                return content[:at] + self.token + content[at + len(self.token) :]
            case "move":
                return piece + content[:at] + content[at + self.length :]
        return content[:at] + (self.token * self.times)[:MAX_BYTES] + content[at:]


def _build_mutations(family: str) -> st.SearchStrategy[list[Mutation]]:
    tokens = TOKENS[family] + (TOKENS["text"] if family != "zip" else ())
    change = st.builds(
        Mutation,
        st.sampled_from(["insert", "insert", "replace", "repeat", "cut", "move", "end"]),
        st.floats(0, 1),
        st.sampled_from([1, 2, 4, 10, 40, 200, 2000]),
        st.one_of(st.sampled_from(tokens), st.binary(min_size=1, max_size=6)),
        st.sampled_from([1, 1, 1, 2, 3, 30, 1000, 20_000]),
    )
    return st.lists(change, max_size=5)


@dataclass(frozen=True)
class MutatedFile:
    """Seed file and its mutations: of parts of an archive first (by number), then of the bytes."""

    format: str
    seed: bytes = field(repr=False)
    parts: Sequence[tuple[int, list[Mutation]]]
    changes: list[Mutation]

    @property
    def content(self) -> bytes:
        """Mutated content of the file."""
        content = _mutate_parts(self.seed, self.parts) if self.parts else self.seed
        for change in self.changes:
            content = change.apply(content)[:MAX_BYTES]
        return content or b" "


def _mutate_parts(archive: bytes, changed: Sequence[tuple[int, list[Mutation]]]) -> bytes:
    parts = list_parts(archive)
    for number, changes in changed:
        name, content = parts[number % len(parts)]
        for change in changes:
            content = change.apply(content)[:MAX_BYTES]
        parts[number % len(parts)] = (name, content)
    return build_archive(dict(parts))


def build_files(format: str) -> st.SearchStrategy[MutatedFile]:
    """Return a strategy of files of that format with up to five mutations."""
    seeds = st.sampled_from(SEEDS[format])
    if format not in ("xlsx", "ods", "zip", "xlsb"):
        family = _FAMILY.get(format, "zip")
        return st.builds(MutatedFile, st.just(format), seeds, st.just(()), _build_mutations(family))
    inside = st.lists(st.tuples(st.integers(0, 9), _build_mutations("xml")), min_size=1, max_size=3)
    parts = st.builds(MutatedFile, st.just(format), seeds, inside, st.just([]))
    return st.one_of(parts, parts, st.builds(MutatedFile, st.just(format), seeds, st.just(()), _build_mutations("zip")))
