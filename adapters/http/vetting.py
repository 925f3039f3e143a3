"""Decides which addresses may be reached: public ones only, however they are written (docs/conventions.md#outbound-safety)."""

import socket
from dataclasses import dataclass
from ipaddress import ip_address

from yarl import URL

from adapters.http.errors import RefusedAddress
from domain.kernel.addresses import PORTS, Address, is_public, remedy


def literal(host: str) -> Address | None:
    """The address that a host is, None for a name. Raises RefusedAddress for odd forms (`0x7f.1`, `2130706433`)."""
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
    """What the operator lets through: `allowed` are `host` or `host:port`, reached whatever their address and port.

    `ports` are those that other hosts may be reached on; None means any.
    """

    allowed: frozenset[str] = frozenset()
    ports: frozenset[int] | None = PORTS

    def allows(self, host: str, port: int) -> bool:
        """Whether the operator named this host."""
        name = host.strip("[]").rstrip(".").lower()
        bracketed = f"[{name}]" if ":" in name else name
        return not self.allowed.isdisjoint({name, bracketed, f"{bracketed}:{port}"})

    def vet(self, url: URL, hosts: frozenset[str] | None = None) -> None:
        """Raises RefusedAddress unless the URL may be asked for; names are looked up later, by the resolver.

        `hosts` narrows it to these names (`a.example`, `*.a.example`, `*`).
        """
        if url.scheme not in {"http", "https"}:
            raise RefusedAddress("Only addresses that start with http:// or https:// are reached.")
        try:
            host, port = url.host, url.port
        except UnicodeError:
            raise RefusedAddress("The host's name is not valid.") from None
        if not host or port is None:
            raise RefusedAddress("The URL names no host; write it as https://host/path.")
        if url.user is not None or url.password is not None:
            raise RefusedAddress("Take the user name and the password out of the URL; they are not read from there.")
        if hosts is not None and not named(host, hosts):
            raise RefusedAddress(
                f"This connector may not reach {host}; the operator of this service can allow that in plugins.toml (hosts)."
            )
        if not self.allows(host, port):
            self._vet_stranger(host, port)

    def _vet_stranger(self, host: str, port: int) -> None:
        if self.ports is not None and port not in self.ports:
            raise RefusedAddress(f"Port {port} is not reached; only 80 and 443 are. {remedy(host, port)}")
        address = literal(host)
        if address is not None and not is_public(address):
            raise RefusedAddress(f"The address is not a public one. {remedy(host, port)}")


def named(host: str, hosts: frozenset[str]) -> bool:
    """Whether a host is among these names, of which `*` is every one and `*.a.example` all below a.example."""
    name = host.rstrip(".").lower()
    for pattern in hosts:
        if pattern == "*" or name == pattern.lower():
            return True
        if pattern.startswith("*.") and name.endswith(pattern[1:].lower()):
            return True
    return False
