"""Checks of URLs that a user enters for a source or webhook endpoint (docs/conventions.md#outbound-safety).

These checks refuse URLs that the service will never request. IP addresses of host names are checked at each connection.
"""

import ipaddress
import re
from urllib.parse import urlsplit

ALLOWED_HOSTS_SETTING = "JOINERY_ALLOW_PRIVATE_HOSTS"
"""Name of the operator's setting with the hosts that are allowed although they are not public (docs/configuration.md)."""
PORTS = frozenset({80, 443})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MALFORMED = "The URL is malformed. Write it as https://host/path."
NO_WEB_URL = "The URL must start with http:// or https:// and name a host."
WITH_CREDENTIALS = "Remove the user name and password from the URL."
ODD_NOTATION = "The IP address is in an unusual notation. Write four numbers from 0 to 255, separated by dots."
NOT_PUBLIC = "The address is not public."
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NON_PUBLIC_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
        "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20",
        "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    )
)  # fmt: skip
"""Special-purpose networks (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-).

They are listed because versions of `ipaddress` differ. Deprecated ones are included: site-local, 6to4 relays, and
IPv4-translated.
"""
_ODD_NUMBER = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}\.?")


def describe_url_refusal(url: str, allowed: frozenset[str], ports: frozenset[int] | None = PORTS) -> str | None:
    """Return the reason why the service will not request the URL, as sentences, or None if the URL is permitted.

    Args:
        url: The URL.
        allowed: Hosts that are always allowed, as `host` or `host:port` in lower case.
        ports: Ports that are allowed for other hosts; None for any.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return MALFORMED
    if parts.scheme not in ("http", "https") or not host:
        return NO_WEB_URL
    if parts.username is not None or parts.password is not None:
        return WITH_CREDENTIALS
    name = f"[{host}]" if ":" in host else host.rstrip(".")
    if allowed & {host, name, f"{name}:{port}"}:
        return None
    if ports is not None and port not in ports:
        return describe_port_refusal(name, port)
    reason = _describe_host_refusal(host)
    return f"{reason} {describe_remedy(name, port)}" if reason else None


def describe_port_refusal(host: str, port: int) -> str:
    """Return the reason why a port is not permitted, followed by the remedy, as sentences."""
    return f"Port {port} is not permitted; only 80 and 443 are. {describe_remedy(host, port)}"


def describe_remedy(host: str, port: int) -> str:
    """Return what a user or the operator can do about a host that is not permitted, as a sentence."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"Use a public address, or have the operator of this service add {name}:{port} to {ALLOWED_HOSTS_SETTING}."


def is_loopback(address: str) -> bool:
    """Return whether the IP address is a loopback address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None)
    return (inner or found).is_loopback


def is_public(address: Address) -> bool:
    """Return whether an IP address, and any IPv4 address embedded in it, is a public unicast address.

    Embedded addresses are IPv4-mapped, 6to4 (RFC 3056) and NAT64 (RFC 6052); Teredo addresses (RFC 4380) are never public.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _NON_PUBLIC_NETWORKS)


def _describe_host_refusal(host: str) -> str | None:
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "The host is this machine. Only public addresses are allowed."
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return ODD_NOTATION if _ODD_NUMBER.fullmatch(name) else None
    return None if is_public(address) else NOT_PUBLIC
