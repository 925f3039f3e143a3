"""Pages of an API are decoded on an event loop, so their size is bounded."""

import json

import pytest

from connectors.sdk import BadData
from connectors.sdk.context import MIB, Limits
from connectors.sdk.readers.json_stream import decoded_page

LARGEST = {
    "products": json.dumps([{"id": n, "html": 'a "b"' * 400, "tags": ["x"] * 40} for n in range(2_500)]).encode(),
    "escapes": b'["' + b"\\n" * 4_000_000 + b'"]',
    "blanks": b"[" + b" " * 8_000_000 + b"]",
    "numbers": b"[" + b"1," * 999_000 + b"1]",
    "empties": b"[" + b"{}," * 499_000 + b"{}]",
}


@pytest.mark.parametrize("body", LARGEST.values(), ids=LARGEST.keys())
def test_the_largest_pages_are_read(body: bytes) -> None:
    assert len(body) <= Limits().page_bytes == 8 * MIB
    assert isinstance(decoded_page(body), list)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "not valid JSON"),
        (b'{"a": [1, 2', "line 1, column"),
        (b"\xff[]", "not UTF-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"[" + b"[],{}," * 400_000 + b"{}]", "more than 1,000,000 entries"),
    ],
)
def test_others_are_refused(body: bytes, fault: str) -> None:
    with pytest.raises(BadData, match=fault):
        decoded_page(body)
