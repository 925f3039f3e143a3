"""Cookie headers are split without unquoting, in linear time."""

import pytest

from entrypoints.console.request import LONGEST_COOKIE, LONGEST_COOKIES, parse_cookies


@pytest.mark.parametrize(
    ("header", "cookies"),
    [
        ("", {}),
        ("a=1; b=2", {"a": "1", "b": "2"}),
        ("a=1;b=2;a=3", {"a": "3", "b": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ('a="1\\0732"', {"a": '"1\\0732"'}),
        ("no value; =; b = 2 ", {"": "", "b": "2"}),
        ("a=é\x7f", {"a": "é\x7f"}),
        ("a=" + "x" * LONGEST_COOKIE + "; b=2", {"b": "2"}),
        ("a=1; " + "x" * LONGEST_COOKIES, {}),
    ],
)
def test_cookies(header: str, cookies: dict[str, str]) -> None:
    assert parse_cookies(header) == cookies
