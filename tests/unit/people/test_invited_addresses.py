"""Email addresses of invitations."""

import pytest

from domain.kernel.errors import InvalidRequest
from domain.people.usecases.invitations import parse_email_address


@pytest.mark.parametrize(
    "address",
    [
        "anna@example.com",
        " a.b+c@sub.example.co \n",
        "jörg@müller.example",
        "jo\u0308rg@example.com",
        "list-a=b.example@c.example",
    ],
)
def test_valid_addresses_are_accepted(address: str) -> None:
    assert parse_email_address(address) == address.strip()


@pytest.mark.parametrize(
    "address",
    [
        "an\u202ena@example.com",
        "anna\u200b@example.com",
        "anna@exam\u200bple.com",
        "anna@example.c\u00adom",
        "anna\ud800@example.com",
        "anna@example.com\udfff",
        "anna\ufeff@example.com",
        "evil.example＠x@example.com",
        "a／b@example.com",
        "anna@example．com.example",
        "anna@\u3164.example",
        "an\x85na@example.com",
        "anna\ue000@example.com",
        "=?utf-8?q?x?=@a.example",
        "anna@=?utf-8?b?YQ==?=.example",
    ],
)
def test_other_texts_are_refused(address: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_email_address(address)
