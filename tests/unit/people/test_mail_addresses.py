"""Addresses of two people are never taken for one, whatever case-folding makes of them."""

import pytest

from domain.people.model import normalise_email
from domain.sso.model import parse_email_domain


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
    assert normalise_email(one) != normalise_email(other)
    assert normalise_email(one) == normalise_email(f" {one} ") and normalise_email(other) == normalise_email(
        other.upper()
    )


def test_a_domain_does_not_match_another() -> None:
    assert parse_email_domain("ceo@fußball.example") != "fussball.example"
    assert parse_email_domain("Ceo@Fjord.Example") == "fjord.example"
