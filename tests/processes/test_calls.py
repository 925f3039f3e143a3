"""Calls in processes (adapters/processes/calls.py): values are passed both ways, and runaway calls are terminated alone."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.processes.calls import CallLimits, ProcessCalls
from ports.parsing import ParserFailed, ParserTerminated
from tests.support import parsers

pytestmark = pytest.mark.asyncio
LIMITS = CallLimits(cpu_seconds=1, max_seconds=10.0, max_result_bytes=1 << 20)


@pytest_asyncio.fixture
async def calls() -> AsyncIterator[ProcessCalls]:
    command = [sys.executable, "-m", "tests.support.parsers", str(os.getpid()), "512"]
    process_calls = ProcessCalls(command, max_calls=2, limits=LIMITS, raises=(parsers.Unreadable,))
    yield process_calls
    await process_calls.close()


async def test_values_round_trip(calls: ProcessCalls) -> None:
    point = parsers.Point((1, 2), frozenset({"a"}), b"\0\xff", None)
    assert await calls(parsers.mirrored, point, 7) == parsers.Point((2, 1), frozenset({"a"}), b"\0\xff", "7")


async def test_a_function_may_call_back_its_caller(calls: ProcessCalls) -> None:
    names: list[str] = []

    def answer(name: str) -> parsers.Point | None:
        names.append(name)
        return parsers.Point((len(name), 0)) if name else None

    assert await calls(parsers.querying, answer, ["ab", "", "c"]) == [2, -1, 1]
    assert names == ["ab", "", "c"]


async def test_declared_errors_are_raised_and_others_end_the_call(calls: ProcessCalls) -> None:
    with pytest.raises(parsers.Unreadable, match="why") as raised:
        await calls(parsers.failing, "declared")
    assert raised.value.detail == "more"
    with pytest.raises(ParserTerminated, match="ZeroDivisionError"):
        await calls(parsers.failing, "other")
    with pytest.raises(ParserFailed):
        await calls(parsers.failing, "system")


@pytest.mark.parametrize("way", ["computing", "allocating", "crashing", "answering", "sleeping", "lying"])
async def test_a_runaway_call_is_terminated_alone(calls: ProcessCalls, way: str) -> None:
    limits = CallLimits(cpu_seconds=1, max_seconds=3.0 if way == "sleeping" else 20.0, max_result_bytes=1 << 20)
    calls._limits = limits
    wild = asyncio.create_task(calls(parsers.wild, way))
    assert await calls(parsers.mirrored, parsers.Point((1, 2)), 0) == parsers.Point((2, 1), name="0")
    with pytest.raises(ParserTerminated):
        await wild
    assert await calls(parsers.mirrored, parsers.Point((1, 2)), 0) == parsers.Point((2, 1), name="0")


async def test_a_dead_server_is_restarted(calls: ProcessCalls) -> None:
    await calls(parsers.mirrored, parsers.Point((1, 2)), 0)
    server = calls._server._process
    assert server is not None
    server._process.kill()
    await server._process.wait()
    assert await calls(parsers.mirrored, parsers.Point((3, 4)), 0) == parsers.Point((4, 3), name="0")
