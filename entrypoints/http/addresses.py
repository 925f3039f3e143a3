"""IP addresses of clients, also behind trusted proxies."""

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PROXY_HEADERS = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip"}
    | {"fastly-client-ip", "client-ip", "proxy-connection"}
)
"""Headers that proxies add besides `X-Forwarded-…` (RFC 9110 §7.6.3, RFC 7239).

A request that comes directly from this machine has none of them.
"""
MAX_ADDRESS_LENGTH = 45
"""Maximum characters of an address: IPv6 with an embedded IPv4 address. Zone identifiers are not accepted."""


def parse_address(text: str) -> Address | None:
    """Parse an IP address; return None if the text is not an IP address."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


class TrustedProxies:
    """Proxies whose X-Forwarded-For header is trusted; `trusted` are their IP addresses or CIDR blocks."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(block, strict=False) for block in trusted)
        self._trusts = lru_cache(maxsize=1024)(self._is_trusted)

    def _is_trusted(self, address: str) -> bool:
        host = parse_address(address)
        return host is not None and any(host in network for network in self._networks)

    def find_client(self, peer: str, headers: Mapping[str, str]) -> str:
        """Return the client's IP address: the rightmost address in X-Forwarded-For that is not a trusted proxy.

        Returns `peer`, the address of the connection, if `peer` is not a trusted proxy or the header contains no such
        address.
        """
        if not self._networks or "x-forwarded-for" not in headers or not self._trusts(peer):
            return peer
        for hop in reversed(headers["x-forwarded-for"].split(",")):
            address = hop.strip()
            if len(address) > MAX_ADDRESS_LENGTH or not self._trusts(address):
                is_address = (
                    len(address) <= MAX_ADDRESS_LENGTH and "%" not in address and parse_address(address) is not None
                )
                return address if is_address else peer
        return peer

    @staticmethod
    def is_local(peer: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request comes from this machine without a proxy; `peer` is the address of the connection."""
        if any(name in _PROXY_HEADERS or name.startswith("x-forwarded") for name in headers):
            return False
        address = parse_address(peer)
        return address.is_loopback if address is not None else peer in ("", "<local>")
