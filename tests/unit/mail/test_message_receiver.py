"""The end of a message is detected for any fragmentation of the stream."""

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


async def _receive(wire: bytes, cuts: list[int]) -> tuple[ReceivedMessage, bytes, ConnectionLimits]:
    """Receive the bytes in pieces that end at the cuts; return the message, the unread bytes and the limits."""
    reader, peers = asyncio.StreamReader(), ConnectionLimits(1, 1)
    receiver = MessageReceiver(reader, peers)
    offsets = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]

    async def feed() -> None:
        for start, end in itertools.pairwise(offsets):
            if end > start:
                reader.feed_data(wire[start:end])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.create_task(feed())
    try:
        received = await receiver.receive()
        await feeding
        return received, await reader.read(), peers
    finally:
        feeding.cancel()
        receiver.release_memory()
        assert peers.message_bytes.amount_in_use == 0


def stuff_dots(lines: list[bytes]) -> bytes:
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINE, max_size=8), st.binary(max_size=10), st.lists(st.integers(0, 200), max_size=12))
def test_text_after_the_end_of_a_message_stays_unread(lines: list[bytes], rest: bytes, cuts: list[int]) -> None:
    received, left, _ = asyncio.run(_receive(stuff_dots(lines) + b".\r\n" + rest, cuts))
    assert bytes(received.body) == b"".join(line + b"\r\n" for line in lines)
    assert received.is_complete and left == rest


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LINE, max_size=5),
    st.sampled_from([b"\n", b"x\n", b"\r\r\n", b"x\ry\r\n", b"\n.\n", b"\n.\r\n", b"\r.\r\n", b".\n", b".\r\r\n"]),
    st.lists(LINE, max_size=5),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_bare_line_ends_are_refused(before: list[bytes], bare: bytes, after: list[bytes], cuts: list[int]) -> None:
    with pytest.raises(InvalidLineEnd):
        asyncio.run(_receive(stuff_dots(before) + bare + stuff_dots(after) + b".\r\n", cuts))


def test_long_lines_are_reported_at_any_position() -> None:
    for wire in (b"x" * (MAX_LINE_BYTES + 1) + b"\r\n", b"a\r\n" * 50_000 + b"x" * (3 * MAX_LINE_BYTES) + b"\r\nb\r\n"):
        for cuts in ([], [100_000], list(range(0, len(wire), 40_000))):
            received, left, _ = asyncio.run(_receive(wire + b".\r\nQUIT\r\n", cuts))
            assert received.has_long_line and not received.is_complete and left == b"QUIT\r\n"
    received, _, _ = asyncio.run(_receive(b"x" * (MAX_LINE_BYTES - 10) + b"\r\n.\r\n", []))
    assert received.is_complete


def test_memory_is_reserved_by_the_mebibyte() -> None:
    received, _, _ = asyncio.run(_receive((b"x" * 98 + b"\r\n") * 25_000 + b".\r\n", []))
    assert len(received.body) == 2_500_000 and received.reserved_bytes == 0


def test_nothing_is_returned_to_a_closed_stream() -> None:
    async def receive() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(b"Subject: x\r\n.\r\nQUIT\r\n")
        reader.feed_eof()
        return bytes((await MessageReceiver(reader, ConnectionLimits(1, 1)).receive()).body)

    assert asyncio.run(receive()) == b"Subject: x\r\n"


def test_a_message_without_an_end_is_an_error() -> None:
    with pytest.raises(ConnectionResetError):
        asyncio.run(_receive(b"Subject: x\r\n", []))
