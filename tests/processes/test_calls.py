"""Calls in processes (adapters/processes/calls.py): plain values there and back; what runs wild is ended alone."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.processes.calls import CallLimits, ProcessCalls
from ports.parsing import ParserEnded, ParserFailed
from tests.support import parsers

pytestmark = pytest.mark.asyncio
LIMITS = CallLimits(cpu=1, wall=10.0, answer=1 << 20)


@pytest_asyncio.fixture
async def calls() -> AsyncIterator[ProcessCalls]:
    command = [sys.executable, "-m", "tests.support.parsers", str(os.getpid()), "512"]
    made = ProcessCalls(command, most=2, limits=LIMITS, raises=(parsers.Unreadable,))
    yield made
    await made.close()


async def test_values_go_there_and_back(calls: ProcessCalls) -> None:
    point = parsers.Point((1, 2), frozenset({"a"}), b"\0\xff", None)
    assert await calls(parsers.mirrored, point, 7) == parsers.Point((2, 1), frozenset({"a"}), b"\0\xff", "7")


async def test_a_function_may_ask_its_caller(calls: ProcessCalls) -> None:
    asked: list[str] = []

    def answer(name: str) -> parsers.Point | None:
        asked.append(name)
        return parsers.Point((len(name), 0)) if name else None

    assert await calls(parsers.asking, answer, ["ab", "", "c"]) == [2, -1, 1]
    assert asked == ["ab", "", "c"]


async def test_declared_errors_are_raised_and_others_end_the_call(calls: ProcessCalls) -> None:
    with pytest.raises(parsers.Unreadable, match="why") as raised:
        await calls(parsers.failing, "declared")
    assert raised.value.detail == "more"
    with pytest.raises(ParserEnded, match="ZeroDivisionError"):
        await calls(parsers.failing, "other")
    with pytest.raises(ParserFailed):
        await calls(parsers.failing, "system")


@pytest.mark.parametrize("way", ["computing", "allocating", "crashing", "answering", "sleeping", "lying"])
async def test_what_runs_wild_is_ended_alone(calls: ProcessCalls, way: str) -> None:
    limits = CallLimits(cpu=1, wall=3.0 if way == "sleeping" else 20.0, answer=1 << 20)
    calls._limits = limits
    wild = asyncio.create_task(calls(parsers.wild, way))
    assert await calls(parsers.mirrored, parsers.Point((1, 2)), 0) == parsers.Point((2, 1), name="0")
    with pytest.raises(ParserEnded):
        await wild
    assert await calls(parsers.mirrored, parsers.Point((1, 2)), 0) == parsers.Point((2, 1), name="0")


async def test_a_server_that_is_gone_is_started_again(calls: ProcessCalls) -> None:
    await calls(parsers.mirrored, parsers.Point((1, 2)), 0)
    server = calls._server._process
    assert server is not None
    server._process.kill()
    await server._process.wait()
    assert await calls(parsers.mirrored, parsers.Point((3, 4)), 0) == parsers.Point((4, 3), name="0")
