"""Name lookups while a name server does not respond."""

import asyncio
import socket
import threading
from collections import Counter
from typing import Any

import pytest

from adapters.http.resolver import NameResolver

pytestmark = pytest.mark.asyncio
V4 = socket.AF_INET


class FakeNameService:
    """Name service in which some names do not respond until `released` is set, and some do not exist."""

    def __init__(self) -> None:
        self.lookups: Counter[str] = Counter()
        self.released = threading.Event()

    def __call__(self, host: str, port: int, *, family: int, **_: Any) -> list[Any]:
        self.lookups[host] += 1
        if host.startswith("hangs"):
            self.released.wait(30)
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(family, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]


async def test_a_hanging_lookup_is_shared_and_blocks_no_other() -> None:
    service = FakeNameService()
    names = NameResolver(service, max_threads=2)
    hanging = [asyncio.create_task(names.lookup("hangs.example", 443, V4)) for _ in range(20)]
    await asyncio.sleep(0.05)
    hanging.pop().cancel()
    found = await asyncio.wait_for(names.lookup("well.example", 443, V4), 5)
    assert [(one["host"], one["port"], one["hostname"]) for one in found] == [("192.0.2.7", 443, "well.example")]
    service.released.set()
    assert {one["host"] for found in await asyncio.gather(*hanging) for one in found} == {"192.0.2.7"}
    assert service.lookups == {"hangs.example": 1, "well.example": 1}


async def test_addresses_are_cached() -> None:
    service = FakeNameService()
    names = NameResolver(service, cache_seconds=0.05)
    for _ in range(2):
        await names.lookup("well.example", 443, V4)
        with pytest.raises(socket.gaierror):
            await names.lookup("unknown.example", 443, V4)
    await names.lookup("well.example", 80, V4)
    assert service.lookups == {"well.example": 2, "unknown.example": 1}
    await asyncio.sleep(0.2)
    await names.lookup("well.example", 443, V4)
    assert service.lookups["well.example"] == 3


async def test_names_of_the_system_are_resolved() -> None:
    found = await NameResolver().lookup("localhost", 80, V4)
    assert {one["host"] for one in found} == {"127.0.0.1"}
