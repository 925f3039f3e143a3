"""Slow name servers of a hostile vendor."""

import asyncio
import threading
from typing import Any
from unittest.mock import sentinel

import pytest

from domain.brand.usecases.checks import ClaimChecker

CHECKS = 40
"""Burst of the rate class `write`; the default executor has fewer threads on a machine with less than 36 processors."""


@pytest.mark.asyncio
async def test_slow_name_servers_do_not_occupy_the_threads_of_other_work() -> None:
    released = threading.Event()

    class SlowResolver:
        def look_up(self, *_: Any) -> tuple[Any, ...]:
            released.wait(20)  # a name server that answers after LOOKUP_SECONDS
            return ()

    unused = sentinel.unused
    checker = ClaimChecker(unused, unused, unused, SlowResolver(), unused, unused, unused, unused)
    checks = [asyncio.ensure_future(checker._look_up("_joinery.slow.example")) for _ in range(CHECKS)]
    try:
        await asyncio.sleep(0)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "uploaded"), 2) == "uploaded"
    finally:
        released.set()
        await asyncio.gather(*checks)
