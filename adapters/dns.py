"""Asks name servers for records, within bounds of time and size."""

from typing import Any

import dns.exception
import dns.name
import dns.resolver

from domain.sso.ports import NameRecord, NamesUnavailable, RecordKind

_LONGEST = 16 * 1024
_MOST = 64
_CACHED = 4096


class DnsRecords:
    """NameRecords. `server` is `address` or `address:port` of one resolver; None: those of this machine's settings."""

    def __init__(self, server: str | None = None) -> None:
        self._resolver = dns.resolver.Resolver(configure=False) if server else _configured()
        if server:
            host, port = _place(server)
            self._resolver.nameservers, self._resolver.port = [host], port
        self._resolver.cache = dns.resolver.LRUCache(_CACHED)

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...]:
        """Names that are none, and answers without a record of the kind, have no records."""
        if seconds <= 0:
            raise NamesUnavailable(name)
        try:
            asked = dns.name.from_text(name.rstrip(".") + ".")
        except (dns.exception.DNSException, UnicodeError, ValueError):
            return ()
        try:
            found = self._resolver.resolve(asked, kind, lifetime=seconds, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except (dns.exception.DNSException, OSError) as error:
            raise NamesUnavailable(name) from error
        records = (_record(one, kind) for one in list(found)[:_MOST])
        return tuple(record for record in records if len(record.value) <= _LONGEST)


def _configured() -> dns.resolver.Resolver:
    try:
        return dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        return dns.resolver.Resolver(configure=False)


def _place(server: str) -> tuple[str, int]:
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, int(port.removeprefix(":") or 53)
    host, _, port = server.partition(":")
    return host, int(port or 53)


def _record(found: Any, kind: RecordKind) -> NameRecord:
    if kind == "TXT":
        return NameRecord(b"".join(found.strings))
    if kind == "MX":
        return NameRecord(found.exchange.to_text(omit_final_dot=True).encode(), found.preference)
    if kind == "PTR":
        return NameRecord(found.target.to_text(omit_final_dot=True).encode())
    return NameRecord(found.address.encode())
