"""Looks up names and lets vetted addresses through; connections go to these, so a name that changes gains nothing."""

import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from adapters.http.errors import RefusedAddress
from adapters.http.vetting import Vetting
from domain.kernel.addresses import is_public, remedy

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
