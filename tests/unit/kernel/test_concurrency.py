"""What may be in hand at once: bounds that refuse, and slots that are shared fairly."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import Overloaded, RateLimited

AMOUNTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), max_size=30)


@pytest.mark.parametrize("total", [None, 3, 5])
def test_bounds_refuse(total: int | None) -> None:
    limit = ConcurrencyLimit(total, 2, noun="calls in hand", retry_after=5)
    with limit.immediate_slot("a"), limit.immediate_slot("a"):
        with pytest.raises(RateLimited, match="has 2 calls in hand") as refused, limit.immediate_slot("a"):
            pass
        assert refused.value.retry_after == 5
        with limit.immediate_slot("a", is_checked=False):
            assert limit.get_used("a") == limit.amount_in_use == 3
        with limit.immediate_slot("b"):
            if total == 3:
                with pytest.raises(Overloaded):
                    limit.check("c")
            else:
                limit.check("c")
    assert limit.amount_in_use == 0 and not limit._held, "nothing is remembered of who has left"


@given(AMOUNTS)
def test_bounds_hold_for_any_sequence_of_requests(requests: list[tuple[str, int, bool]]) -> None:
    limit, held = ConcurrencyLimit(6, 4), Counter[str]()
    for key, amount, takes in requests:
        if takes:
            fits = held[key] + amount <= 4, held.total() + amount <= 6
            try:
                limit.acquire(key, amount)
            except (RateLimited, Overloaded) as error:
                assert isinstance(error, RateLimited) is not fits[0] and not all(fits)
            else:
                assert all(fits)
                held[key] += amount
        elif held[key] >= amount:
            limit.release(key, amount)
            held[key] -= amount
        assert limit.amount_in_use == held.total() and all(limit.get_used(key) == held[key] for key in "abc")


@pytest.mark.asyncio
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25))
async def test_slots_are_never_idle_nor_too_many(requests: list[tuple[str, bool]]) -> None:
    hall, names = Hall(4, most=2), dict[str, bool]()
    for at, (key, comes) in enumerate(requests):
        if comes or not names:
            names[f"{key}{at}"] = True
            hall.comes(f"{key}{at}")
        else:
            name = next(iter(names))
            del names[name]
            await hall.goes(name)
        inside = Counter(name[0] for name in await hall.settled())
        wanted = Counter(name[0] for name in names)
        assert inside.total() == min(4, sum(min(2, count) for count in wanted.values())), "nothing is left free"
        assert max(inside.values(), default=0) <= 2
    for name in names:
        await hall.goes(name)
    assert hall.slots.amount_in_use == 0


class Hall:
    """Work that holds a slot until it is released; `inside` lists who holds one, in the order of entering."""

    def __init__(self, limit: int, most: int | None = None) -> None:
        self.slots, self.inside, self.tasks = ConcurrencyLimit(limit, most), [], {}

    def comes(self, name: str) -> None:
        """Request a slot for the organisation `name[0]`."""
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


@pytest.mark.asyncio
async def test_one_leaves_room_for_others() -> None:
    hall = Hall(4)
    for name in ("a1", "a2", "a3", "a4", "a5", "b1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "a2", "b1"]
    hall.comes("c1")
    assert await hall.settled() == ["a1", "a2", "b1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["a2", "b1", "c1", "a3"]


@pytest.mark.asyncio
async def test_the_smallest_holder_is_served_first_then_the_earliest() -> None:
    hall = Hall(2)
    for name in ("a1", "b1", "a2", "c1", "d1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "b1"]
    await hall.goes("b1")
    assert await hall.settled() == ["a1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["c1", "a2"]


@pytest.mark.asyncio
async def test_a_cancelled_waiter_takes_nothing() -> None:
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


@pytest.mark.asyncio
async def test_a_share_may_be_named() -> None:
    hall = Hall(8, most=1)
    for name in ("a1", "a2", "b1", "c1"):
        hall.comes(name)
    assert await hall.settled() == ["a1", "b1", "c1"]
    await hall.goes("a1")
    assert await hall.settled() == ["b1", "c1", "a2"]
    for name in ("a2", "b1", "c1"):
        await hall.goes(name)
