"""DMARC: which policy counts for an author's domain, and whether SPF or DKIM speak for it.

RFC 7489; organisations' domains are found by the DNS tree walk of its successor, so that no list of public suffixes has to be kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.mail.model import CheckResult, MailPolicy

_MOST_LOOKS = 8
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Policy:
    """A domain's DMARC record. `psd`: the name is a registry's, below which organisations begin (`y`), or is not (`n`)."""

    policy: MailPolicy
    subdomains: MailPolicy
    strict_dkim: bool
    strict_spf: bool
    psd: str


def names_to_walk(domain: str) -> tuple[str, ...]:
    """Where records may stand that say whose the domain is, from it upwards; eight names at most."""
    labels = domain.split(".")
    names = [".".join(labels[at:]) for at in range(len(labels))]
    if len(names) > _MOST_LOOKS:
        names = [names[0], *names[-(_MOST_LOOKS - 1) :]]
    return tuple(names)


def record_of(texts: Iterable[bytes]) -> Policy | None:
    """Return the DMARC record among the texts of a domain's `_dmarc` name; None for none or several."""
    found = [text for text in texts if text[:8].replace(b" ", b"").lower().startswith(b"v=dmarc1")]
    return _parsed(found[0][:_LONGEST].decode("ascii", errors="replace")) if len(found) == 1 else None


def organisation_of(domain: str, records: Mapping[str, Policy]) -> str:
    """Return the organisational domain by the records of a DNS tree walk: the highest domain with a record."""
    walk = names_to_walk(domain)
    highest = domain
    for at, name in enumerate(walk):
        record = records.get(name)
        if record is None:
            continue
        if record.psd == "n":
            return name
        if record.psd == "y":
            return walk[at - 1] if at else name
        highest = name
    return highest


def policy_for(domain: str, records: Mapping[str, Policy]) -> tuple[Policy, MailPolicy] | None:
    """Return the record and policy that apply to mail of the author's domain, or None."""
    if own := records.get(domain):
        return own, own.policy
    above = records.get(organisation_of(domain, records))
    return (above, above.subdomains) if above else None


def aligned(author: str, other: str, organisations: Sequence[str], *, strict: bool) -> bool:
    """Whether a checked domain speaks for the author's; `organisations` are both domains' organisations."""
    return author == other if strict else organisations[0] == organisations[1]


def outcome(*, passed: bool, unsure: bool) -> CheckResult:
    """Return the DMARC result under a policy; `unsure` if a failed check might have passed without DNS errors."""
    if passed:
        return CheckResult.PASS
    return CheckResult.TEMPERROR if unsure else CheckResult.FAIL


def _parsed(text: str) -> Policy | None:
    tags: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        tags.setdefault(name.strip().lower(), value.strip().lower())
    policy = _policy(tags.get("p"))
    if policy is None:
        if "rua" not in tags:
            return None
        policy = MailPolicy.NONE
    subdomains = _policy(tags.get("sp")) or policy
    if tags.get("t") == "y" or tags.get("pct") == "0":
        policy, subdomains = _milder(policy), _milder(subdomains)
    return Policy(policy, subdomains, tags.get("adkim") == "s", tags.get("aspf") == "s", tags.get("psd", "u"))


def _policy(text: str | None) -> MailPolicy | None:
    return next((policy for policy in MailPolicy if policy.value == text), None)


def _milder(policy: MailPolicy) -> MailPolicy:
    """Return the policy of a domain that is only testing its policy."""
    return MailPolicy.QUARANTINE if policy == MailPolicy.REJECT else MailPolicy.NONE
