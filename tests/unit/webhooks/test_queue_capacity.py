"""How far ahead events are taken out of the log: for endpoints that do well, that wait a window, and that fail."""

import asyncio
from datetime import timedelta

import pytest

from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.webhooks.usecases import endpoint_queue as module
from domain.webhooks.usecases.endpoint_queue import FAILING_THRESHOLD, MAX_READ_EVENTS, EndpointQueue, QueuedDelivery
from tests.support import builders
from tests.unit.webhooks.test_endpoint_queue import LATER, SUCCEEDED, end, event, queue, take

pytestmark = pytest.mark.asyncio


async def has_room(made: EndpointQueue) -> int | None:
    """How many events may be taken, None if it has to be waited for."""
    try:
        return await asyncio.wait_for(made.wait_for_room(), 0.05)
    except TimeoutError:
        return None


def fill(made: EndpointQueue, count: int, first: int = 1) -> list[QueuedDelivery]:
    """Take in that many events of as many subjects."""
    return [take(made, event(number, f"ofr_{number}")) for number in range(first, first + count)]


def attempt(made: EndpointQueue, *, succeeds: bool) -> QueuedDelivery:
    """Send what is next."""
    item = made.take_next()
    assert item is not None
    end(made, item, SUCCEEDED if succeeds else LATER)
    return item


async def test_first_attempts_use_up_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT", 3)
    made = queue()
    fill(made, 2)
    assert await has_room(made) == MAX_READ_EVENTS
    fill(made, 1, first=3)
    assert await has_room(made) is None
    waiting = asyncio.create_task(made.wait_for_room())
    await asyncio.sleep(0)
    attempt(made, succeeds=True)
    assert await waiting == MAX_READ_EVENTS


async def test_deliveries_waiting_for_their_window_leave_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT", 3)
    monkeypatch.setattr(module, "MAX_OPEN_DELIVERIES", 6)
    made = queue(coalesce_seconds=300)
    fill(made, 5)
    assert await has_room(made) == MAX_READ_EVENTS
    fill(made, 1, first=6)
    assert await has_room(made) is None


async def test_the_window_begins_when_it_happened() -> None:
    made = queue(coalesce_seconds=300)
    dues = []
    for number, age in enumerate((0.0, 100.0, 1_000.0), start=1):
        logged = event(number, f"ofr_{number}")
        dues.append(made.add_event(logged, 50.0, builders.MOMENT + timedelta(seconds=age)).due_at)
    assert dues == [350.0, 250.0, 50.0]


async def test_a_failing_endpoint_gets_less_room_and_occasional_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_FAILING", FAILING_THRESHOLD)
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.01)
    made = queue()
    fill(made, FAILING_THRESHOLD)
    for _ in range(FAILING_THRESHOLD - 1):
        attempt(made, succeeds=False)
    assert await has_room(made) == MAX_READ_EVENTS
    attempt(made, succeeds=False)
    assert await made.wait_for_room() == 1
    made.set_read_position(FeedPosition(LogPosition(position=50)))
    monkeypatch.setattr(module, "PROBE_SECONDS", 3_600)
    assert await made.wait_for_room() == 1, "that one was not wanted: the next"
    take(made, event(51, "ofr_1"))
    assert await made.wait_for_room() == 1, "that one waits behind another of its subject: the next"
    [probe] = fill(made, 1, first=52)
    assert await has_room(made) is None, "this one can be sent"
    assert attempt(made, succeeds=False) is probe
    assert await has_room(made) is None, "and the next has to wait"
    fill(made, 1, first=53)
    attempt(made, succeeds=True)
    assert await has_room(made) == MAX_READ_EVENTS
