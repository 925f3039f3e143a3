"""Limits of connections and messages in memory, and relays that report the original sender."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.kernel.concurrency import ConcurrencyLimit
from entrypoints.http.addresses import Network, address_of

MIB = 1024 * 1024
HELD = 192 * MIB
"""Maximum bytes of messages in memory, including arriving ones."""


def plain_address(text: str) -> str:
    """Return the canonical form of an IP address, with IPv4-mapped addresses as IPv4; other text unchanged."""
    address_object = address_of(text.partition("%")[0])
    return text if address_object is None else str(getattr(address_object, "ipv4_mapped", None) or address_object)


class Peers:
    """Limits of connections and message bytes, by IP address.

    Args:
            most: Maximum number of connections.
            most_each: Maximum number of connections per address.
            relays: The operator's own servers, which are exempt from `most_each`.

    """

    def __init__(self, most: int, most_each: int, relays: Sequence[Network] = ()) -> None:
        self.connections = ConcurrencyLimit(most, most_each)
        self.bytes = ConcurrencyLimit(HELD, HELD)
        self._most, self._relays = most, relays

    def is_relay(self, address: str) -> bool:
        """Return whether the address belongs to one of the operator's own servers."""
        address_object = address_of(address)
        return address_object is not None and any(address_object in network for network in self._relays)

    def enter(self, address: str) -> str | None:
        """Count a connection; return a message if a limit is reached, else None."""
        if self.connections.in_hand >= self._most:
            return "too many connections; try again later"
        if self.connections.of(address) >= self.connections.each and not self.is_relay(address):
            return "too many connections from your address; try again later"
        self.connections.add(address)
        return None


_XTEXT = re.compile(r"\+([0-9A-F]{2})")
_UNAVAILABLE = ("[UNAVAILABLE]", "[TEMPUNAVAIL]")
KNOWN = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The original sender as reported by a relay."""

    peer: str | None = None
    helo: str | None = None


def forwarded(arg: str, before: Forwarded) -> Forwarded | None:
    """Parse XFORWARD attributes on top of `before`; return None if they are invalid."""
    peer, helo = before.peer, before.helo
    for part in arg.split():
        name, equals, given = part.partition("=")
        if not equals or name.upper() not in KNOWN:
            return None
        value = _XTEXT.sub(lambda address_object: chr(int(address_object[1], 16)), given)
        if name.upper() == "HELO":
            helo = None if value.upper() in _UNAVAILABLE else value
        elif name.upper() == "ADDR":
            peer = None if value.upper() in _UNAVAILABLE else _address(value)
            if peer is None and value.upper() not in _UNAVAILABLE:
                return None
    return Forwarded(peer, helo)


def _address(value: str) -> str | None:
    text = value[5:] if value.upper().startswith("IPV6:") else value
    return None if address_of(text) is None else plain_address(text)
