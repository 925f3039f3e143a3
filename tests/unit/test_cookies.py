"""Cookie headers are split without unquoting, in linear time."""

import pytest

from entrypoints.console.request import MAX_COOKIE_CHARS, MAX_COOKIE_HEADER_CHARS, parse_cookies


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
        ("a=" + "x" * MAX_COOKIE_CHARS + "; b=2", {"b": "2"}),
        ("a=1; " + "x" * MAX_COOKIE_HEADER_CHARS, {}),
    ],
)
def test_cookies_are_parsed(header: str, cookies: dict[str, str]) -> None:
    assert parse_cookies(header) == cookies
