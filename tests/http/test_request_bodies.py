"""Request bodies: minimum pace, unread rest and number of buffered bodies."""

import asyncio
from typing import Any

import pytest

from domain.kernel.errors import InvalidRequest, PayloadTooLarge
from entrypoints.http import body as incoming_body
from entrypoints.http.body import BodyTooSlow, IncomingBody, MinimumRate

pytestmark = pytest.mark.asyncio


def create_receive(pieces: list[tuple[float, bytes]]) -> Any:
    """Create a `receive` that returns each chunk after its delay in seconds and then blocks."""
    left = list(pieces)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        pause, piece = left.pop(0)
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": piece, "more_body": bool(left) or piece != b"end"}

    return receive


async def test_slow_bodies_time_out() -> None:
    pace = MinimumRate(grace_seconds=10, max_pause_seconds=5, bytes_per_second=100)
    assert pace.compute_remaining_seconds(0, 0) == 5, "never silent for longer"
    assert pace.compute_remaining_seconds(8, 0) == 2, "the grace ends"
    assert pace.compute_remaining_seconds(14, 500) == 1, "what came buys time"
    assert pace.compute_remaining_seconds(14, 100) < 0
    assert pace.compute_remaining_seconds(1000, 1 << 30) == 5, "but no more silence"


async def test_trickling_bodies_are_aborted() -> None:
    body = IncomingBody(create_receive([(0.05, b"x")] * 100))
    pace, taken = MinimumRate(grace_seconds=0.3, max_pause_seconds=0.2, bytes_per_second=1000), 0
    with pytest.raises(BodyTooSlow):
        async for piece in body.iter_chunks(pace):
            taken += len(piece)
    assert 2 <= taken <= 20


async def test_a_steady_sender_is_not_limited_in_total_time() -> None:
    body = IncomingBody(create_receive([(0.05, b"x" * 100)] * 20 + [(0.0, b"end")]))
    assert (
        len(
            b"".join(
                [
                    piece
                    async for piece in body.iter_chunks(
                        MinimumRate(grace_seconds=0.3, max_pause_seconds=0.3, bytes_per_second=500)
                    )
                ]
            )
        )
        == 2003
    )


async def test_the_readers_time_does_not_count_as_the_senders() -> None:
    body = IncomingBody(create_receive([(0.0, b"x")] * 5 + [(0.0, b"end")]))
    async for _ in body.iter_chunks(MinimumRate(grace_seconds=0.2, max_pause_seconds=0.2, bytes_per_second=1000)):
        await asyncio.sleep(0.1)


async def test_bodies_are_read_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await IncomingBody(create_receive([(0.0, b"a"), (0.0, b"end")])).read(4) == b"aend"
    with pytest.raises(PayloadTooLarge):
        await IncomingBody(create_receive([(0.0, b"aa"), (0.0, b"end")])).read(4)
    monkeypatch.setattr(incoming_body, "JSON_MINIMUM_RATE", MinimumRate(0.1, 0.1, 100))
    with pytest.raises(InvalidRequest, match="too slowly"):
        await IncomingBody(create_receive([(0.0, b"a")])).read(4)
