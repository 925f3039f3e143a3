"""Number of events read ahead for endpoints that succeed, that wait for a window, and that fail."""

import asyncio
from datetime import timedelta

import pytest

from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.webhooks.usecases import endpoint_queue
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
    monkeypatch.setattr(endpoint_queue, "MAX_UNSENT", 3)
    queue = create_queue()
    add_events(queue, 2)
    assert await wait_for_room(queue) == MAX_READ_EVENTS
    add_events(queue, 1, first=3)
    assert await wait_for_room(queue) is None
    waiting = asyncio.create_task(queue.wait_for_room())
    await asyncio.sleep(0)
    attempt_next(queue, succeeds=True)
    assert await waiting == MAX_READ_EVENTS


async def test_deliveries_waiting_for_their_window_use_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_queue, "MAX_UNSENT", 3)
    monkeypatch.setattr(endpoint_queue, "MAX_OPEN_DELIVERIES", 6)
    queue = create_queue(coalesce_seconds=300)
    add_events(queue, 5)
    assert await wait_for_room(queue) == MAX_READ_EVENTS
    add_events(queue, 1, first=6)
    assert await wait_for_room(queue) is None


async def test_the_window_starts_at_the_time_of_the_event() -> None:
    queue = create_queue(coalesce_seconds=300)
    dues = []
    for number, age in enumerate((0.0, 100.0, 1_000.0), start=1):
        logged = create_event(number, f"ofr_{number}")
        dues.append(queue.add_event(logged, 50.0, builders.MOMENT + timedelta(seconds=age)).due_at)
    assert dues == [350.0, 250.0, 50.0]


async def test_a_failing_endpoint_has_less_capacity_and_occasional_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_queue, "MAX_OPEN_FAILING", FAILING_THRESHOLD)
    monkeypatch.setattr(endpoint_queue, "PROBE_SECONDS", 0.01)
    queue = create_queue()
    add_events(queue, FAILING_THRESHOLD)
    for _ in range(FAILING_THRESHOLD - 1):
        attempt_next(queue, succeeds=False)
    assert await wait_for_room(queue) == MAX_READ_EVENTS
    attempt_next(queue, succeeds=False)
    assert await queue.wait_for_room() == 1
    queue.set_read_position(FeedPosition(LogPosition(position=50)))
    monkeypatch.setattr(endpoint_queue, "PROBE_SECONDS", 3_600)
    assert await queue.wait_for_room() == 1, "the event is not selected: read the next"
    add_event(queue, create_event(51, "ofr_1"))
    assert await queue.wait_for_room() == 1, "the event waits for another of its subject: read the next"
    [probe] = add_events(queue, 1, first=52)
    assert await wait_for_room(queue) is None, "the event can be sent"
    assert attempt_next(queue, succeeds=False) is probe
    assert await wait_for_room(queue) is None, "the next event has to wait"
    add_events(queue, 1, first=53)
    attempt_next(queue, succeeds=True)
    assert await wait_for_room(queue) == MAX_READ_EVENTS
