"""DMARC: the applicable policy and the organisational domain."""

import pytest

from domain.mail.dmarc import DmarcRecord, find_organisational_domain, find_policy, find_record, list_lookup_names
from domain.mail.model import MailPolicy


def parse_record(text: str) -> DmarcRecord:
    found = find_record([text.encode()])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("texts", "policy"),
    [
        (["v=DMARC1; p=reject"], "reject"),
        (["V=DMARC1 ;P=Quarantine;rua=mailto:a@b.example"], "quarantine"),
        (["v=spf1 -all", "v=DMARC1;p=none;"], "none"),
        (["v=DMARC1; p=nonsense; rua=mailto:a@b.example"], "none"),
        (["v=DMARC1; p=reject; t=y"], "quarantine"),
        (["v=DMARC1; p=quarantine; pct=0"], "none"),
        (["v=DMARC1; p=reject; pct=50"], "reject"),
        (["v=DMARC1; p=nonsense"], None),
        (["v=DMARC1"], None),
        (["v=DMARC1; p=reject", "v=DMARC1; p=none"], None),
        (["v=DMARC2; p=reject"], None),
        ([], None),
    ],
)
def test_policies_are_found_in_records(texts: list[str], policy: str | None) -> None:
    found = find_record(text.encode() for text in texts)
    assert (found.policy if found else None) == policy


def test_lookups_are_bounded() -> None:
    assert list_lookup_names("a.b.example") == ("a.b.example", "b.example", "example")
    deep = ".".join("abcdefghijkl") + ".example"
    assert list_lookup_names(deep) == (deep, *(".".join("ghijkl"[at:]) + ".example" for at in range(6)), "example")


@pytest.mark.parametrize(
    ("domain", "records", "organisation"),
    [
        ("a.vendor.example", {"vendor.example": "p=none"}, "vendor.example"),
        ("a.vendor.example", {"a.vendor.example": "p=none", "vendor.example": "p=none"}, "vendor.example"),
        ("a.vendor.example", {}, "a.vendor.example"),
        ("a.b.example", {"a.b.example": "p=none; psd=n", "b.example": "p=none"}, "a.b.example"),
        ("x.vendor.co.example", {"co.example": "p=none; psd=y"}, "vendor.co.example"),
        ("co.example", {"co.example": "p=none; psd=y"}, "co.example"),
    ],
)
def test_organisational_domains_are_found(domain: str, records: dict[str, str], organisation: str) -> None:
    assert (
        find_organisational_domain(domain, {name: parse_record(f"v=DMARC1; {text}") for name, text in records.items()})
        == organisation
    )


def test_subdomains_inherit_the_policy() -> None:
    above = {"vendor.example": parse_record("v=DMARC1; p=reject; sp=quarantine")}
    assert find_policy("a.vendor.example", above) == (above["vendor.example"], MailPolicy.QUARANTINE)
    assert find_policy("vendor.example", above) == (above["vendor.example"], MailPolicy.REJECT)
    assert find_policy("other.example", {}) is None
