"""DNS look-ups with limits of time and size."""

from typing import Any

import dns.exception
import dns.name
import dns.resolver

from domain.sso.ports import DnsRecord, DnsUnavailable, RecordKind

_MAX_BYTES = 16 * 1024
_MAX_RECORDS = 64
_CACHE_SIZE = 4096


class DnsRecords:
    """DNS look-ups by dnspython (port DnsResolver in domain/sso/ports.py).

    Args:
        name_server: The name server as `address` or `address:port`; None for those of the machine.
    """

    def __init__(self, name_server: str | None = None) -> None:
        self._resolver = dns.resolver.Resolver(configure=False) if name_server else _create_system_resolver()
        if name_server:
            host, port = _split_server(name_server)
            self._resolver.nameservers, self._resolver.port = [host], port
        self._resolver.cache = dns.resolver.LRUCache(_CACHE_SIZE)

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...]:
        """Return the records of a kind for a name; none if the name is invalid, unknown or has no such records.

        Args:
            name: The domain name.
            kind: The type of the records, such as `TXT`.
            seconds: Maximum seconds of the look-up.

        Raises:
            DnsUnavailable: No name server responded in time.
        """
        if seconds <= 0:
            raise DnsUnavailable(name)
        try:
            query = dns.name.from_text(name.rstrip(".") + ".")
        except (dns.exception.DNSException, UnicodeError, ValueError):
            return ()
        try:
            answers = self._resolver.resolve(query, kind, lifetime=seconds, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except (dns.exception.DNSException, OSError) as error:
            raise DnsUnavailable(name) from error
        records = (_convert_record(answer, kind) for answer in list(answers)[:_MAX_RECORDS])
        return tuple(record for record in records if len(record.value) <= _MAX_BYTES)


def _create_system_resolver() -> dns.resolver.Resolver:
    """Create a resolver with the name servers of the machine, or without any if none are configured."""
    try:
        return dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        return dns.resolver.Resolver(configure=False)


def _split_server(server: str) -> tuple[str, int]:
    """Split `address` or `address:port` into address and port (default: 53)."""
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, int(port.removeprefix(":") or 53)
    host, _, port = server.partition(":")
    return host, int(port or 53)


def _convert_record(record: Any, kind: RecordKind) -> DnsRecord:
    """Convert a record of dnspython to a DnsRecord."""
    if kind == "TXT":
        return DnsRecord(b"".join(record.strings))
    if kind == "MX":
        return DnsRecord(record.exchange.to_text(omit_final_dot=True).encode(), record.preference)
    if kind == "PTR":
        return DnsRecord(record.target.to_text(omit_final_dot=True).encode())
    return DnsRecord(record.address.encode())
