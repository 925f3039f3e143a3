"""Where a message ends, in whatever pieces it comes."""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrypoints.mail.peers import ConnectionLimits
from entrypoints.mail.session import MAX_LINE_BYTES, InvalidLineEnd, MessageReceiver, ReceivedMessage

LINE = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b".", b"..", b". ", b"..x", b".\t."])).map(
    lambda line: line.translate(None, b"\r\n")
)


async def _received(wire: bytes, cuts: list[int]) -> tuple[ReceivedMessage, bytes, ConnectionLimits]:
    """What is made of the bytes, fed in pieces that end at the cuts, and what is left with the reader."""
    reader, peers = asyncio.StreamReader(), ConnectionLimits(1, 1)
    receiving = MessageReceiver(reader, peers)
    places = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]

    async def feed() -> None:
        for start, end in itertools.pairwise(places):
            if end > start:
                reader.feed_data(wire[start:end])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.create_task(feed())
    try:
        received = await receiving.receive()
        await feeding
        return received, await reader.read(), peers
    finally:
        feeding.cancel()
        receiving.release_memory()
        assert peers.message_bytes.amount_in_use == 0


def stuffed(lines: list[bytes]) -> bytes:
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINE, max_size=8), st.binary(max_size=10), st.lists(st.integers(0, 200), max_size=12))
def test_the_text_and_what_follows_it(lines: list[bytes], rest: bytes, cuts: list[int]) -> None:
    received, left, _ = asyncio.run(_received(stuffed(lines) + b".\r\n" + rest, cuts))
    assert bytes(received.body) == b"".join(line + b"\r\n" for line in lines)
    assert received.is_complete and left == rest


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LINE, max_size=5),
    st.sampled_from([b"\n", b"x\n", b"\r\r\n", b"x\ry\r\n", b"\n.\n", b"\n.\r\n", b"\r.\r\n", b".\n", b".\r\r\n"]),
    st.lists(LINE, max_size=5),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_bare_line_ends_are_never_text(before: list[bytes], bare: bytes, after: list[bytes], cuts: list[int]) -> None:
    with pytest.raises(InvalidLineEnd):
        asyncio.run(_received(stuffed(before) + bare + stuffed(after) + b".\r\n", cuts))


def test_long_lines_are_reported_at_any_position() -> None:
    for wire in (b"x" * (MAX_LINE_BYTES + 1) + b"\r\n", b"a\r\n" * 50_000 + b"x" * (3 * MAX_LINE_BYTES) + b"\r\nb\r\n"):
        for cuts in ([], [100_000], list(range(0, len(wire), 40_000))):
            received, left, _ = asyncio.run(_received(wire + b".\r\nQUIT\r\n", cuts))
            assert received.has_long_line and not received.is_complete and left == b"QUIT\r\n"
    received, _, _ = asyncio.run(_received(b"x" * (MAX_LINE_BYTES - 10) + b"\r\n.\r\n", []))
    assert received.is_complete


def test_what_is_held_is_counted_by_the_mebibyte() -> None:
    received, _, _ = asyncio.run(_received((b"x" * 98 + b"\r\n") * 25_000 + b".\r\n", []))
    assert len(received.body) == 2_500_000 and received.reserved_bytes == 0


def test_nothing_is_given_back_to_a_reader_that_has_ended() -> None:
    async def ended() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(b"Subject: x\r\n.\r\nQUIT\r\n")
        reader.feed_eof()
        return bytes((await MessageReceiver(reader, ConnectionLimits(1, 1)).receive()).body)

    assert asyncio.run(ended()) == b"Subject: x\r\n"


def test_a_message_without_end_is_not_waited_for() -> None:
    with pytest.raises(ConnectionResetError):
        asyncio.run(_received(b"Subject: x\r\n", []))
