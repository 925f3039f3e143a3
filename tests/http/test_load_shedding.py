"""Load shedding by measured pressure (docs/conventions.md#load-shedding)."""

import asyncio
import time
from datetime import timedelta

import pytest

from entrypoints.http.pressure import LoadThresholds, Pressure
from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


def _set_pressure(application: ApplicationHarness, level: int) -> None:
    """Set a fixed pressure instead of the measured one."""
    pressure = application.app.asgi_app._pipeline.pressure
    if pressure._task is not None:
        pressure._task.cancel()
    pressure._sampled = level


async def _read_codes(client: Client) -> list[int]:
    requests = (
        client.post("/v1/bulk"),
        client.post("/v1/heavy"),
        client.get("/v1/things"),
        client.post("/v1/things/src_0000000000000000000000/poke"),
    )
    return [(await request).status for request in requests]


async def test_requests_are_shed_by_rate_class(application: ApplicationHarness) -> None:
    standard, high = await application.create_client(), await application.create_client("Elm")
    for level, of_standard, of_high in (
        (0, [403, 200, 200, 200], [200, 200, 200, 200]),
        (1, [503, 200, 200, 200], [503, 200, 200, 200]),
        (2, [503, 503, 200, 200], [503, 503, 200, 200]),
        (3, [503, 503, 503, 200], [503, 503, 200, 200]),
    ):
        application.clock.advance(timedelta(minutes=10))
        _set_pressure(application, level)
        assert await _read_codes(standard) == of_standard
        _set_pressure(application, level)
        assert await _read_codes(high) == of_high


@pytest.mark.parametrize(("level", "wait"), [(1, "2"), (2, "5"), (3, "10")])
async def test_retry_after(application: ApplicationHarness, client: Client, level: int, wait: str) -> None:
    _set_pressure(application, level)
    response = await client.post("/v1/bulk")
    assert (response.status, response.code) == (503, "overloaded")
    assert response.headers["retry-after"] == wait


async def test_the_three_measures() -> None:
    waiting = [0]
    pressure = Pressure(lambda: waiting[0], LoadThresholds(lag=(0.1, 0.2, 0.3), in_flight=(3, 6, 9), waiting=(2, 4, 8)))
    assert pressure.level == 0
    for in_flight, level in ((2, 0), (3, 1), (6, 2), (100, 3), (0, 0)):
        pressure.in_flight = in_flight
        assert pressure.level == level
    for count, level in ((1, 0), (2, 1), (4, 2), (8, 3), (0, 0)):
        waiting[0] = count
        pressure.record_sample(0.0)
        assert pressure.level == level
    for _ in range(20):
        pressure.record_sample(0.5)
    assert pressure.level == 3
    for _ in range(20):
        pressure.record_sample(0.0)
    assert pressure.level == 0


async def test_a_blocked_loop_is_noticed() -> None:
    async with run_application(thresholds=LoadThresholds(lag=(0.05, 10, 10))) as application:
        pressure = application.app.asgi_app._pipeline.pressure
        await asyncio.sleep(0.1)
        time.sleep(0.4)
        await asyncio.sleep(0.01)
        assert pressure.level == 1
        await asyncio.sleep(0.6)
        assert pressure.level == 0


async def test_the_number_of_active_requests_decreases(application: ApplicationHarness, client: Client) -> None:
    await client.get("/v1/things")
    await client.get("/v1/nothing")
    assert application.app.asgi_app._pipeline.pressure.in_flight == 0
