"""Concurrency limits: bounds that refuse, and slots that are shared fairly."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import Overloaded, RateLimited

AMOUNTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), max_size=30)


@pytest.mark.parametrize("total", [None, 3, 5])
def test_requests_beyond_the_bounds_are_refused(total: int | None) -> None:
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
    assert limit.amount_in_use == 0 and not limit._held, "released keys are forgotten"


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
async def test_slots_are_neither_idle_nor_exceeded(requests: list[tuple[str, bool]]) -> None:
    holders, names = SlotHolders(4, max_per_key=2), dict[str, bool]()
    for at, (key, comes) in enumerate(requests):
        if comes or not names:
            names[f"{key}{at}"] = True
            holders.request_slot(f"{key}{at}")
        else:
            name = next(iter(names))
            del names[name]
            await holders.release_slot(name)
        inside = Counter(name[0] for name in await holders.list_active())
        wanted = Counter(name[0] for name in names)
        assert inside.total() == min(4, sum(min(2, count) for count in wanted.values())), "no slot is idle"
        assert max(inside.values(), default=0) <= 2
    for name in names:
        await holders.release_slot(name)
    assert holders.slots.amount_in_use == 0


class SlotHolders:
    """Tasks that hold a slot until it is released; `active` lists the holders in the order of entry."""

    def __init__(self, limit: int, max_per_key: int | None = None) -> None:
        self.slots, self.active, self.tasks = ConcurrencyLimit(limit, max_per_key), [], {}

    def request_slot(self, name: str) -> None:
        """Request a slot for the organisation `name[0]`."""
        self.tasks[name] = asyncio.create_task(self._hold_slot(name))

    async def _hold_slot(self, name: str) -> None:
        async with self.slots.slot(name[0]):
            self.active.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.active.remove(name)

    async def release_slot(self, name: str) -> None:
        """Cancel the task, whether it holds a slot or still waits."""
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await asyncio.sleep(0)

    async def list_active(self) -> list[str]:
        """Return the holders once all tasks have settled."""
        for _ in range(5):
            await asyncio.sleep(0)
        return self.active


@pytest.mark.asyncio
async def test_one_organisation_leaves_slots_for_others() -> None:
    holders = SlotHolders(4)
    for name in ("a1", "a2", "a3", "a4", "a5", "b1"):
        holders.request_slot(name)
    assert await holders.list_active() == ["a1", "a2", "b1"]
    holders.request_slot("c1")
    assert await holders.list_active() == ["a1", "a2", "b1", "c1"]
    await holders.release_slot("a1")
    assert await holders.list_active() == ["a2", "b1", "c1", "a3"]


@pytest.mark.asyncio
async def test_the_smallest_holder_is_served_first_then_the_earliest() -> None:
    holders = SlotHolders(2)
    for name in ("a1", "b1", "a2", "c1", "d1"):
        holders.request_slot(name)
    assert await holders.list_active() == ["a1", "b1"]
    await holders.release_slot("b1")
    assert await holders.list_active() == ["a1", "c1"]
    await holders.release_slot("a1")
    assert await holders.list_active() == ["c1", "a2"]


@pytest.mark.asyncio
async def test_a_cancelled_waiter_takes_no_slot() -> None:
    holders = SlotHolders(1)
    for name in ("a1", "b1", "c1"):
        holders.request_slot(name)
    await holders.list_active()
    await holders.release_slot("b1")
    await holders.release_slot("a1")
    assert await holders.list_active() == ["c1"]
    await holders.release_slot("c1")
    holders.request_slot("a2")
    assert await holders.list_active() == ["a2"]


@pytest.mark.asyncio
async def test_the_slots_of_one_organisation_can_be_limited() -> None:
    holders = SlotHolders(8, max_per_key=1)
    for name in ("a1", "a2", "b1", "c1"):
        holders.request_slot(name)
    assert await holders.list_active() == ["a1", "b1", "c1"]
    await holders.release_slot("a1")
    assert await holders.list_active() == ["b1", "c1", "a2"]
    for name in ("a2", "b1", "c1"):
        await holders.release_slot(name)
