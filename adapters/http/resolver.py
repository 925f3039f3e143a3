"""Vetting of addresses: only public ones in any notation, and only resolved and vetted ones of names (docs/conventions.md#outbound-safety)."""

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
    """Return the address that a host is, or None for a name.

    Raises RefusedAddress for odd forms (`0x7f.1`, `2130706433`).
    """
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
    """Rules for reachable hosts: `allowed` are `host` or `host:port`, permitted with any address and port.

    `ports` are the permitted ports of other hosts; None means any.
    """

    allowed: frozenset[str] = frozenset()
    ports: frozenset[int] | None = PORTS

    def allows(self, host: str, port: int) -> bool:
        """Return whether the operator allowed this host."""
        name = host.strip("[]").rstrip(".").lower()
        bracketed = f"[{name}]" if ":" in name else name
        return not self.allowed.isdisjoint({name, bracketed, f"{bracketed}:{port}"})

    def vet(self, url: URL, hosts: frozenset[str] | None = None) -> None:
        """Raise RefusedAddress unless the URL may be requested; names are resolved later, by the resolver.

        `hosts` restricts the hosts to these names (`a.example`, `*.a.example`, `*`).
        """
        if url.scheme not in {"http", "https"}:
            raise RefusedAddress("Only addresses that start with http:// or https:// are supported.")
        try:
            host, port = url.host, url.port
        except UnicodeError:
            raise RefusedAddress("The host's name is not valid.") from None
        if not host or port is None:
            raise RefusedAddress("The URL names no host; write it as https://host/path.")
        if url.user is not None or url.password is not None:
            raise RefusedAddress("Remove the user name and the password from the URL; they are not used.")
        if hosts is not None and not named(host, hosts):
            raise RefusedAddress(
                f"This connector may not reach {host}; the operator of this service can allow that in plugins.toml (hosts)."
            )
        if not self.allows(host, port):
            self._vet_public(host, port)

    def _vet_public(self, host: str, port: int) -> None:
        if self.ports is not None and port not in self.ports:
            raise RefusedAddress(f"Port {port} is not permitted; only 80 and 443 are. {remedy(host, port)}")
        address = literal(host)
        if address is not None and not is_public(address):
            raise RefusedAddress(f"The address is not a public one. {remedy(host, port)}")


def named(host: str, hosts: frozenset[str]) -> bool:
    """Return whether a host is among these names; `*` matches any, `*.a.example` all below a.example."""
    name = host.rstrip(".").lower()
    for pattern in hosts:
        if pattern == "*" or name == pattern.lower():
            return True
        if pattern.startswith("*.") and name.endswith(pattern[1:].lower()):
            return True
    return False


THREADS = 64
"""Maximum number of concurrent look-ups."""
KEPT = 5.0
"""Seconds for which a result is reused."""

Ask = Callable[..., list[Any]]
Name = tuple[str, int, socket.AddressFamily]


class Names:
    """Name resolver of one client. Each name takes at most one thread of a separate pool.

    The system's look-up blocks its thread while the name service takes, half a minute if it never answers.
    """

    def __init__(self, ask: Ask = socket.getaddrinfo, threads: int = THREADS, kept: float = KEPT) -> None:
        self._ask, self._kept = ask, kept
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="names")
        self._lookups: dict[Name, asyncio.Task[list[ResolveResult]]] = {}

    async def lookup(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        """Return the host's addresses, no older than `kept`. Raises OSError if there are none."""
        name = host, port, family
        task = self._lookups.get(name)
        if task is None:
            task = self._lookups[name] = asyncio.create_task(self._look_up(name), name=f"looking up {host}")
            task.add_done_callback(lambda _: self._answered(name))
        return await asyncio.shield(task)  # a cancelled caller must not cancel the others

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
        task = self._lookups[name]
        if not task.cancelled():
            task.exception()  # retrieved, even if all callers were cancelled
        asyncio.get_running_loop().call_later(self._kept, self._lookups.pop, name, None)


Lookup = Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]]


class VettingResolver(AbstractResolver):
    """Resolver for aiohttp that vets addresses. `lookup` queries the name service."""

    def __init__(self, vetting: Vetting, lookup: Lookup) -> None:
        self._vetting = vetting
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the host's permitted addresses. Raises RefusedAddress if it has only others, OSError for none."""
        found = await self._lookup(host, port, family)
        if self._vetting.allows(host, port):
            return found
        vetted = [entry for entry in found if is_public(ip_address(entry["host"]))]
        if found and not vetted:
            raise RefusedAddress(f"The host's address is not a public one. {remedy(host, port)}")
        return vetted

    async def close(self) -> None:
        """Do nothing."""


def guarded_session(
    vetting: Vetting, lookup: Lookup, tls: ssl.SSLContext | None, *, keep: float | None = None, **options: Any
) -> aiohttp.ClientSession:
    """Return a session for outbound requests: vetted addresses, no cookies, no proxies, bodies not decompressed.

    Args:
        vetting: The rules for reachable hosts.
        lookup: The name service.
        tls: A TLS context other than the system's.
        keep: Seconds for which an unused connection is kept, 0 for none; None for the library's default.
        options: Further options of the session.

    """
    kept = {} if keep is None else {"keepalive_timeout": keep} if keep else {"force_close": True}
    connector = aiohttp.TCPConnector(
        resolver=VettingResolver(vetting, lookup),
        use_dns_cache=False,
        limit=0,
        limit_per_host=0,  # paced clients have already taken a turn
        ssl=tls if tls is not None else True,
        **kept,
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False, **options
    )
