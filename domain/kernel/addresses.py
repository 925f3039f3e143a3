"""Which addresses a source or a webhook endpoint may name: what can be told from the text alone (docs/conventions.md#outbound-safety).

Names are looked up, and their addresses judged, each time a connection is made; this only refuses early what can
never be reached.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

SETTING: Final = "JOINERY_ALLOW_PRIVATE_HOSTS"
"""The operator's setting that lets named hosts through (docs/configuration.md)."""
PORTS: Final = frozenset({80, 443})
_CARRYING: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
_ODD_NUMBER: Final = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}\.?")


def refusal(url: str, allowed: frozenset[str], ports: frozenset[int] | None = PORTS) -> str | None:
    """Why the service will not ask this URL, as a sentence, or None.

    `allowed`: `host` or `host:port` in lower case, asked wherever they are; others on these `ports` only (None: any).
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "The URL cannot be read; write it as https://host/path."
    if parts.scheme not in ("http", "https") or not host:
        return "The URL must start with http:// or https:// and name a host."
    if parts.username is not None or parts.password is not None:
        return "Take the user name and the password out of the URL; they are not read from there."
    name = f"[{host}]" if ":" in host else host.rstrip(".")
    if allowed & {host, name, f"{name}:{port}"}:
        return None
    if ports is not None and port not in ports:
        return f"Port {port} is not reached; only 80 and 443 are. {remedy(name, port)}"
    reason = _host_refusal(host)
    return f"{reason} {remedy(name, port)}" if reason else None


def remedy(host: str, port: int) -> str:
    """What to do about a host that is refused: of two ways, the second is the operator's."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"Use a public address, or have the operator of this service add {name}:{port} to {SETTING}."


def is_loopback(address: str) -> bool:
    """Whether the IP address is this machine's own."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None)
    return (inner or found).is_loopback


def _host_refusal(host: str) -> str | None:
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "The host is this machine itself; only public addresses are reached."
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return (
            "The address is not written as four numbers from 0 to 255 with dots between."
            if _ODD_NUMBER.fullmatch(name)
            else None
        )
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address.sixtofour or _carried(address) or address
    if not address.is_global or address.is_multicast:
        return "The address is not a public one."
    return None


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address in a NAT64 (RFC 6052) or an IPv4-compatible one."""
    if any(address in network for network in _CARRYING):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
