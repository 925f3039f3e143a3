"""CSV, JSON and XML files designed to exhaust memory or time: read within limits, or refused with a reason."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.isolated_reading import MIB, read_isolated

MOST_MIB = 160
"""Permitted additional memory for reading any 20 MB: a record, its values, and buffers."""

CSV_FILES: dict[str, Callable[[], bytes]] = {
    "open quotes over lines": lambda: b"SKU,Qty\n" + (b"ab," * 6_000 + b'"\n",') * 1_000,
    "one line": lambda: b"SKU,Qty\n" + b"ab," * 7_000_000,
    "lines of many values": lambda: b"SKU,Qty\n" + (b"ab," * 600_000 + b"\n") * 11,
    "wide rows": lambda: b"SKU,Qty\n" + (b"ab," * 40_000 + b"\n") * 160,
    "many columns": lambda: (b",".join(b"c%d" % at for at in range(45_000)) + b"\n") * 60,
    "zero bytes": lambda: b"SKU,Qty\n" + b"\0" * 20 * MIB,
    "lone returns": lambda: b"SKU,Qty\r" + b"a,1\r" * 5_000_000,
    "quotes": lambda: b"SKU,Qty\n" + b'"' * 20_000_000,
    "quoted quotes": lambda: b"SKU,Qty\n" + b'"",' * 6_000_000,
    "blank lines": lambda: b"SKU,Qty\n" + b"\n" * 20_000_000,
    "a long value in each row": lambda: b"SKU,Qty\n" + (b"a," + b"x" * 900_000 + b"\n") * 22,
    "broken characters": lambda: b"SKU,Qty\n" + b"a,\xff\xfe\xc3\n" * 3_000_000,
}
JSON_FILES: dict[str, Callable[[], bytes]] = {
    "one text": lambda: b'[{"a": "' + b"x" * 20_000_000 + b'"}]',
    "one text of thick characters": lambda: b'[{"a": "' + "😀".encode() * 5_000_000 + b'"}]',
    "one record of lists": lambda: b'[{"a": [' + b"[]," * 6_000_000 + b"[]]}]",
    "one record of numbers": lambda: b'[{"a": [' + b"1.5," * 5_000_000 + b"1]}]",
    "one record of names": lambda: b'[{"a":{' + b",".join(b'"k%d":1' % at for at in range(1_500_000)) + b"}}]",
    "one line of records": lambda: b'{"a": [' + b'{"b": 1.5},' * 1_500_000 + b"{}]}\n" + b'{"a": 1}\n',
    "no records": lambda: b'{"a": 1,' + b",".join(b'"k%d": {"b": 1.5}' % at for at in range(800_000)) + b"}",
    "records as large as they may be": lambda: (b'{"sku": "a", "b": "' + b"x" * 6_000_000 + b'"}\n') * 4,
    "deep": lambda: b"[" * 20_000_000,
    "deep in a record": lambda: b'[{"a": ' + b'{"a": ' * 2_000_000,
    "a long number": lambda: b'[{"a": ' + b"1" * 10_000_000 + b"}]",
    "a long fraction": lambda: b'[{"a": 1.' + b"1" * 10_000_000 + b"}]",
    "a long name": lambda: b'[{"' + b"a" * 20_000_000 + b'": 1}]',
    "names that never come again": lambda: b"".join(b'{"sku": "a", "k%d": 1}\n' % at for at in range(700_000)),
    "many columns": lambda: b"[{" + b",".join(b'"k%d": 1' % at for at in range(900_000)) + b"}]",
    "many variants of wide records": lambda: json.dumps(
        [{**{f"k{at}": "x" * 3_000 for at in range(900)}, "variants": [{}] * 400_000}]
    ).encode(),
}
XML_FILES: dict[str, Callable[[], bytes]] = {
    "a repeated child": lambda: b"<r><item>" + b"<a>1</a>" * 2_000_000 + b"</item></r>",
    "attributes": lambda: b"<r><item>" + b'<a b="1" c="2" d="3"/>' * 900_000 + b"</item></r>",
    "many attributes of one": lambda: b"<r><item " + b" ".join(b'a%d="1"' % at for at in range(1_500_000)) + b"/></r>",
    "one attribute": lambda: b'<r><item a="' + b"x" * 20_000_000 + b'"/></r>',
    "text": lambda: b"<r><item><a>" + b"x" * 20_000_000 + b"</a></item></r>",
    "references": lambda: b"<r><item><a>" + b"&lt;" * 5_000_000 + b"</a></item></r>",
    "a comment": lambda: b"<r><!--" + b"x" * 20_000_000 + b"--><item><a>1</a></item></r>",
    "an open comment": lambda: b"<r><item><a>1</a></item><!--" + b"x" * 20_000_000,
    "an open tag": lambda: b"<r><item><a>1</a></item><" + b"x" * 20_000_000,
    "what stands before": lambda: b"<r><head>" + b"<a><b>1</b></a>" * 1_300_000 + b"</head><item><a>1</a></item></r>",
    "names": lambda: b"<r>" + b"".join(b"<n%d/>" % at for at in range(1_500_000)) + b"<item><a>1</a></item></r>",
    "names in records": lambda: b"<r>" + b"".join(b"<item><n%d>1</n%d></item>" % (at, at) for at in range(600_000)) + b"</r>",
    "deep": lambda: b"<r>" + b"<a>" * 6_000_000,
    "parents": lambda: b"<r>" + b"".join(b"<n%d><m/></n%d>" % (at, at) for at in range(1_000_000)) + b"</r>",
    "blanks": lambda: b"<r>" + b" " * 20_000_000 + b"<item><a>1</a></item></r>",
    "a namespace a child": lambda: b"<r>" + b"".join(b'<item xmlns:p="u:%d"><p:a>1</p:a></item>' % at for at in range(500_000)) + b"</r>",
}  # fmt: skip
FILES = {
    **{f"csv, {name}": made for name, made in CSV_FILES.items()},
    **{f"json, {name}": made for name, made in JSON_FILES.items()},
    **{f"xml, {name}": made for name, made in XML_FILES.items()},
}


def _select_quick_cases(names: Iterable[str]) -> list[Any]:
    """Select every fourth case for normal runs and the others for soak tests, because each takes seconds."""
    return [pytest.param(name, marks=pytest.mark.soak if at % 4 else ()) for at, name in enumerate(names)]


@pytest.mark.parametrize("name", _select_quick_cases(FILES))
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    found = read_isolated(FILES[name](), tmp_path)
    assert found.mib < MOST_MIB, f"{found.mib} MiB, {found.message}"


def test_repeated_children_take_linear_time(tmp_path: Path) -> None:
    few, many = (
        read_isolated(b"<r><item>" + b"<a>1</a>" * count + b"</item></r>", tmp_path) for count in (10_000, 40_000)
    )
    assert (few.rows, many.rows) == (1, 1)
    assert many.seconds < max(6 * few.seconds, 1.0)


def test_a_record_of_many_variants_keeps_the_first(tmp_path: Path) -> None:
    wide = [{"text": "x" * MIB, "variants": [{"sku": str(at)} for at in range(1_000)]}]
    assert read_isolated(json.dumps(wide).encode(), tmp_path).rows == 63
    plain = [{"title": "Sofa", "variants": [{"sku": str(at)} for at in range(4_000)]}]
    assert read_isolated(json.dumps(plain).encode(), tmp_path).rows == 4_000
