"""Limits of SMTP connections and of messages in memory, and mail relays trusted to report the client's IP address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.kernel.concurrency import ConcurrencyLimit
from entrypoints.http.addresses import Network, parse_address

MIB = 1024 * 1024
MAX_BYTES_IN_MEMORY = 192 * MIB
"""Maximum bytes of all messages in memory, including messages that are being received."""


def normalise_address(text: str) -> str:
    """Return an IP address in canonical notation, an IPv4-mapped IPv6 address as IPv4.

    Other text is returned unchanged.
    """
    parsed = parse_address(text.partition("%")[0])
    return text if parsed is None else str(getattr(parsed, "ipv4_mapped", None) or parsed)


class ConnectionLimits:
    """Limits of the number of connections, in all and by IP address, and of the bytes of messages in memory.

    Args:
        max_connections: Maximum number of connections.
        max_connections_per_address: Maximum number of connections of one address.
        relays: Networks of the operator's mail servers, which are exempt from `max_connections_per_address`.
    """

    def __init__(self, max_connections: int, max_connections_per_address: int, relays: Sequence[Network] = ()) -> None:
        self.connections = ConcurrencyLimit(max_connections, max_connections_per_address)
        self.message_bytes = ConcurrencyLimit(MAX_BYTES_IN_MEMORY, MAX_BYTES_IN_MEMORY)
        self._max_connections, self._relays = max_connections, relays

    def is_relay(self, address: str) -> bool:
        """Return whether the address belongs to one of the operator's mail servers."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._relays)

    def add_connection(self, address: str) -> str | None:
        """Count a new connection of the address; if a limit is reached, return the error message instead, else None."""
        if self.connections.amount_in_use >= self._max_connections:
            return "too many connections; try again later"
        if self.connections.get_used(address) >= self.connections.max_per_key and not self.is_relay(address):
            return "too many connections from your address; try again later"
        self.connections.acquire_unchecked(address)
        return None


_XTEXT = re.compile(r"\+([0-9A-F]{2})")
_UNAVAILABLE = ("[UNAVAILABLE]", "[TEMPUNAVAIL]")
XFORWARD_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")


@dataclass(frozen=True, slots=True)
class OriginalClient:
    """Client that sent a message to a mail relay: its IP address (`peer`) and HELO name, each None if unknown."""

    peer: str | None = None
    helo: str | None = None


def apply_xforward(attributes: str, client: OriginalClient) -> OriginalClient | None:
    """Return `client` with the attributes of an XFORWARD command applied; None if the attributes are invalid."""
    peer, helo = client.peer, client.helo
    for attribute in attributes.split():
        name, equals, encoded = attribute.partition("=")
        if not equals or name.upper() not in XFORWARD_ATTRIBUTES:
            return None
        value = _XTEXT.sub(lambda match: chr(int(match[1], 16)), encoded)
        if name.upper() == "HELO":
            helo = None if value.upper() in _UNAVAILABLE else value
        elif name.upper() == "ADDR":
            peer = None if value.upper() in _UNAVAILABLE else _parse_forwarded_address(value)
            if peer is None and value.upper() not in _UNAVAILABLE:
                return None
    return OriginalClient(peer, helo)


def _parse_forwarded_address(value: str) -> str | None:
    text = value[5:] if value.upper().startswith("IPV6:") else value
    return None if parse_address(text) is None else normalise_address(text)
