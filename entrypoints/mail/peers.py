"""Who may connect, how often, and with how much in hand; and for whom relays of the operator say that they pass a message on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.kernel.concurrency import ConcurrencyLimit
from entrypoints.http.addresses import Network, address_of

MIB = 1024 * 1024
HELD = 192 * MIB
"""Bytes of messages that are in hand at once, arriving ones included."""


def plain_address(text: str) -> str:
    """The IP address in one way of writing, one of IPv4 inside IPv6 as what it is; the text itself if it is none."""
    found = address_of(text.partition("%")[0])
    return text if found is None else str(getattr(found, "ipv4_mapped", None) or found)


class Peers:
    """Connections by address, and what they hold.

    Args:
        most: The most connections at once.
        most_each: The most of one address.
        relays: The operator's own servers, which may open as many as there are.

    """

    def __init__(self, most: int, most_each: int, relays: Sequence[Network] = ()) -> None:
        self.connections = ConcurrencyLimit(most, most_each)
        self.bytes = ConcurrencyLimit(HELD, HELD)
        self._most, self._relays = most, relays

    def is_relay(self, address: str) -> bool:
        """Return whether the address is of one of the operator's own servers."""
        found = address_of(address)
        return found is not None and any(found in network for network in self._relays)

    def enter(self, address: str) -> str | None:
        """Count a connection in; answer why not."""
        if self.connections.in_hand >= self._most:
            return "too many connections; try again later"
        if self.connections.of(address) >= self.connections.each and not self.is_relay(address):
            return "too many connections from your address; try again later"
        self.connections.add(address)
        return None


_XTEXT = re.compile(r"\+([0-9A-F]{2})")
_NOTHING = ("[UNAVAILABLE]", "[TEMPUNAVAIL]")
KNOWN = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Who the message came from before the relay, as far as it says so."""

    peer: str | None = None
    helo: str | None = None


def forwarded(arg: str, before: Forwarded) -> Forwarded | None:
    """What the command's attributes say, beside what was said before; None when they cannot be read."""
    peer, helo = before.peer, before.helo
    for part in arg.split():
        name, equals, given = part.partition("=")
        if not equals or name.upper() not in KNOWN:
            return None
        value = _XTEXT.sub(lambda found: chr(int(found[1], 16)), given)
        if name.upper() == "HELO":
            helo = None if value.upper() in _NOTHING else value
        elif name.upper() == "ADDR":
            peer = None if value.upper() in _NOTHING else _address(value)
            if peer is None and value.upper() not in _NOTHING:
                return None
    return Forwarded(peer, helo)


def _address(value: str) -> str | None:
    text = value[5:] if value.upper().startswith("IPV6:") else value
    return None if address_of(text) is None else plain_address(text)
