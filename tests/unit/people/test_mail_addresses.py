"""Addresses of two people are never taken for one, whatever case-folding makes of them."""

import pytest

from domain.people.model import email_key
from domain.sso.model import domain_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ceo@fußball.example", "ceo@fussball.example"),
        ("stra\u00dfe@fjord.example", "strasse@fjord.example"),
        ("mi\u212ae@fjord.example", "mike@fjord.example"),
        ("o\ufb03ce@fjord.example", "office@fjord.example"),
    ],
)
def test_other_letters_are_other_people(one: str, other: str) -> None:
    assert email_key(one) != email_key(other)
    assert email_key(one) == email_key(f" {one} ") and email_key(other) == email_key(other.upper())


def test_a_domain_is_no_other_ones() -> None:
    assert domain_of("ceo@fußball.example") != "fussball.example"
    assert domain_of("Ceo@Fjord.Example") == "fjord.example"
