"""Pages of an API are decoded in a thread that cannot be stopped, so their size is limited."""

import asyncio
import json
import sys

import pytest

from connectors.sdk import BadData
from connectors.sdk.context import MIB, Limits
from connectors.sdk.readers.json_stream import decode_page

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
    assert isinstance(asyncio.run(decode_page(body)), list)


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
def test_larger_pages_are_refused(body: bytes, fault: str) -> None:
    with pytest.raises(BadData, match=fault):
        asyncio.run(decode_page(body))


async def _count_turns_during(body: bytes) -> int:
    decoding, turns = asyncio.ensure_future(decode_page(body)), 0
    while not decoding.done():
        await asyncio.sleep(0)
        turns += 1
    await decoding
    return turns


def test_a_page_of_fractions_does_not_block_the_event_loop() -> None:
    switches = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        assert asyncio.run(_count_turns_during(b"[" + b"1.5," * 99_999 + b"1.5]")) > 10
    finally:
        sys.setswitchinterval(switches)
