"""Keys of brands and words, slugs, and normalised domains."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.brand.domains import find_registrable_domain, is_deceptive, list_search_domains, normalise_domain
from domain.brand.names import (
    build_slug,
    compute_brand_key,
    list_deletions,
    list_profile_terms,
    list_profile_words,
    list_status_terms,
    select_similar,
    split_query,
)
from domain.kernel.errors import InvalidRequest
from tests.unit.brand.test_grades import build_profile


@pytest.mark.parametrize("spelling", ["West Elm", "WestElm", "west  elm", "WEST-ELM Ltd", "Wést Elm"])
def test_spellings_of_a_brand_have_one_key(spelling: str) -> None:
    assert compute_brand_key(spelling) == "westelm"


def test_brands_without_letters_have_no_key() -> None:
    assert compute_brand_key("—!") == ""
    assert compute_brand_key("Ltd") == "ltd"
    assert compute_brand_key("Fjord Home") != compute_brand_key("Fjord")


@pytest.mark.parametrize(
    ("changes", "reserved"),
    [
        ({}, {"b:fjord", "n:fjordfurniture"}),
        ({"is_gathered": False}, set()),
        ({"is_gathered": False, "verified": True}, {"b:fjord", "b:fjordfurniture"}),
        ({"name": "—"}, {"b:fjord"}),
    ],
)
def test_only_proven_profiles_reserve_brands(changes: dict[str, Any], reserved: set[str]) -> None:
    terms = list_profile_terms(build_profile(**changes))
    assert {term for term in terms if term[0] in "bn"} == reserved
    assert "d:fjord.example" in terms
    assert {term for term in terms if term[0] == "s"} < set(list_status_terms(None, changes.get("verified", False)))


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("fjord", True), ("fjrd", True), ("fjordd", True), ("fjorf", True), ("fojrd", True), ("FJÖRD", True),
        ("fjord furniture", True), ("furnitrue fjord", True), ("fjordfurniture", True), ("west elm", True),
        ("fjo", False), ("fjord table", False), ("fiort", False),
    ],
)  # fmt: skip
def test_words_are_found_with_a_wrong_letter(q: str, found: bool) -> None:
    known = list_profile_words("Fjord Furniture", ("WestElm",))
    words, joined = split_query(q)
    assert (all(select_similar(word, known) for word in words) or bool(select_similar(joined, known))) is found


@given(st.text("abc", min_size=1, max_size=8), st.text("abc", min_size=1, max_size=8))
def test_similar_words_have_a_deletion_in_common(first: str, second: str) -> None:
    if select_similar(first, [second]) and len(second) >= 4:
        assert not set(list_deletions(first)).isdisjoint(list_deletions(second))


@pytest.mark.parametrize(
    ("name", "slug"), [("Möbel & Söhne", "mobel-sohne"), ("家具", "brand"), ("x" * 100, "x" * 60), ("A/B", "a-b")]
)
def test_slugs_are_plain(name: str, slug: str) -> None:
    assert build_slug(name) == slug


def test_domains_are_normalised() -> None:
    assert normalise_domain(" Shop.Fjord.CO.UK. ") == "shop.fjord.co.uk"
    assert normalise_domain("möbel.example") == "xn--mbel-5qa.example"
    assert find_registrable_domain("shop.fjord.co.uk") == "fjord.co.uk"
    assert list_search_domains("a.shop.fjord.co.uk") == ["a.shop.fjord.co.uk", "shop.fjord.co.uk", "fjord.co.uk"]
    assert list_search_domains("fjord.myshopify.com") == ["fjord.myshopify.com"]


@pytest.mark.parametrize(
    "text", ["co.uk", "com", "myshopify.com", "192.0.2.1", "fjord", "a..b", "-a.example", "a_b.example", "", "a" * 5000]
)
def test_texts_that_are_no_domain_of_a_vendor_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        normalise_domain(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fjord.example", False), ("möbel.example", False), ("Łódź Ægir", False), ("家具", False),
        ("Șapte Țări", False), ("café", False), ("ソファ", False),
        ("fjоrd.example", True), ("аррӏе", True), ("xn--80ak6aa92e.com", True), ("fjοrd", True), ("Fjǃord", True), ("Vıtra", True), ("Ikeạ", True), ("Fj\U0010ffffrd", True), ("木ikea", True),
    ],
)  # fmt: skip
def test_letters_that_look_like_others_are_deceptive(text: str, expected: bool) -> None:
    assert is_deceptive(text) is expected
