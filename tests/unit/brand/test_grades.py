"""Grades of evidence, and the decision table."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from domain.brand.grades import (
    DECISION_TABLE,
    Doubt,
    Observations,
    Ruling,
    Strength,
    create_challenge,
    grade_evidence,
    list_profile_doubts,
    measure_strength,
    rule,
)
from domain.brand.model import ClaimEvidence, ClaimInvitation, EvidenceKind, Grade, ProfileStatus, VendorProfile
from tests.support.builders import MOMENT

ORG, TOKEN = "org_1", "3f2a"


def build_profile(**changes: Any) -> VendorProfile:
    """Return an unclaimed profile from gathered data."""
    fields: dict[str, Any] = {
        "id": "vnd_1", "name": "Fjord Furniture", "slug": "fjord-furniture", "brands": ("Fjord",),
        "website_domain": "www.fjord.example", "status": ProfileStatus.UNCLAIMED, "catalogue": "cat_1",
        "created_at": MOMENT, "updated_at": MOMENT, "holder": None, "is_gathered": True, "service_catalogue": "cat_1",
    }  # fmt: skip
    return VendorProfile(**fields | changes)


def build_evidence(kind: EvidenceKind, **changes: Any) -> ClaimEvidence:
    """Return evidence about the profile's domain, with its challenge."""
    domain = "www.fjord.example"
    return replace(ClaimEvidence(kind, domain, challenge=create_challenge(kind, domain, TOKEN)), **changes)


def grade(kind: EvidenceKind, observed: Observations, profile: VendorProfile | None = None, **changes: Any) -> Grade:
    """Return the grade of evidence."""
    found = grade_evidence(build_evidence(kind, **changes), profile or build_profile(), observed, None, "vcl_1", MOMENT)
    assert found.checked_at == MOMENT
    assert found.detail.endswith(".")
    return found.grade


def test_the_documentation_has_the_decision_table() -> None:
    text = (Path(__file__).parents[3] / "docs/brand.md").read_text("utf-8").partition("## Decisions")[2]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\| (\w+) \| (\w+) \| (\w+) \|$", text, re.MULTILINE)
    assert rows == [tuple(map(str, row)) for row in DECISION_TABLE]


def test_the_table_has_one_row_for_each_strength() -> None:
    assert [row.strength for row in DECISION_TABLE] == list(Strength)


def test_doubts_prevent_approval() -> None:
    for strength in Strength:
        for is_expired in (True, False):
            assert rule(strength, [Doubt.RIVAL], is_expired=is_expired) is not Ruling.APPROVE


def test_more_evidence_never_weakens_the_ruling() -> None:
    order = [Ruling.WAIT, Ruling.REVIEW, Ruling.APPROVE]
    for column in ("without_doubt", "with_doubt"):
        places = [order.index(getattr(row, column)) for row in DECISION_TABLE]
        assert places == sorted(places)


def test_claims_without_evidence_expire() -> None:
    assert rule(Strength.NONE, [], is_expired=True) is Ruling.REJECT
    assert rule(Strength.NONE, [], is_expired=False) is Ruling.WAIT
    assert rule(Strength.CONCLUSIVE, [], is_expired=True) is Ruling.APPROVE


@pytest.mark.parametrize("grades", list(combinations_with_replacement(Grade, 3)))
def test_strength_is_that_of_the_best_evidence(grades: tuple[Grade, ...]) -> None:
    kinds = [EvidenceKind.EMAIL_DOMAIN, EvidenceKind.SITE_TAG, EvidenceKind.DOCUMENT]
    evidence = [build_evidence(kind, grade=found) for kind, found in zip(kinds, grades, strict=True)]
    if Grade.CONCLUSIVE in grades:
        expected = Strength.CONCLUSIVE
    elif Grade.STRONG in grades:
        expected = Strength.CORROBORATED if grades.count(Grade.STRONG) > 1 else Strength.STRONG
    else:
        expected = Strength.WEAK if Grade.WEAK in grades else Strength.NONE
    assert measure_strength(evidence) is expected


def test_the_same_kind_does_not_corroborate_itself() -> None:
    twice = [build_evidence(EvidenceKind.SITE_TAG, grade=Grade.STRONG)] * 2
    assert measure_strength(twice) is Strength.STRONG
    assert measure_strength([]) is Strength.NONE


def test_a_record_at_the_registrable_domain_is_conclusive() -> None:
    name = "_joinery.fjord.example"
    found = Observations(records={name: frozenset({"v=spf1 -all", "joinery-verification=3f2a"})})
    other = Observations(records={name: frozenset({"joinery-verification=other"})})
    assert grade(EvidenceKind.DNS_TXT, found) is Grade.CONCLUSIVE
    assert grade(EvidenceKind.DNS_TXT, other) is Grade.NONE
    assert grade(EvidenceKind.DNS_TXT, Observations(records={name: None}), grade=Grade.CONCLUSIVE) is Grade.CONCLUSIVE
    assert grade(EvidenceKind.DNS_TXT, found, build_profile(website_domain="other.example")) is Grade.NONE


def test_a_tag_is_strong() -> None:
    url = "https://www.fjord.example/"
    assert grade(EvidenceKind.SITE_TAG, Observations(tags={url: TOKEN})) is Grade.STRONG
    for found in ("", "other"):
        assert grade(EvidenceKind.SITE_TAG, Observations(tags={url: found})) is Grade.NONE
    unreadable = Observations(tags={url: None}, page_faults={url: "The server did not respond in time."})
    assert grade(EvidenceKind.SITE_TAG, unreadable, grade=Grade.STRONG) is Grade.STRONG


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("anna@fjord.example", Grade.STRONG),
        ("anna@www.fjord.example", Grade.STRONG),
        ("anna@mail.fjord.example", Grade.NONE),
        ("anna@fjord.example.evil.test", Grade.NONE),
        ("anna@evil-fjord.example", Grade.NONE),
        ("anna@gmail.com", Grade.NONE),
    ],
)
def test_addresses_in_the_domain_are_strong(address: str, expected: Grade) -> None:
    assert grade(EvidenceKind.EMAIL_DOMAIN, Observations(manager_addresses=frozenset({address}))) is expected


@pytest.mark.parametrize("domain", ["gmail.com", "web.de", None])
def test_free_mail_proves_nothing(domain: str | None) -> None:
    observed = Observations(manager_addresses=frozenset({"fjord@gmail.com", "fjord@web.de"}))
    assert grade(EvidenceKind.EMAIL_DOMAIN, observed, build_profile(website_domain=domain)) is Grade.NONE


def test_documents_are_weak() -> None:
    assert grade(EvidenceKind.DOCUMENT, Observations(), value="Trade mark 1") is Grade.WEAK


@pytest.mark.parametrize(
    ("changes", "address", "expected"),
    [
        ({}, "anna@fjord.example", Grade.CONCLUSIVE),
        ({"email": "Anna@Fjord.example"}, "anna@fjord.example", Grade.CONCLUSIVE),
        ({}, "eve@fjord.example", Grade.NONE),
        ({}, None, Grade.NONE),
        ({"profile": "vnd_2"}, "anna@fjord.example", Grade.NONE),
        ({"expires_at": MOMENT}, "anna@fjord.example", Grade.NONE),
        ({"revoked_at": MOMENT}, "anna@fjord.example", Grade.NONE),
        ({"claim": "vcl_2"}, "anna@fjord.example", Grade.NONE),
        ({"claim": "vcl_1"}, None, Grade.CONCLUSIVE),
    ],
)
def test_only_the_invited_address_accepts_an_invitation(
    changes: dict[str, Any], address: str | None, expected: Grade
) -> None:
    invitation = ClaimInvitation("vci_1", "vnd_1", "anna@fjord.example", b"", MOMENT, MOMENT + timedelta(days=1))
    evidence = ClaimEvidence(EvidenceKind.INVITATION, "vci_1")
    observed = Observations(acting_address=address)
    found = grade_evidence(evidence, build_profile(), observed, replace(invitation, **changes), "vcl_1", MOMENT)
    assert found.grade is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"brands": ("Fjord", "Entirely Different")}, []),
        ({"holder": "org_2"}, [Doubt.HELD]),
        ({"holder": ORG}, []),
        ({"website_domain": "xn--fjrd-55d.example"}, [Doubt.DECEPTIVE]),
        ({"brands": ("Fjоrd",)}, [Doubt.DECEPTIVE]),
        ({"name": "Möbel-Börse"}, []),
        ({"is_gathered": False, "name": "Fjord Ltd", "holder": ORG}, []),
        ({"is_gathered": False, "name": "Fjord", "holder": ORG, "brands": ("Ikea",)}, [Doubt.SELF_DECLARED]),
        ({"is_gathered": False, "name": "Ikea", "holder": ORG}, [Doubt.SELF_DECLARED]),
        ({"is_gathered": False, "name": "Fjord", "website_domain": None}, [Doubt.SELF_DECLARED]),
    ],
)
def test_doubts_follow_from_the_profile(changes: dict[str, Any], expected: list[Doubt]) -> None:
    assert list_profile_doubts(build_profile(**changes), ORG) == expected
