"""Vetting of URLs and IP addresses before a request (docs/conventions.md#outbound-safety).

Only public addresses are permitted, except for hosts that the operator allows.
"""

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
from domain.kernel import addresses
from domain.kernel.addresses import PORTS, Address, describe_remedy, is_public


def parse_literal_address(host: str) -> Address | None:
    """Return the host as an IP address, or None for a host name.

    Raises RefusedAddress for an address in an unusual notation (`0x7f.1`, `2130706433`).
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
    raise RefusedAddress(addresses.ODD_NOTATION)


@dataclass(frozen=True, slots=True)
class AddressVetting:
    """Rules for the hosts that may be reached.

    Attributes:
        allowed: Hosts that may also have a private address, by decision of the operator, as `host` or `host:port`.
        ports: Permitted ports of all other hosts; None permits any port.
    """

    allowed: frozenset[str] = frozenset()
    ports: frozenset[int] | None = PORTS

    def allows(self, host: str, port: int) -> bool:
        """Return whether the operator allows the host to have any address, also a private one."""
        name = host.strip("[]").rstrip(".").lower()
        bracketed = f"[{name}]" if ":" in name else name
        return not self.allowed.isdisjoint({name, bracketed, f"{bracketed}:{port}"})

    def vet(self, url: URL, hosts: frozenset[str] | None = None) -> None:
        """Raise RefusedAddress unless requests to the URL are permitted.

        `hosts` are the only hosts that may be reached (`a.example`, `*.a.example`, `*`). The addresses of host names
        are vetted later by VettingResolver.
        """
        if url.scheme not in {"http", "https"}:
            raise RefusedAddress(addresses.NO_WEB_URL)
        try:
            host, port = url.host, url.port
        except UnicodeError:
            raise RefusedAddress(addresses.MALFORMED) from None
        if not host or port is None:
            raise RefusedAddress(addresses.NO_WEB_URL)
        if url.user is not None or url.password is not None:
            raise RefusedAddress(addresses.WITH_CREDENTIALS)
        if hosts is not None and not matches_host(host, hosts):
            raise RefusedAddress(
                f"This connector must not reach {host}. The operator can add the host to `hosts` in plugins.toml."
            )
        self.vet_host(host, port)

    def vet_host(self, host: str, port: int) -> None:
        """Raise RefusedAddress unless connections to the host and the port are permitted."""
        if not self.allows(host, port):
            self._vet_public(host, port)

    def _vet_public(self, host: str, port: int) -> None:
        if self.ports is not None and port not in self.ports:
            raise RefusedAddress(addresses.describe_port_refusal(host, port))
        address = parse_literal_address(host)
        if address is not None and not is_public(address):
            raise RefusedAddress(f"{addresses.NOT_PUBLIC} {describe_remedy(host, port)}")


def matches_host(host: str, hosts: frozenset[str]) -> bool:
    """Return whether a host matches one of `hosts`: `a.example`, `*.a.example` for subdomains, or `*` for any host."""
    name = host.rstrip(".").lower()
    for pattern in hosts:
        if pattern == "*" or name == pattern.lower():
            return True
        if pattern.startswith("*.") and name.endswith(pattern[1:].lower()):
            return True
    return False


MAX_LOOKUP_THREADS = 64
"""Maximum number of concurrent look-ups of host names."""
LOOKUP_CACHE_SECONDS = 5.0
"""Seconds for which the result of a look-up is reused."""

AddressLookup = Callable[..., list[Any]]
LookupKey = tuple[str, int, socket.AddressFamily]


class NameResolver:
    """Resolver of host names with a thread pool and a cache; concurrent look-ups of one name share a thread.

    Args:
        look_up: Function that resolves a name and blocks, as socket.getaddrinfo does.
        max_threads: Maximum number of concurrent look-ups.
        cache_seconds: Seconds for which a result is reused.
    """

    # The system's look-up blocks its thread, for half a minute if the name service does not respond.

    def __init__(
        self,
        look_up: AddressLookup = socket.getaddrinfo,
        max_threads: int = MAX_LOOKUP_THREADS,
        cache_seconds: float = LOOKUP_CACHE_SECONDS,
    ) -> None:
        self._getaddrinfo, self._kept = look_up, cache_seconds
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix="names")
        self._lookups: dict[LookupKey, asyncio.Task[list[ResolveResult]]] = {}

    async def lookup(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        """Return the addresses of a host, from the cache if possible. Raises OSError if there are none."""
        name = host, port, family
        task = self._lookups.get(name)
        if task is None:
            task = self._lookups[name] = asyncio.create_task(self._look_up_uncached(name), name=f"looking up {host}")
            task.add_done_callback(lambda _: self._schedule_removal(name))
        return await asyncio.shield(task)  # a cancelled caller must not cancel the others

    async def _look_up_uncached(self, name: LookupKey) -> list[ResolveResult]:
        host, port, family = name
        flags = socket.AI_ADDRCONFIG
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=flags)
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

    def _schedule_removal(self, name: LookupKey) -> None:
        """Schedule the removal of a finished look-up from the cache."""
        task = self._lookups[name]
        if not task.cancelled():
            task.exception()  # retrieved, even if all callers were cancelled
        asyncio.get_running_loop().call_later(self._kept, self._lookups.pop, name, None)


Lookup = Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]]


class VettingResolver(AbstractResolver):
    """Resolver for aiohttp that returns only permitted addresses.

    Args:
        vetting: The rules for permitted addresses.
        lookup: Function that returns all addresses of a host.
    """

    def __init__(self, vetting: AddressVetting, lookup: Lookup) -> None:
        self._vetting = vetting
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the permitted addresses of a host.

        Raises RefusedAddress if the host has addresses but none is permitted, and OSError if the look-up fails.
        """
        found = await self._lookup(host, port, family)
        if self._vetting.allows(host, port):
            return found
        vetted = [entry for entry in found if is_public(ip_address(entry["host"]))]
        if found and not vetted:
            raise RefusedAddress(f"{addresses.NOT_PUBLIC} {describe_remedy(host, port)}")
        return vetted

    async def close(self) -> None:
        """Do nothing, because the resolver holds no resources; aiohttp requires the method."""


def open_guarded_session(
    vetting: AddressVetting,
    lookup: Lookup,
    tls: ssl.SSLContext | None,
    *,
    keepalive_seconds: float | None = None,
    **options: Any,
) -> aiohttp.ClientSession:
    """Return an aiohttp session that connects to vetted addresses only, without cookies, proxies or decompression.

    Args:
        vetting: The rules for permitted hosts and addresses.
        lookup: Function that returns all addresses of a host.
        tls: TLS context other than the system's.
        keepalive_seconds: Seconds for which an unused connection stays open; 0 to close it after use, None for the library's
            default.
        options: Further options of the session.
    """
    keep_options = (
        {}
        if keepalive_seconds is None
        else {"keepalive_timeout": keepalive_seconds}
        if keepalive_seconds
        else {"force_close": True}
    )
    connector = aiohttp.TCPConnector(
        resolver=VettingResolver(vetting, lookup),
        use_dns_cache=False,
        limit=0,
        limit_per_host=0,  # paced clients have already taken a turn
        ssl=tls if tls is not None else True,
        **keep_options,
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False, **options
    )
