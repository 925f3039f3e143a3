"""DMARC evaluation: the policy of an author's domain, and its alignment with SPF and DKIM.

RFC 7489. Organisational domains are found by the DNS tree walk of its successor, which needs no list of public
suffixes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.mail.model import CheckResult, MailPolicy

_MOST_LOOKS = 8
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Policy:
    """A domain's DMARC record. `psd`: whether the name is a public suffix (`y`) or not (`n`)."""

    policy: MailPolicy
    subdomains: MailPolicy
    strict_dkim: bool
    strict_spf: bool
    psd: str


def names_to_walk(domain: str) -> tuple[str, ...]:
    """Return the names whose records determine the organisational domain, from the domain upwards; at most eight."""
    labels = domain.split(".")
    names = [".".join(labels[at:]) for at in range(len(labels))]
    if len(names) > _MOST_LOOKS:
        names = [names[0], *names[-(_MOST_LOOKS - 1) :]]
    return tuple(names)


def record_of(texts: Iterable[bytes]) -> Policy | None:
    """Return the record among the texts at a domain's `_dmarc`; None if there is none, or more than one."""
    found = [text for text in texts if text[:8].replace(b" ", b"").lower().startswith(b"v=dmarc1")]
    return _parsed(found[0][:_LONGEST].decode("ascii", errors="replace")) if len(found) == 1 else None


def organisation_of(domain: str, records: Mapping[str, Policy]) -> str:
    """Return the organisational domain by the records of a walk: the highest one that has a record."""
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
    """Return the record and policy that apply to mail of that author's domain, or None."""
    if own := records.get(domain):
        return own, own.policy
    above = records.get(organisation_of(domain, records))
    return (above, above.subdomains) if above else None


def aligned(author: str, other: str, organisations: Sequence[str], *, strict: bool) -> bool:
    """Return whether a checked domain is aligned with the author's; `organisations` are both organisational domains."""
    return author == other if strict else organisations[0] == organisations[1]


def outcome(*, passed: bool, unsure: bool) -> CheckResult:
    """Return the DMARC result under a policy.

    `unsure`: a check that did not pass might have passed with working DNS.
    """
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
    """Return the next weaker policy, applied while a domain tests its policy."""
    return MailPolicy.QUARANTINE if policy == MailPolicy.REJECT else MailPolicy.NONE
