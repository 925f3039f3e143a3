"""Slots shared fairly among organisations."""

import asyncio

import pytest

from domain.runs.usecases.slots import FairSlots

pytestmark = pytest.mark.asyncio


class Hall:
    """Work that holds a slot until it is told to go; `inside` names who is in, in the order of entering."""

    def __init__(self, limit: int, most: int | None = None) -> None:
        self.slots, self.inside, self.tasks = FairSlots(limit, most), [], {}

    def comes(self, name: str) -> None:
        """Somebody of the organisation `name[0]` asks for a slot."""
        self.tasks[name] = asyncio.create_task(self._stay(name))

    async def _stay(self, name: str) -> None:
        async with self.slots.slot(name[0]):
            self.inside.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.inside.remove(name)

    async def goes(self, name: str) -> None:
        """It leaves, in or still waiting."""
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await asyncio.sleep(0)

    async def settled(self) -> list[str]:
        """Who is in, once nobody moves."""
        for _ in range(5):
            await asyncio.sleep(0)
        return self.inside


async def test_one_leaves_room_for_others() -> None:
    hall = Hall(4)
    for name in ("a1", "a2", "a3", "a4", "a5", "b1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "a2", "b1"]
    hall.comes("c1")
    assert await hall.settled() == ["a1", "a2", "b1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["a2", "b1", "c1", "a3"]


async def test_who_holds_least_goes_first_then_who_came_first() -> None:
    hall = Hall(2)
    for name in ("a1", "b1", "a2", "c1", "d1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "b1"]
    await hall.goes("b1")
    assert await hall.settled() == ["a1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["c1", "a2"]


async def test_who_stops_waiting_takes_nothing() -> None:
    hall = Hall(1)
    for name in ("a1", "b1", "c1"):
        hall.comes(name)
    await hall.settled()
    await hall.goes("b1")
    await hall.goes("a1")
    assert await hall.settled() == ["c1"]
    await hall.goes("c1")
    hall.comes("a2")
    assert await hall.settled() == ["a2"]


async def test_a_share_may_be_named() -> None:
    hall = Hall(8, most=1)
    for name in ("a1", "a2", "b1", "c1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "b1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["b1", "c1", "a2"]
    for name in ("a2", "b1", "c1"):
        await hall.goes(name)
