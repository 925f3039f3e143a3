"""Number of events read ahead for endpoints that succeed, that wait for a window, and that fail."""

import asyncio
from datetime import timedelta

import pytest

from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.webhooks.usecases import endpoint_queue as module
from domain.webhooks.usecases.endpoint_queue import FAILING_THRESHOLD, MAX_READ_EVENTS, EndpointQueue, QueuedDelivery
from tests.support import builders
from tests.unit.webhooks.test_endpoint_queue import LATER, SUCCEEDED, add_event, create_event, create_queue, end_attempt

pytestmark = pytest.mark.asyncio


async def wait_for_room(queue: EndpointQueue) -> int | None:
    """Return the number of events that may be added, or None if there is no room."""
    try:
        return await asyncio.wait_for(queue.wait_for_room(), 0.05)
    except TimeoutError:
        return None


def add_events(queue: EndpointQueue, count: int, first: int = 1) -> list[QueuedDelivery]:
    """Add that many events of as many subjects."""
    return [add_event(queue, create_event(number, f"ofr_{number}")) for number in range(first, first + count)]


def attempt_next(queue: EndpointQueue, *, succeeds: bool) -> QueuedDelivery:
    """Attempt the next delivery."""
    item = queue.take_next()
    assert item is not None
    end_attempt(queue, item, SUCCEEDED if succeeds else LATER)
    return item


async def test_first_attempts_use_up_the_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT", 3)
    made = create_queue()
    add_events(made, 2)
    assert await wait_for_room(made) == MAX_READ_EVENTS
    add_events(made, 1, first=3)
    assert await wait_for_room(made) is None
    waiting = asyncio.create_task(made.wait_for_room())
    await asyncio.sleep(0)
    attempt_next(made, succeeds=True)
    assert await waiting == MAX_READ_EVENTS


async def test_deliveries_waiting_for_their_window_use_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT", 3)
    monkeypatch.setattr(module, "MAX_OPEN_DELIVERIES", 6)
    made = create_queue(coalesce_seconds=300)
    add_events(made, 5)
    assert await wait_for_room(made) == MAX_READ_EVENTS
    add_events(made, 1, first=6)
    assert await wait_for_room(made) is None


async def test_the_window_starts_at_the_time_of_the_event() -> None:
    made = create_queue(coalesce_seconds=300)
    dues = []
    for number, age in enumerate((0.0, 100.0, 1_000.0), start=1):
        logged = create_event(number, f"ofr_{number}")
        dues.append(made.add_event(logged, 50.0, builders.MOMENT + timedelta(seconds=age)).due_at)
    assert dues == [350.0, 250.0, 50.0]


async def test_a_failing_endpoint_has_less_capacity_and_occasional_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_FAILING", FAILING_THRESHOLD)
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.01)
    made = create_queue()
    add_events(made, FAILING_THRESHOLD)
    for _ in range(FAILING_THRESHOLD - 1):
        attempt_next(made, succeeds=False)
    assert await wait_for_room(made) == MAX_READ_EVENTS
    attempt_next(made, succeeds=False)
    assert await made.wait_for_room() == 1
    made.set_read_position(FeedPosition(LogPosition(position=50)))
    monkeypatch.setattr(module, "PROBE_SECONDS", 3_600)
    assert await made.wait_for_room() == 1, "the event is not selected: read the next"
    add_event(made, create_event(51, "ofr_1"))
    assert await made.wait_for_room() == 1, "the event waits for another of its subject: read the next"
    [probe] = add_events(made, 1, first=52)
    assert await wait_for_room(made) is None, "the event can be sent"
    assert attempt_next(made, succeeds=False) is probe
    assert await wait_for_room(made) is None, "the next event has to wait"
    add_events(made, 1, first=53)
    attempt_next(made, succeeds=True)
    assert await wait_for_room(made) == MAX_READ_EVENTS
