"""SPF, DKIM and DMARC of one message, within a bounded time."""

import asyncio

from adapters.senders.asking import Asking, LookUp
from adapters.senders.dkim_check import passing, signatures, summary
from adapters.senders.spf_check import spf_result
from domain.mail import dmarc
from domain.mail.model import Authentication, CheckResult, Envelope
from domain.sso.ports import NameRecord, NameRecords, NamesUnavailable, RecordKind
from ports.parsing import ParserEnded, ParserFailed, ParserRunner

SECONDS = 30.0
_UNKNOWN = Authentication(CheckResult.TEMPERROR, CheckResult.TEMPERROR, CheckResult.TEMPERROR)


class SenderVerifier:
    """SenderChecks. `run` runs the verification; DNS names are looked up in this process."""

    def __init__(self, records: NameRecords, run: ParserRunner = asyncio.to_thread) -> None:
        self._records, self._run = records, run

    async def check(self, raw: bytes, author: str, envelope: Envelope) -> Authentication:
        """Verify a message's sender; a check that does not end in time gives `temperror`."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._run(verify, self._look_up, raw, author, envelope)
        except (TimeoutError, ParserEnded, ParserFailed):
            return _UNKNOWN

    def _look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[NameRecord, ...] | None:
        try:
            return self._records.look_up(name, kind, seconds)
        except NamesUnavailable:
            return None


def verify(look_up: LookUp, raw: bytes, author: str, envelope: Envelope) -> Authentication:
    """Evaluate SPF, DKIM and DMARC for a message by that author."""
    asking, domain = Asking(look_up), author.rpartition("@")[2]
    spf, spf_domain = spf_result(asking, envelope)
    signed = signatures(raw, asking)
    dkim = summary(signed)
    try:
        found = _records_for(asking, domain)
    except NamesUnavailable:
        return Authentication(spf, dkim, CheckResult.TEMPERROR)
    counts = dmarc.policy_for(domain, found)
    if counts is None:
        return Authentication(spf, dkim, CheckResult.NONE)
    policy, requested_policy = counts
    speaking = [(name, policy.strict_dkim) for name in passing(signed)]
    if spf == CheckResult.PASS:
        speaking.append((spf_domain, policy.strict_spf))
    unsure = CheckResult.TEMPERROR in (spf, *(signature.result for signature in signed))
    try:
        passed = any(_aligned(asking, domain, other, found, strict=strict) for other, strict in speaking)
    except NamesUnavailable:
        passed, unsure = False, True
    return Authentication(spf, dkim, dmarc.outcome(passed=passed, unsure=unsure), requested_policy)


def _records_for(asking: Asking, domain: str) -> dict[str, dmarc.Policy]:
    """Return the DMARC records at a domain and above it, by name. Raises NamesUnavailable."""
    found: dict[str, dmarc.Policy] = {}
    for name in dmarc.names_to_walk(domain):
        record = dmarc.record_of(text.value for text in asking.look_up(f"_dmarc.{name}", "TXT"))
        if record is not None:
            found[name] = record
            if record.psd == "n" or (record.psd == "y" and name != domain):
                break
    return found


def _aligned(asking: Asking, author: str, other: str, found: dict[str, dmarc.Policy], *, strict: bool) -> bool:
    own = dmarc.organisation_of(author, found)
    if author == other:
        return True
    if strict or not (other == own or other.endswith("." + own)):
        return False
    theirs = own if other == own else dmarc.organisation_of(other, _records_for(asking, other))
    return dmarc.aligned(author, other, (own, theirs), strict=strict)
