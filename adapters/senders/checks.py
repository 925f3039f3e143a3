"""Checks of a message's sender by SPF, DKIM and DMARC, within a limited time."""

import asyncio

from adapters.senders.dkim_check import list_passing_domains, summarise_results, verify_signatures
from adapters.senders.dns_lookups import DnsLookup, TimeLimitedLookups
from adapters.senders.spf_check import check_spf
from domain.mail import dmarc
from domain.mail.model import Authentication, Envelope, SenderCheckResult
from domain.sso.ports import DnsRecord, DnsResolver, DnsUnavailable, RecordKind
from ports.parsing import ParserFailed, ParserRunner, ParserTerminated

MAX_SECONDS = 30.0
_TEMPORARY_ERRORS = Authentication(
    SenderCheckResult.TEMPERROR, SenderCheckResult.TEMPERROR, SenderCheckResult.TEMPERROR
)


class SenderVerifier:
    """Verification of senders (port SenderChecks in domain/mail/ports.py).

    Args:
        resolver: DNS resolver. Its look-ups run in this process.
        run_parser: Function that runs the blocking verification in a thread or in another process.
    """

    def __init__(self, resolver: DnsResolver, run_parser: ParserRunner = asyncio.to_thread) -> None:
        self._records, self._run = resolver, run_parser

    async def check(self, raw: bytes, author_address: str, envelope: Envelope) -> Authentication:
        """Verify the sender of a message by SPF, DKIM and DMARC.

        All results are `temperror` if the verification fails or takes more than 30 seconds. `author_address` is the
        address in the header From.
        """
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await self._run(verify_sender, self._look_up, raw, author_address, envelope)
        except (TimeoutError, ParserTerminated, ParserFailed):
            return _TEMPORARY_ERRORS

    def _look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...] | None:
        """Return the DNS records of a name; None if they are not available within `seconds`."""
        try:
            return self._records.look_up(name, kind, seconds)
        except DnsUnavailable:
            return None


def verify_sender(look_up: DnsLookup, raw_message: bytes, author_address: str, envelope: Envelope) -> Authentication:
    """Verify the sender of a message by SPF, DKIM and DMARC.

    Args:
        look_up: Returns DNS records.
        raw_message: The message as received.
        author_address: The address in the header From.
        envelope: The sending server and the return path.
    """
    lookups, domain = TimeLimitedLookups(look_up), author_address.rpartition("@")[2]
    spf, spf_domain = check_spf(lookups, envelope)
    signed = verify_signatures(raw_message, lookups)
    dkim = summarise_results(signed)
    try:
        found = _find_dmarc_records(lookups, domain)
    except DnsUnavailable:
        return Authentication(spf, dkim, SenderCheckResult.TEMPERROR)
    policy_match = dmarc.find_policy(domain, found)
    if policy_match is None:
        return Authentication(spf, dkim, SenderCheckResult.NONE)
    policy, requested_policy = policy_match
    verified_domains = [(name, policy.requires_strict_dkim) for name in list_passing_domains(signed)]
    if spf == SenderCheckResult.PASS:
        verified_domains.append((spf_domain, policy.requires_strict_spf))
    dns_failed = SenderCheckResult.TEMPERROR in (spf, *(signature.result for signature in signed))
    try:
        passed = any(_is_aligned(lookups, domain, other, found, strict=strict) for other, strict in verified_domains)
    except DnsUnavailable:
        passed, dns_failed = False, True
    return Authentication(
        spf, dkim, dmarc.determine_dmarc_result(passed=passed, dns_failed=dns_failed), requested_policy
    )


def _find_dmarc_records(lookups: TimeLimitedLookups, domain: str) -> dict[str, dmarc.DmarcRecord]:
    """Return the DMARC records of a domain and of its parent domains, by domain. Raises DnsUnavailable."""
    found: dict[str, dmarc.DmarcRecord] = {}
    for name in dmarc.list_lookup_names(domain):
        record = dmarc.find_record(text.value for text in lookups.look_up(f"_dmarc.{name}", "TXT"))
        if record is not None:
            found[name] = record
            if record.psd == "n" or (record.psd == "y" and name != domain):
                break
    return found


def _is_aligned(
    lookups: TimeLimitedLookups, author: str, other_domain: str, records: dict[str, dmarc.DmarcRecord], *, strict: bool
) -> bool:
    """Return whether another domain is aligned with the author's domain (DMARC).

    Aligned domains are equal or, unless `strict` is set, have the same organisational domain. `records` are the DMARC
    records of the author's domain and its parent domains, by domain.
    """
    own = dmarc.find_organisational_domain(author, records)
    if author == other_domain:
        return True
    if strict or not (other_domain == own or other_domain.endswith("." + own)):
        return False
    theirs = (
        own
        if other_domain == own
        else dmarc.find_organisational_domain(other_domain, _find_dmarc_records(lookups, other_domain))
    )
    return dmarc.is_aligned(author, other_domain, (own, theirs), strict=strict)
