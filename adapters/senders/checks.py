"""SPF, DKIM and DMARC of one message, off the event loop and within a bounded time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from adapters.senders.asking import Asking
from adapters.senders.dkim_check import passing, signatures, summary
from adapters.senders.spf_check import spf_result
from domain.mail import dmarc
from domain.mail.model import Authentication, CheckResult, Envelope
from ports.names import NameRecords, NamesUnavailable

SECONDS: Final = 30.0
_UNKNOWN: Final = Authentication(CheckResult.TEMPERROR, CheckResult.TEMPERROR, CheckResult.TEMPERROR)


class ThreadedSenderChecks:
    """SenderChecks, in threads of its own: so many messages at a time, the others wait."""

    def __init__(self, records: NameRecords, threads: int = 8) -> None:
        self._records = records
        self._threads = ThreadPoolExecutor(threads, "sender checks")

    async def check(self, raw: bytes, author: str, envelope: Envelope) -> Authentication:
        """What did not come to an end in time is a `temperror`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SECONDS):
                return await loop.run_in_executor(self._threads, _checked, self._records, raw, author, envelope)
        except TimeoutError:
            return _UNKNOWN

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _checked(records: NameRecords, raw: bytes, author: str, envelope: Envelope) -> Authentication:
    asking, domain = Asking(records), author.rpartition("@")[2]
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
    policy, asked = counts
    speaking = [(name, policy.strict_dkim) for name in passing(signed)]
    if spf == CheckResult.PASS:
        speaking.append((spf_domain, policy.strict_spf))
    unsure = CheckResult.TEMPERROR in (spf, *(one.result for one in signed))
    try:
        passed = any(_aligned(asking, domain, other, found, strict=strict) for other, strict in speaking)
    except NamesUnavailable:
        passed, unsure = False, True
    return Authentication(spf, dkim, dmarc.outcome(passed=passed, unsure=unsure), asked)


def _records_for(asking: Asking, domain: str) -> dict[str, dmarc.Policy]:
    """The DMARC records at a domain and above it, by name. Raises NamesUnavailable."""
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
