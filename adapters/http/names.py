"""Looks names up so that a name service that does not answer for one host holds up nobody else."""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from aiohttp.abc import ResolveResult

THREADS: Final = 64
"""Names that are looked up at a time."""
KEPT: Final = 5.0
"""Seconds for which an answer is used again."""

Ask = Callable[..., list[Any]]
Name = tuple[str, int, socket.AddressFamily]


class Names:
    """One for each client. Each name takes one thread at most, of threads that nothing else waits for.

    The system's own look-up blocks its thread for as long as the name service takes, half a minute if it never answers.
    """

    def __init__(self, ask: Ask = socket.getaddrinfo, threads: int = THREADS, kept: float = KEPT) -> None:
        self._ask, self._kept = ask, kept
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="names")
        self._asked: dict[Name, asyncio.Task[list[ResolveResult]]] = {}

    async def lookup(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        """The host's addresses, no older than `kept`. Raises OSError when there are none."""
        name = host, port, family
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = asyncio.create_task(self._look_up(name), name=f"looking up {host}")
            asked.add_done_callback(lambda _: self._answered(name))
        return await asyncio.shield(asked)  # who gives up waiting leaves it to the others

    async def _look_up(self, name: Name) -> list[ResolveResult]:
        host, port, family = name
        flags = socket.AI_ADDRCONFIG
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._ask(host, port, family=family, type=socket.SOCK_STREAM, flags=flags)
        )
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
            if kind in (socket.AF_INET, socket.AF_INET6) and "%" not in address[0]
        ]

    def _answered(self, name: Name) -> None:
        asked = self._asked[name]
        if not asked.cancelled():
            asked.exception()  # seen, even if everybody who asked has gone
        asyncio.get_running_loop().call_later(self._kept, self._asked.pop, name, None)
