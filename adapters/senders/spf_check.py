"""SPF (RFC 7208): permission of the sending server for the return path's domain."""

from typing import Any

import spf

from adapters.senders.asking import Asking
from domain.mail.model import CheckResult, Envelope
from domain.sources.senders import domain_of
from domain.sso.ports import NamesUnavailable, RecordKind

_LONGEST_LABEL = 63
_LONGEST_RECORD = 4096
_TIMEOUT = 8


class _Query(spf.query):  # type: ignore[misc]  # the library is untyped
    """SPF evaluation of the library, with this adapter's look-ups instead of its global ones."""

    def __init__(self, asking: Asking, peer: str, sender: str, helo: str) -> None:
        super().__init__(i=peer, s=sender, h=helo, strict=True, timeout=_TIMEOUT)
        self._asking = asking

    def dns(self, name: Any, qtype: str, cnames: Any = None, ignore_void: bool = False) -> list[Any]:
        """Return the values in the library's form, counting void look-ups."""
        found = self._values(str(name).rstrip(".").lower(), qtype)
        if not found and not ignore_void:
            self.void_lookups += 1
            if self.void_lookups > spf.MAX_VOID_LOOKUPS:
                raise spf.PermError(f"Void lookup limit of {spf.MAX_VOID_LOOKUPS} exceeded")
        return found

    def _values(self, name: str, qtype: str) -> list[Any]:
        kinds: dict[str, RecordKind] = {"TXT": "TXT", "A": "A", "AAAA": "AAAA", "MX": "MX", "PTR": "PTR"}
        kind = kinds.get(qtype)
        labels = name.split(".")
        if kind is None or not all(0 < len(label) <= _LONGEST_LABEL for label in labels):
            return []
        try:
            records = self._asking.look_up(name, kind)
        except NamesUnavailable as error:
            raise spf.TempError(f"DNS {error}") from error
        if kind == "TXT":
            return [(record.value,) for record in records if len(record.value) <= _LONGEST_RECORD]
        if kind == "MX":
            return [(record.preference, record.value.decode("ascii", "replace")) for record in records]
        return [record.value.decode("ascii", "replace") for record in records]


def spf_result(asking: Asking, envelope: Envelope) -> tuple[CheckResult, str]:
    """Return the result and its domain. An evaluation that fails gives `permerror`."""
    domain = domain_of(envelope.sender.rpartition("@")[2]) or ""
    try:
        found = _Query(asking, envelope.peer, envelope.sender, envelope.helo).check()[0]
        return CheckResult(found), domain
    except NamesUnavailable:
        return CheckResult.TEMPERROR, domain
    except Exception:  # records are untrusted: any error of the library means that nothing is proven
        return CheckResult.PERMERROR, domain
