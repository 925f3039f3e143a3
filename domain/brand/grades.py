"""Grades of evidence, and the decision that follows from them (docs/brand.md#decisions)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from domain.brand.domains import extract_registrable_label, find_registrable_domain, is_deceptive, is_free_mail_domain
from domain.brand.model import Challenge, ClaimEvidence, ClaimInvitation, EvidenceKind, Grade, VendorProfile
from domain.brand.names import compute_brand_key
from domain.sso.model import parse_email_domain

RECORD_LABEL = "_joinery"
"""Label of the DNS name at which the TXT record of a claim is expected."""
VALUE_PREFIX = "joinery-verification="
"""Start of the TXT record of a claim; the token follows."""
TAG_NAME = "joinery-verification"
"""Name of the meta element of a claim; its content is the token."""


class Strength(StrEnum):
    """Strength of all evidence of a claim together."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"
    CORROBORATED = "corroborated"
    CONCLUSIVE = "conclusive"


class Ruling(StrEnum):
    """Rulings of the decision table; `wait` decides nothing."""

    WAIT = "wait"
    REVIEW = "review"
    APPROVE = "approve"
    REJECT = "reject"


class DecisionRow(NamedTuple):
    """Rulings for claims of one strength: without doubts, with doubts, and when the claim has expired."""

    strength: Strength
    without_doubt: Ruling
    with_doubt: Ruling
    expired: Ruling


DECISION_TABLE: Final = (
    DecisionRow(Strength.NONE, Ruling.WAIT, Ruling.WAIT, Ruling.REJECT),
    DecisionRow(Strength.WEAK, Ruling.REVIEW, Ruling.REVIEW, Ruling.REVIEW),
    DecisionRow(Strength.STRONG, Ruling.REVIEW, Ruling.REVIEW, Ruling.REVIEW),
    DecisionRow(Strength.CORROBORATED, Ruling.APPROVE, Ruling.REVIEW, Ruling.REVIEW),
    DecisionRow(Strength.CONCLUSIVE, Ruling.APPROVE, Ruling.REVIEW, Ruling.REVIEW),
)


class Doubt(StrEnum):
    """Reasons why the operator decides whatever the evidence; the values are sentences."""

    RIVAL = "Another organisation claims this profile as well, with evidence."
    HELD = "Another organisation holds this profile."
    DECEPTIVE = "The name, a brand or the domain has letters that may look like others."
    TAKEN = "Another profile, verified or from gathered data, has the name or a brand."
    SELF_DECLARED = "The organisation stated the name and the brands itself, and they differ from the domain."


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations outside the database for one claim.

    Attributes:
        records: TXT records by DNS name; None if DNS did not respond.
        tags: The tag of each page by URL, empty if there is none; None if the page could not be read.
        page_faults: Reason why a page could not be read, by URL.
        manager_addresses: Verified email addresses of the organisation's owners and admins.
        acting_address: Verified email address of the person who acts; None for an API key or an app.
    """

    records: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    tags: Mapping[str, str | None] = field(default_factory=dict)
    page_faults: Mapping[str, str] = field(default_factory=dict)
    manager_addresses: frozenset[str] = frozenset()
    acting_address: str | None = None

    def covers(self, challenge: Challenge) -> bool:
        """Return whether the place of the challenge was observed, with or without success."""
        return challenge.name in self.records or challenge.url in self.tags


def create_challenge(kind: EvidenceKind, domain: str, token: str) -> Challenge | None:
    """Return what the vendor must publish to prove the domain; None for evidence without a challenge."""
    if kind is EvidenceKind.DNS_TXT:
        name = f"{RECORD_LABEL}.{find_registrable_domain(domain)}"
        return Challenge(record="TXT", name=name, value=VALUE_PREFIX + token)
    if kind is EvidenceKind.SITE_TAG:
        return Challenge(url=f"https://{domain}/", tag=f'<meta name="{TAG_NAME}" content="{token}">')
    return None


def extract_token(challenge: Challenge) -> str:
    """Return the token that a challenge contains."""
    return challenge.value.removeprefix(VALUE_PREFIX) if challenge.value else (challenge.tag or '""').split('"')[-2]


def grade_evidence(
    evidence: ClaimEvidence,
    profile: VendorProfile,
    observed: Observations,
    invitation: ClaimInvitation | None,
    claim: str,
    now: datetime,
) -> ClaimEvidence:
    """Return the evidence with its grade and what was seen; if nothing could be seen, the former grade stays.

    Args:
        evidence: The evidence.
        profile: The claimed profile.
        observed: What was seen.
        invitation: The invitation whose ID the evidence contains, or None.
        claim: The ID of the claim.
        now: The time of the check.
    """
    grade, detail = _judge(evidence, profile, observed, invitation, claim, now)
    return replace(evidence, grade=evidence.grade if grade is None else grade, detail=detail, checked_at=now)


def _judge(
    evidence: ClaimEvidence,
    profile: VendorProfile,
    observed: Observations,
    invitation: ClaimInvitation | None,
    claim: str,
    now: datetime,
) -> tuple[Grade | None, str]:
    match evidence.kind:
        case EvidenceKind.DOCUMENT:
            return Grade.WEAK, "The operator will read the reference."
        case EvidenceKind.INVITATION:
            return _judge_invitation(profile, observed, invitation, claim, now)
        case EvidenceKind.EMAIL_DOMAIN:
            return _judge_addresses(profile, observed)
        case EvidenceKind.DNS_TXT | EvidenceKind.SITE_TAG if evidence.value != profile.website_domain:
            return Grade.NONE, "The profile's domain has changed. Withdraw the claim and create another one."
        case EvidenceKind.DNS_TXT:
            return _judge_records(evidence, observed)
        case EvidenceKind.SITE_TAG:
            return _judge_page(evidence, observed)
    return None, "This kind of evidence is unknown."


def _judge_invitation(
    profile: VendorProfile, observed: Observations, invitation: ClaimInvitation | None, claim: str, now: datetime
) -> tuple[Grade, str]:
    if invitation is not None and invitation.claim == claim:
        return Grade.CONCLUSIVE, "The invitation was accepted."
    if invitation is None or invitation.profile != profile.id or not invitation.is_open(now):
        return Grade.NONE, "The code is not valid for this profile, or was used, revoked or has expired."
    if observed.acting_address is None:
        return (
            Grade.NONE,
            "Only a person with a verified email address can accept an invitation. Sign in, then check again.",
        )
    if observed.acting_address != invitation.email_key:
        return (
            Grade.NONE,
            "The invitation is for another email address. Sign in with the invited address, then check again.",
        )
    return Grade.CONCLUSIVE, "The invitation was accepted."


def _judge_addresses(profile: VendorProfile, observed: Observations) -> tuple[Grade, str]:
    if profile.website_domain is None:
        return Grade.NONE, "The profile has no domain."
    if is_free_mail_domain(profile.website_domain):
        return Grade.NONE, "Anyone can get an email address in this domain."
    domains = {profile.website_domain, find_registrable_domain(profile.website_domain)}
    if any(parse_email_domain(address) in domains for address in observed.manager_addresses):
        return Grade.STRONG, "An owner or admin has a verified email address in the domain."
    return Grade.NONE, "No owner or admin has a verified email address in the domain."


def _judge_records(evidence: ClaimEvidence, observed: Observations) -> tuple[Grade | None, str]:
    challenge = evidence.challenge or Challenge()
    found = observed.records.get(challenge.name or "")
    if found is None:
        return None, "The name servers did not respond. Check again later."
    if challenge.value in found:
        return Grade.CONCLUSIVE, "The DNS record was found."
    return Grade.NONE, "The DNS record was not found. New records may take hours to be visible."


def _judge_page(evidence: ClaimEvidence, observed: Observations) -> tuple[Grade | None, str]:
    challenge = evidence.challenge or Challenge()
    url = challenge.url or ""
    found = observed.tags.get(url)
    if found is None:
        return None, observed.page_faults.get(url, "The page could not be read.")
    if found and found == extract_token(challenge):
        return Grade.STRONG, "The tag was found."
    return Grade.NONE, "The tag was not found in the page."


def measure_strength(evidence: Iterable[ClaimEvidence]) -> Strength:
    """Return the strength of all evidence together; strong evidence of two kinds corroborates each other."""
    kinds_by_grade: dict[Grade, set[EvidenceKind]] = {}
    for item in evidence:
        kinds_by_grade.setdefault(item.grade, set()).add(item.kind)
    if Grade.CONCLUSIVE in kinds_by_grade:
        return Strength.CONCLUSIVE
    if strong := kinds_by_grade.get(Grade.STRONG):
        return Strength.CORROBORATED if len(strong) > 1 else Strength.STRONG
    return Strength.WEAK if Grade.WEAK in kinds_by_grade else Strength.NONE


def list_profile_doubts(profile: VendorProfile, org: str) -> list[Doubt]:
    """Return the doubts about a claim of the organisation that follow from the profile alone."""
    doubts = []
    names = (profile.name, *profile.brands)
    if profile.holder not in (None, org):
        doubts.append(Doubt.HELD)
    if any(map(is_deceptive, (*names, profile.website_domain or ""))):
        doubts.append(Doubt.DECEPTIVE)
    if not profile.is_gathered:
        label = compute_brand_key(extract_registrable_label(profile.website_domain)) if profile.website_domain else ""
        if any(compute_brand_key(name) != label for name in names):
            doubts.append(Doubt.SELF_DECLARED)
    return doubts


def rule(strength: Strength, doubts: Sequence[Doubt], *, is_expired: bool) -> Ruling:
    """Return the ruling of the decision table."""
    row = next(row for row in DECISION_TABLE if row.strength is strength)
    if is_expired and row.expired is Ruling.REJECT:
        return Ruling.REJECT
    return row.with_doubt if doubts else row.without_doubt
