"""DNS lookups with limits of time and size."""

from typing import Any

import dns.exception
import dns.name
import dns.resolver

from domain.sso.ports import NameRecord, NamesUnavailable, RecordKind

_MAX_BYTES = 16 * 1024
_MAX_RECORDS = 64
_CACHE_SIZE = 4096


class DnsRecords:
    """NameRecords by dnspython. `server` is `address` or `address:port` of one resolver; None means the machine's resolvers."""

    def __init__(self, server: str | None = None) -> None:
        self._resolver = dns.resolver.Resolver(configure=False) if server else _system_resolver()
        if server:
            host, port = _host_and_port(server)
            self._resolver.nameservers, self._resolver.port = [host], port
        self._resolver.cache = dns.resolver.LRUCache(_CACHE_SIZE)

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        """Return the records, none for an invalid or unknown name or one without such records. Raises NamesUnavailable."""
        if seconds <= 0:
            raise NamesUnavailable(name)
        try:
            query = dns.name.from_text(name.rstrip(".") + ".")
        except (dns.exception.DNSException, UnicodeError, ValueError):
            return ()
        try:
            answers = self._resolver.resolve(query, kind, lifetime=seconds, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except (dns.exception.DNSException, OSError) as error:
            raise NamesUnavailable(name) from error
        records = (_record(answer, kind) for answer in list(answers)[:_MAX_RECORDS])
        return tuple(record for record in records if len(record.value) <= _MAX_BYTES)


def _system_resolver() -> dns.resolver.Resolver:
    try:
        return dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        return dns.resolver.Resolver(configure=False)


def _host_and_port(server: str) -> tuple[str, int]:
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, int(port.removeprefix(":") or 53)
    host, _, port = server.partition(":")
    return host, int(port or 53)


def _record(answer: Any, kind: RecordKind) -> NameRecord:
    if kind == "TXT":
        return NameRecord(b"".join(answer.strings))
    if kind == "MX":
        return NameRecord(answer.exchange.to_text(omit_final_dot=True).encode(), answer.preference)
    if kind == "PTR":
        return NameRecord(answer.target.to_text(omit_final_dot=True).encode())
    return NameRecord(answer.address.encode())
