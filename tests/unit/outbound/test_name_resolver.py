"""Lookups of names while a name server does not answer."""

import asyncio
import socket
import threading
from collections import Counter
from typing import Any

import pytest

from adapters.http.resolver import NameResolver

pytestmark = pytest.mark.asyncio
V4 = socket.AF_INET


class Service:
    """A name service: some names hang until they are let go, some do not exist."""

    def __init__(self) -> None:
        self.lookups: Counter[str] = Counter()
        self.let_go = threading.Event()

    def __call__(self, host: str, port: int, *, family: int, **_: Any) -> list[Any]:
        self.lookups[host] += 1
        if host.startswith("hangs"):
            self.let_go.wait(30)
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(family, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]


async def test_a_hanging_lookup_blocks_no_other_and_is_sent_once() -> None:
    service = Service()
    names = NameResolver(service, max_threads=2)
    hanging = [asyncio.create_task(names.lookup("hangs.example", 443, V4)) for _ in range(20)]
    await asyncio.sleep(0.05)
    hanging.pop().cancel()
    found = await asyncio.wait_for(names.lookup("well.example", 443, V4), 5)
    assert [(one["host"], one["port"], one["hostname"]) for one in found] == [("192.0.2.7", 443, "well.example")]
    service.let_go.set()
    assert {one["host"] for found in await asyncio.gather(*hanging) for one in found} == {"192.0.2.7"}
    assert service.lookups == {"hangs.example": 1, "well.example": 1}


async def test_answers_are_kept_for_a_while() -> None:
    service = Service()
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


async def test_the_systems_own() -> None:
    found = await NameResolver().lookup("localhost", 80, V4)
    assert {one["host"] for one in found} == {"127.0.0.1"}
