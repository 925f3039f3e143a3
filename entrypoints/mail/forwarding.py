"""XFORWARD: how a relay of the operator's own says for whom it passes a message on (postfix.org/XFORWARD_README.html)."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from entrypoints.mail.peers import plain_address

_XTEXT: Final = re.compile(r"\+([0-9A-F]{2})")
_NOTHING: Final = ("[UNAVAILABLE]", "[TEMPUNAVAIL]")
KNOWN: Final = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")


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
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return None
    return plain_address(text)
