"""SPF (RFC 7208): whether the sending server may send for the domain of the return path."""

from typing import Any

import spf

from adapters.senders.dns_lookups import TimeLimitedLookups
from domain.mail.model import Envelope, SenderCheckResult
from domain.sources.senders import normalise_domain
from domain.sso.ports import DnsUnavailable, RecordKind

_MAX_LABEL_LENGTH = 63
_MAX_RECORD_LENGTH = 4096
_TIMEOUT_SECONDS = 8


class _SpfQuery(spf.query):  # type: ignore[misc]  # the library is untyped
    """SPF evaluation of the library, with the DNS look-ups of TimeLimitedLookups instead of the library's."""

    def __init__(self, lookups: TimeLimitedLookups, peer: str, sender: str, helo: str) -> None:
        super().__init__(i=peer, s=sender, h=helo, strict=True, timeout=_TIMEOUT_SECONDS)
        self._lookups = lookups

    def dns(self, name: Any, qtype: str, cnames: Any = None, ignore_void: bool = False) -> list[Any]:
        """Return the DNS values of a name for the library. Raises spf.PermError after too many look-ups without a result."""
        found = self._look_up_values(str(name).rstrip(".").lower(), qtype)
        if not found and not ignore_void:
            self.void_lookups += 1
            if self.void_lookups > spf.MAX_VOID_LOOKUPS:
                raise spf.PermError(f"Void lookup limit of {spf.MAX_VOID_LOOKUPS} exceeded")
        return found

    def _look_up_values(self, name: str, qtype: str) -> list[Any]:
        """Return the DNS values of a name in the types that the library expects. Raises spf.TempError."""
        kinds: dict[str, RecordKind] = {"TXT": "TXT", "A": "A", "AAAA": "AAAA", "MX": "MX", "PTR": "PTR"}
        kind = kinds.get(qtype)
        labels = name.split(".")
        if kind is None or not all(0 < len(label) <= _MAX_LABEL_LENGTH for label in labels):
            return []
        try:
            records = self._lookups.look_up(name, kind)
        except DnsUnavailable as error:
            raise spf.TempError(f"DNS {error}") from error
        if kind == "TXT":
            return [(record.value,) for record in records if len(record.value) <= _MAX_RECORD_LENGTH]
        if kind == "MX":
            return [(record.preference, record.value.decode("ascii", "replace")) for record in records]
        return [record.value.decode("ascii", "replace") for record in records]


def check_spf(lookups: TimeLimitedLookups, envelope: Envelope) -> tuple[SenderCheckResult, str]:
    """Return the SPF result for the domain of the return path, and that domain. An error of the library means `permerror`."""
    domain = normalise_domain(envelope.sender.rpartition("@")[2]) or ""
    try:
        found = _SpfQuery(lookups, envelope.peer, envelope.sender, envelope.helo).check()[0]
        return SenderCheckResult(found), domain
    except DnsUnavailable:
        return SenderCheckResult.TEMPERROR, domain
    except Exception:  # records are untrusted: any error of the library means that nothing is verified
        return SenderCheckResult.PERMERROR, domain
