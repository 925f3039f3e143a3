"""Whose address a request comes from when trusted proxies stand in between."""

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_OF_PROXIES = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip"}
    | {"fastly-client-ip", "client-ip", "proxy-connection"}
)
"""Headers that proxies add (RFC 9110, section 7.6.3; RFC 7239), beside all of `X-Forwarded-…`: whoever asks directly has none."""
LONGEST = 45
"""Characters of an address: IPv6 with an IPv4 address inside. A zone, which may be any text, is no client's."""


def address_of(text: str) -> Address | None:
    """Return the IP address that the text is; None for any other text."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


class Proxies:
    """`trusted` are addresses or CIDR blocks of proxies whose X-Forwarded-For is believed."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(block, strict=False) for block in trusted)
        self._trusts = lru_cache(maxsize=1024)(self._in_a_network)

    def _in_a_network(self, address: str) -> bool:
        host = address_of(address)
        return host is not None and any(host in network for network in self._networks)

    def client(self, peer: str, headers: Mapping[str, str]) -> str:
        """The nearest address that is no trusted proxy: the peer itself unless it is one, or forwards no address."""
        if not self._networks or "x-forwarded-for" not in headers or not self._trusts(peer):
            return peer
        for hop in reversed(headers["x-forwarded-for"].split(",")):
            address = hop.strip()
            if len(address) > LONGEST or not self._trusts(address):
                is_address = len(address) <= LONGEST and "%" not in address and address_of(address) is not None
                return address if is_address else peer
        return peer

    @staticmethod
    def is_local(peer: str, headers: Mapping[str, str]) -> bool:
        """Whether the request comes from this very machine, not through a proxy on it."""
        if any(name in _OF_PROXIES or name.startswith("x-forwarded") for name in headers):
            return False
        address = address_of(peer)
        return address.is_loopback if address is not None else peer in ("", "<local>")
