"""Who may connect, how often, and with how much in hand: bounds that hold for the whole process."""

import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

MIB: Final = 1024 * 1024
HELD: Final = 192 * MIB
"""Bytes of messages that are in hand at once, arriving ones included."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def plain_address(text: str) -> str:
    """The IP address in one way of writing, one of IPv4 inside IPv6 as what it is; the text itself if it is none."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    return str(getattr(found, "ipv4_mapped", None) or found)


@dataclass(slots=True)
class Peers:
    """Connections by address. `relays` are the operator's own servers, which may open as many as there are."""

    most: int
    most_each: int
    relays: Sequence[Network] = ()
    _open: Counter[str] = field(default_factory=Counter)
    _held: int = 0

    @property
    def open(self) -> int:
        """How many connections there are."""
        return self._open.total()

    def is_relay(self, address: str) -> bool:
        """Whether the address is of one of the operator's own servers."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self.relays)

    def enter(self, address: str) -> str | None:
        """Count a connection in; answers why not."""
        if self.open >= self.most:
            return "too many connections; try again later"
        if self._open[address] >= self.most_each and not self.is_relay(address):
            return "too many connections from your address; try again later"
        self._open[address] += 1
        return None

    def leave(self, address: str) -> None:
        """The connection is gone."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]

    def hold(self, bytes: int) -> bool:
        """Take so many bytes more in hand, if there is room."""
        if self._held + bytes > HELD:
            return False
        self._held += bytes
        return True

    def release(self, bytes: int) -> None:
        """They are out of hand."""
        self._held -= bytes
