"""JSON, JSON Lines, XML and Google Merchant feeds as files."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from connectors.sdk import BadData, Limits

Records = Callable[..., list[Mapping[str, Any]]]

RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><title>Shop</title>
<item><title>plain</title><g:title>Sofa &amp; more</g:title><g:id>A1</g:id><g:price>15.00 USD</g:price>
<g:additional_image_link>https://a.example/1.jpg</g:additional_image_link>
<g:additional_image_link>https://a.example/2.jpg</g:additional_image_link>
<g:shipping><g:country>US</g:country><g:price>0 USD</g:price></g:shipping></item>
<item><g:id>B2</g:id><g:title>Bed</g:title></item></channel></rss>"""


def test_array_of_records_with_exact_numbers(records: Records) -> None:
    got = records(
        b'[{"sku": "A", "price": 19.90, "qty": 3, "big": 12345678901234567890.123456789, "ok": true, "no": null}]'
    )
    assert got == [
        {"sku": "A", "price": Decimal("19.90"), "qty": 3, "big": Decimal("12345678901234567890.123456789"), "ok": True,
         "no": ""}
    ]  # fmt: skip
    assert str(got[0]["price"]) == "19.90"


@pytest.mark.parametrize(
    "content",
    [
        b'{"products": [{"sku": "A"}, {"sku": "B"}]}',
        b'{"n": 2, "errors": [{}], "data": {"meta": {}, "page": {"items": [{"sku": "A"}, {"sku": "B"}]}}, "z": 1}',
        b'{"sku": "A"}\n{"sku": "B"}\n',
        b'\xef\xbb\xbf[{"sku": "A"},\n{"sku": "B"}]',
        '[{"sku": "A"}, {"sku": "B"}]'.encode("utf-16"),
    ],
    ids=["object", "deep", "lines", "bom", "utf-16"],
)
def test_records_are_found(records: Records, content: bytes) -> None:
    assert [record["sku"] for record in records(content)] == ["A", "B"]


def test_records_path(records: Records) -> None:
    content = b'{"other": [{"sku": "X"}], "a": {"b": [{"sku": "A"}, 7, {"sku": "B"}]}}'
    assert [record["sku"] for record in records(content, records_path="a.b")] == ["A", "B"]
    with pytest.raises(BadData, match="records_path"):
        records(content, records_path="a.c")


def test_objects_become_columns_and_variants_rows(reader: Any) -> None:
    content = (
        b'[{"id": 1, "brand": {"name": "Maker", "at": {"city": "Oslo"}}, "tags": ["a", "b"], "images": [{"src": "u"}],'
        b' "variants": [{"sku": "A", "size": {"w": 1.5}}, {"sku": "B"}]}, {"id": 2, "variants": []}]'
    )
    headers, rows = reader.read_table(content)
    assert headers == (
        "id",
        "brand.name",
        "brand.at.city",
        "tags",
        "images",
        "variants.sku",
        "variants.size.w",
        "variants",
    )
    assert rows == [
        (1, [1, "Maker", "Oslo", ["a", "b"], [{"src": "u"}], "A", Decimal("1.5"), None]),
        (1, [1, "Maker", "Oslo", ["a", "b"], [{"src": "u"}], "B", None, None]),
        (2, [2, None, None, None, None, None, None, []]),
    ]


def test_variants_path(records: Records) -> None:
    content = b'[{"id": 1, "skus": {"list": [{"c": "A"}, {"c": "B"}]}}]'
    assert [row["skus.list.c"] for row in records(content, variants_path="skus.list")] == ["A", "B"]


def test_late_columns_are_reported_once(reader: Any) -> None:
    lines = [b'{"sku": "A%d"}' % number for number in range(205)] + [b'{"sku": "Z", "late": 1}'] * 3
    headers, rows = reader.read_table(b"\n".join(lines))
    assert headers == ("sku",)
    assert len(rows) == 208
    assert [(report.column, report.line) for report in reader.context.reports] == [("late", 206)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"products": []}', "no records"),
        (b"[]", "no records"),
        (b'[{"a": 1}, {"a": ', "not valid JSON"),
        (b'[{"a": NaN}]', "NaN"),
        (b"[" * 100_000, "nested too deeply|not valid JSON"),
        (b'{"a": 1}\n{"a": 2}\n{oops\n', "line 3"),
        (b'[{"a": "' + b"x" * 2_000_000 + b'"}]', "larger than 1 MiB"),
        (b'[{"a": 1e' + b"9" * 2000 + b"}]", "not valid JSON"),
    ],
)
def test_bad_json(reader: Any, content: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content, limits=Limits(record_bytes=1024 * 1024))


def test_large_documents_are_read_element_by_element(reader: Any) -> None:
    content = b'{"items": [' + b",".join(b'{"sku": "%07d", "n": %d}' % (n, n) for n in range(60_000)) + b"]}"
    _, rows = reader.read_table(content)
    assert len(rows) == 60_000
    assert rows[-1] == (60_000, ["0059999", 59_999])


def test_google_merchant(records: Records) -> None:
    got = records(RSS.encode(), format="google_merchant")
    assert got[0]["title"] == "Sofa & more"
    assert got[0]["additional_image_link"] == ["https://a.example/1.jpg", "https://a.example/2.jpg"]
    assert got[0]["shipping.country"] == "US"
    assert [record["id"] for record in got] == ["A1", "B2"]


def test_xml_without_usual_names(records: Records) -> None:
    content = b"<Stock><Made>now</Made><Sofa code='1'><Qty>3</Qty></Sofa><Sofa code='2'><Qty>4</Qty></Sofa></Stock>"
    assert records(content) == [{"@code": "1", "Qty": "3"}, {"@code": "2", "Qty": "4"}]
    assert records(content, records_path="Stock.Sofa")[1]["Qty"] == "4"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><x><item><a>&b;</a></item></x>', "DOCTYPE or entity"),
        (b'<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><x><item><a>1</a></item></x>', "DOCTYPE or entity"),
        (b"<x><item><a>1</a></x>", "not valid XML"),
        (b"<x>only text</x>", "no repeated element"),
        (b'<?xml version="1.0" encoding="no-such"?><x><item><a>1</a></item></x>', "send it as UTF-8"),
        (b"<x><item>" + b"<a>" * 200 + b"</a>" * 200 + b"</item></x>", "nested too deeply"),
        (b"<x><item><a>" + b"y" * 2_000_000 + b"</a></item></x>", "larger than 1 MiB"),
    ],
)
def test_bad_xml(reader: Any, content: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content, limits=Limits(record_bytes=1024 * 1024))


@pytest.mark.parametrize(("stated", "message"), [("xml", "not XML"), ("json", "not JSON"), ("xlsx", "not an Excel")])
def test_settings_that_contradict_the_file(reader: Any, stated: str, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(b"SKU,Qty\nA,1\n", format=stated)
