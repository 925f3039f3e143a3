"""Displayed names contain neither links nor characters that hide or reverse text."""

import pytest

from domain.kernel.errors import InvalidRequest
from domain.kernel.names import (
    MAX_NAME_CHARS,
    displayable_address,
    displayable_name,
    extract_product_names,
    validate_name,
)


@pytest.mark.parametrize(
    "name",
    [
        "Ada",
        " Ada \n Moreau ",
        "J.R.R. O’Neil-Šafařík",
        "Möbel & Söhne (Köln)",
        "山田太郎",
        "x" * MAX_NAME_CHARS,
        "J.B. Hunt",
        "St. Louis Furniture Co.",
        "Acme: Furniture & More",
        "½ Price™ №1",
        "葛󠄀城",
        "བསྒྲུབས",
        "3",
        "नमस्ते",
    ],
)
def test_names_are_accepted(name: str) -> None:
    assert validate_name(name) == displayable_name(name) == " ".join(name.split())


@pytest.mark.parametrize(
    "name",
    [
        "",
        " \n",
        "x" * (MAX_NAME_CHARS + 1),
        "x" * 1_000_000,
        "https://evil.example",
        "evil.example/x",
        "evil.example\\x",
        "www.evil.example",
        "https：／／evil.example",
        "a\0b",
        "a\x1b[0m",
        "a\x7fb",
        "a\u202eb",
        "a\u2066b",
        "a\u200bb",
        "a\ufeffb",
        "a\u00adb",
        "a\ud800b",
        "a\ue000b",
        "support@evil.example",
        "support＠evil.example",
        "mailto:x",
        "tel:+4912345",
        "javascript：alert",
        "http:⁄⁄evil",
        "a∕b",
        "a⧸b",
        "a∖b",
        "a╱b",
        "\u3164",
        "\u2800",
        "\u115f\u1160",
        "Ada\uffa0Moreau",
        "...",
        "- & -",
        "🪑",
        "Z" + 99 * "\u0301",
        "Z" + 5 * "\u0335",
        "\u0301",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        validate_name(name)
    assert displayable_name(name, "there") == "there"


@pytest.mark.parametrize(
    "name",
    [
        "Overstock.com",
        "Pay your bill at evil-bank.com",
        "evil.example now",
        "evil．example",
        "evil。example",
        "evil\u2024example",
        "evil\ufe52example",
        "evil\uff61example",
        "пример.рф",
        "evil.xn--p1ai",
        "10.0.0.1",
        "Evil é.com",
    ],
)
def test_names_like_hosts_are_accepted_but_omitted_in_mail(name: str) -> None:
    assert validate_name(name) == name
    assert displayable_name(name, "there") == "there"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("anna.moreau@example.com", "anna.moreau@example.com"),
        ("evil.example/x@example.com", "who"),
        ("www.evil@example.com", "who"),
        ("a@b@example.com", "who"),
        ("call me@example.com", "who"),
        ("a\u202eb@example.com", "who"),
        ("anna", "who"),
    ],
)
def test_addresses_in_mail_are_displayable(address: str, expected: str) -> None:
    assert displayable_address(address, "who") == expected


def test_user_agents_are_reduced_to_product_names() -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0"
    assert extract_product_names(firefox) == "Mozilla/5.0 Gecko/20100101 Firefox/131.0"
    assert extract_product_names("Your account is locked: https://evil.example/login\nOpen it") == ""
