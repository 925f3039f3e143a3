"""Email addresses of different people are distinguished under any case folding."""

import pytest

from domain.people.model import normalise_email
from domain.sso.model import parse_email_domain


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ceo@fußball.example", "ceo@fussball.example"),
        ("stra\u00dfe@fjord.example", "strasse@fjord.example"),
        ("mi\u212ae@fjord.example", "mike@fjord.example"),
        ("o\ufb03ce@fjord.example", "office@fjord.example"),
    ],
)
def test_similar_letters_are_distinguished(first: str, second: str) -> None:
    assert normalise_email(first) != normalise_email(second)
    assert normalise_email(first) == normalise_email(f" {first} ") and normalise_email(second) == normalise_email(
        second.upper()
    )


def test_a_domain_does_not_match_another() -> None:
    assert parse_email_domain("ceo@fußball.example") != "fussball.example"
    assert parse_email_domain("Ceo@Fjord.Example") == "fjord.example"
