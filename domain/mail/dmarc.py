"""DMARC evaluation (RFC 7489): the policy of the author's domain, and its alignment with SPF and DKIM.

The organisational domain (the domain that an organisation registered) is found by the DNS tree walk of DMARCbis, the
successor of RFC 7489. The tree walk needs no list of public suffixes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.mail.model import MailPolicy, SenderCheckResult

_MAX_LOOKUPS = 8
_MAX_RECORD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DmarcRecord:
    """DMARC record of a domain.

    Attributes:
        policy: The policy for mail from the domain.
        subdomain_policy: The policy for mail from subdomains.
        requires_strict_dkim: Whether DKIM must have verified exactly the author's domain.
        requires_strict_spf: Whether SPF must have verified exactly the author's domain.
        psd: Whether the domain is a public suffix: `y` (yes), `n` (no) or `u` (unknown).
    """

    policy: MailPolicy
    subdomain_policy: MailPolicy
    requires_strict_dkim: bool
    requires_strict_spf: bool
    psd: str


def list_lookup_names(domain: str) -> tuple[str, ...]:
    """Return the domain and its parent domains, whose DMARC records determine the organisational domain.

    At most eight.
    """
    labels = domain.split(".")
    names = [".".join(labels[index:]) for index in range(len(labels))]
    if len(names) > _MAX_LOOKUPS:
        names = [names[0], *names[-(_MAX_LOOKUPS - 1) :]]
    return tuple(names)


def find_record(txt_records: Iterable[bytes]) -> DmarcRecord | None:
    """Return the only DMARC record among the TXT records of a domain's `_dmarc` name.

    None if there is not exactly one.
    """
    found = [text for text in txt_records if text[:8].replace(b" ", b"").lower().startswith(b"v=dmarc1")]
    return _parse_record(found[0][:_MAX_RECORD_BYTES].decode("ascii", errors="replace")) if len(found) == 1 else None


def find_organisational_domain(domain: str, records: Mapping[str, DmarcRecord]) -> str:
    """Return the organisational domain: the highest of the domain and its parent domains that has a DMARC record.

    If none has a record, return the domain. Records that state whether a domain is a public suffix take precedence.

    Args:
        domain: The domain.
        records: The DMARC records by domain.
    """
    walk = list_lookup_names(domain)
    highest = domain
    for index, name in enumerate(walk):
        record = records.get(name)
        if record is None:
            continue
        if record.psd == "n":
            return name
        if record.psd == "y":
            return walk[index - 1] if index else name
        highest = name
    return highest


def find_policy(domain: str, records: Mapping[str, DmarcRecord]) -> tuple[DmarcRecord, MailPolicy] | None:
    """Return the DMARC record and the policy that apply to mail whose author is in the domain, or None.

    `records` are DMARC records by domain.
    """
    if domain_record := records.get(domain):
        return domain_record, domain_record.policy
    parent_record = records.get(find_organisational_domain(domain, records))
    return (parent_record, parent_record.subdomain_policy) if parent_record else None


def is_aligned(
    author_domain: str, verified_domain: str, organisational_domains: Sequence[str], *, strict: bool
) -> bool:
    """Return whether a domain that SPF or DKIM has verified is aligned with the author's domain.

    Args:
        author_domain: The author's domain.
        verified_domain: The verified domain.
        organisational_domains: The organisational domain of each of the two domains.
        strict: Whether aligned domains must be equal; otherwise, they must have the same organisational domain.
    """
    return author_domain == verified_domain if strict else organisational_domains[0] == organisational_domains[1]


def determine_dmarc_result(*, passed: bool, dns_failed: bool) -> SenderCheckResult:
    """Return the result of DMARC for mail from a domain with a policy: pass, fail, or a temporary error.

    Args:
        passed: Whether an aligned check has passed.
        dns_failed: Whether an aligned check could not be made because DNS did not respond.
    """
    if passed:
        return SenderCheckResult.PASS
    return SenderCheckResult.TEMPERROR if dns_failed else SenderCheckResult.FAIL


def _parse_record(text: str) -> DmarcRecord | None:
    tags: dict[str, str] = {}
    for tag in text.split(";"):
        name, _, value = tag.partition("=")
        tags.setdefault(name.strip().lower(), value.strip().lower())
    policy = _parse_policy(tags.get("p"))
    if policy is None:
        if "rua" not in tags:
            return None
        policy = MailPolicy.NONE
    subdomains = _parse_policy(tags.get("sp")) or policy
    if tags.get("t") == "y" or tags.get("pct") == "0":
        policy, subdomains = _weaken(policy), _weaken(subdomains)
    return DmarcRecord(policy, subdomains, tags.get("adkim") == "s", tags.get("aspf") == "s", tags.get("psd", "u"))


def _parse_policy(text: str | None) -> MailPolicy | None:
    return next((policy for policy in MailPolicy if policy.value == text), None)


def _weaken(policy: MailPolicy) -> MailPolicy:
    """Return the next weaker policy, which applies while the domain declares that it tests its policy."""
    return MailPolicy.QUARANTINE if policy == MailPolicy.REJECT else MailPolicy.NONE
