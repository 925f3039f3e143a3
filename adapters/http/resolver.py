"""Which addresses may be reached: public ones only, however they are written, and of names those that were looked up and vetted (docs/conventions.md#outbound-safety)."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from adapters.http.errors import RefusedAddress
from domain.kernel.addresses import PORTS, Address, is_public, remedy


def literal(host: str) -> Address | None:
    """The address that a host is, None for a name. Raises RefusedAddress for odd forms (`0x7f.1`, `2130706433`)."""
    bare = host.strip("[]")
    try:
        return ip_address(bare)
    except ValueError:
        pass
    try:
        socket.inet_aton(bare.rstrip("."))
    except (OSError, UnicodeError, ValueError):
        return None
    raise RefusedAddress("The address is not written as four numbers from 0 to 255 with dots between.")


@dataclass(frozen=True, slots=True)
class Vetting:
    """What the operator lets through: `allowed` are `host` or `host:port`, reached whatever their address and port.

    `ports` are those that other hosts may be reached on; None means any.
    """

    allowed: frozenset[str] = frozenset()
    ports: frozenset[int] | None = PORTS

    def allows(self, host: str, port: int) -> bool:
        """Whether the operator named this host."""
        name = host.strip("[]").rstrip(".").lower()
        bracketed = f"[{name}]" if ":" in name else name
        return not self.allowed.isdisjoint({name, bracketed, f"{bracketed}:{port}"})

    def vet(self, url: URL, hosts: frozenset[str] | None = None) -> None:
        """Raises RefusedAddress unless the URL may be asked for; names are looked up later, by the resolver.

        `hosts` narrows it to these names (`a.example`, `*.a.example`, `*`).
        """
        if url.scheme not in {"http", "https"}:
            raise RefusedAddress("Only addresses that start with http:// or https:// are reached.")
        try:
            host, port = url.host, url.port
        except UnicodeError:
            raise RefusedAddress("The host's name is not valid.") from None
        if not host or port is None:
            raise RefusedAddress("The URL names no host; write it as https://host/path.")
        if url.user is not None or url.password is not None:
            raise RefusedAddress("Take the user name and the password out of the URL; they are not read from there.")
        if hosts is not None and not named(host, hosts):
            raise RefusedAddress(
                f"This connector may not reach {host}; the operator of this service can allow that in plugins.toml (hosts)."
            )
        if not self.allows(host, port):
            self._vet_stranger(host, port)

    def _vet_stranger(self, host: str, port: int) -> None:
        if self.ports is not None and port not in self.ports:
            raise RefusedAddress(f"Port {port} is not reached; only 80 and 443 are. {remedy(host, port)}")
        address = literal(host)
        if address is not None and not is_public(address):
            raise RefusedAddress(f"The address is not a public one. {remedy(host, port)}")


def named(host: str, hosts: frozenset[str]) -> bool:
    """Whether a host is among these names, of which `*` is every one and `*.a.example` all below a.example."""
    name = host.rstrip(".").lower()
    for pattern in hosts:
        if pattern == "*" or name == pattern.lower():
            return True
        if pattern.startswith("*.") and name.endswith(pattern[1:].lower()):
            return True
    return False


THREADS = 64
"""Names that are looked up at a time."""
KEPT = 5.0
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


Lookup = Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]]


class VettingResolver(AbstractResolver):
    """A resolver for aiohttp. `lookup` asks the name service."""

    def __init__(self, vetting: Vetting, lookup: Lookup) -> None:
        self._vetting = vetting
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The host's addresses that may be reached. Raises RefusedAddress when it has others only, OSError for none."""
        found = await self._lookup(host, port, family)
        if self._vetting.allows(host, port):
            return found
        vetted = [entry for entry in found if is_public(ip_address(entry["host"]))]
        if found and not vetted:
            raise RefusedAddress(f"The host's address is not a public one. {remedy(host, port)}")
        return vetted

    async def close(self) -> None:
        """Nothing is held."""


def guarded_session(
    vetting: Vetting, lookup: Lookup, tls: ssl.SSLContext | None, *, keep: float | None = None, **options: Any
) -> aiohttp.ClientSession:
    """Return the one kind of session that requests leave by: vetted addresses, no cookies, no proxies, bodies as they come.

    Args:
        vetting: What may be reached.
        lookup: The name service.
        tls: Another context than the system's.
        keep: Seconds for which an unused connection is kept, 0 for none; None for the library's own.
        options: Further options of the session.

    """
    kept = {} if keep is None else {"keepalive_timeout": keep} if keep else {"force_close": True}
    connector = aiohttp.TCPConnector(
        resolver=VettingResolver(vetting, lookup),
        use_dns_cache=False,
        limit=0,
        limit_per_host=0,  # who asks in somebody's name has taken a turn before
        ssl=tls if tls is not None else True,
        **kept,
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False, **options
    )
