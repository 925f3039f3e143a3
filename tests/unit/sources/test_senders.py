"""Senders in the settings of a source."""

import pytest

from domain.sources.senders import contains_sender, validate_senders


@pytest.mark.parametrize(
    ("listed", "address", "may"),
    [
        ("orders@vendor.example", "orders@vendor.example", True),
        ("Orders@Vendor.Example", "ORDERS@vendor.example", True),
        ("vendor.example", "anybody@vendor.example", True),
        ("@vendor.example", "anybody@vendor.example", True),
        ("vendor.example", "anybody@mail.vendor.example", False),
        ("vendor.example", "anybody@notvendor.example", False),
        ("orders@vendor.example", "sales@vendor.example", False),
        ("orders@vendor.example", "vendor.example@orders", False),
        ("möbel.example", "a@xn--mbel-5qa.example", True),
        ("a@xn--mbel-5qa.example", "a@MÖBEL.example", True),
        ("vendor.example", "no address", False),
    ],
)
def test_senders_are_matched(listed: str, address: str, may: bool) -> None:
    assert contains_sender([listed], address) is may


def test_an_empty_list_contains_no_sender() -> None:
    assert not contains_sender([], "orders@vendor.example")


@pytest.mark.parametrize(
    "entry", ["", "vendor", "a@", "a b@c.example", "<a@b.example>", "a@b@c.example", "*", "a..b", "x" * 300]
)
def test_invalid_senders_are_reported(entry: str) -> None:
    [fault] = validate_senders({"inbound": {"senders": ["ok.example", entry]}})
    assert (fault.field, fault.code) == ("config.inbound.senders.1", "invalid_format")


def test_valid_senders_are_accepted() -> None:
    assert validate_senders({"inbound": {"senders": ["a@b.example", "b.example", "@b.example", "ü@ü.example"]}}) == ()
    assert validate_senders({}) == ()
