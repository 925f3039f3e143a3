"""Data files compressed by gzip or zip, once or twice, and compression bombs."""

import gzip
import io
import zipfile
from typing import Any

import pytest

from connectors.sdk import BadData, Limits
from tests.connectors.workbook_writers import build_ods, build_xls, build_xlsb

ROWS = [["SKU", "Qty"], ["A-1", 3]]
X12 = (
    "ISA*00*          *00*          *ZZ*ACME           *ZZ*SHOP           *261120*0600*U*00401*000000001*0*P*>~"
    "GS*IB*ACME*SHOP*20261120*0600*1*X*004010~ST*846*0001~BIA*00*SI*1*20261120~LIN*1*VN*A-1~QTY*33*3*EA~CTT*1~SE*6*0001~GE*1*1~"
    "IEA*1*000000001~"
)
FILES: dict[str, bytes] = {
    "csv": b"SKU,Qty\nA-1,3\n",
    "tsv": b"SKU\tQty\nA-1\t3\n",
    "pipes": b"SKU|Qty\nA-1|3\n",
    "semicolons": b"SKU;Qty\nA-1;3\n",
    "json": b'[{"SKU": "A-1", "Qty": 3}]',
    "jsonl": b'{"SKU": "A-1", "Qty": 3}\n{"SKU": "A-2", "Qty": 3}\n',
    "xml": b"<list><item><SKU>A-1</SKU><Qty>3</Qty></item></list>",
    "x12": X12.encode(),
    "xls": build_xls({"S": ROWS}),
    "ods": build_ods({"S": ROWS}),
    "xlsb": build_xlsb({"S": ROWS}),
}


def build_zip(files: dict[str, bytes]) -> bytes:
    """Return a ZIP archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("how", ["gzip", "zip", "gzip in zip", "two members"])
def test_compressed_files_of_each_format_are_read(reader: Any, kind: str, how: str) -> None:
    content = FILES[kind]
    packed = {
        "gzip": gzip.compress(content, mtime=0),
        "zip": build_zip({"out/": b"", f"out/feed.{kind}": content, "__MACOSX/._feed": b"x", "out/.DS_Store": b"x"}),
        "gzip in zip": build_zip({"feed.gz": gzip.compress(content, mtime=0)}),
        "two members": gzip.compress(content[:5], mtime=0) + gzip.compress(content[5:], mtime=0) + b"\0" * 8,
    }[how]
    (table, rows), *_ = reader(packed)
    cells = dict(zip(table.headers, rows[0][1], strict=True))
    assert cells["SKU"] == "A-1"
    assert str(cells.get("Qty", cells.get("Quantity"))) == "3"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (build_zip({"a.csv": b"x", "b.csv": b"y"}), "2 files"),
        (build_zip({"__MACOSX/._a": b"x"}), "no file"),
        (gzip.compress(gzip.compress(gzip.compress(b"SKU\nA", mtime=0), mtime=0), mtime=0), "archive in an archive"),
        (build_zip({"a.zip": build_zip({"b.zip": build_zip({"c.csv": b"SKU\nA\n"})})}), "archive in an archive"),
        (gzip.compress(b"SKU,Qty\nA-1,3\n", mtime=0)[:-5], "damaged or incomplete"),
        (gzip.compress(b"SKU,Qty\nA-1,3\n", mtime=0)[:12] + b"\xff" * 9, "damaged or incomplete"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
)
def test_unsupported_archives_are_refused(reader: Any, content: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content)


@pytest.mark.parametrize("bomb", ["gzip", "zip"])
def test_compression_bombs_are_refused(reader: Any, bomb: str) -> None:
    content = b"\0" * (20 << 20)
    packed = gzip.compress(content, mtime=0) if bomb == "gzip" else build_zip({"a.csv": content})
    with pytest.raises(BadData, match="larger than|too large|bomb"):
        reader(packed, limits=Limits(unpacked_bytes=4 << 20))
