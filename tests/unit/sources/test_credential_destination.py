"""Destination that credentials are bound to."""

from typing import Any

import pytest

from domain.ingestion.ports import describe_credential_destination, extract_origin

CONFIG = {"url": "https://vendor.example/feed.csv", "region": "eu", "currency": "usd"}


def describe_destination(connector: str = "acme", **changes: Any) -> str:
    """Describe the destination of the settings: `url` and `token_url` are addresses, `currency` is harmless, others are unknown."""
    config = {name: value for name, value in {**CONFIG, **changes}.items() if value is not None}
    return describe_credential_destination(connector, config, frozenset({"url", "token_url"}), frozenset({"currency"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://vendor.example/other/feed.csv?a=b"},
        {"url": "https://VENDOR.example/feed.csv"},
        {"url": "https://vendor.example:443/feed.csv"},
        {"currency": "eur"},
        {"currency": None},
        {"token_url": "https://vendor.example/token"},
    ],
)
def test_other_settings_keep_the_destination(changes: dict[str, Any]) -> None:
    assert describe_destination(**changes) == describe_destination()


@pytest.mark.parametrize(
    "changes",
    [
        {"connector": "other"},
        {"url": "http://vendor.example/feed.csv"},
        {"url": "https://vendor.example:8443/feed.csv"},
        {"url": "https://evil.example/feed.csv"},
        {"url": "https://vendor.example.evil.example/feed.csv"},
        {"url": "https://vendor.example@evil.example/feed.csv"},
        {"url": "https://sub.vendor.example/feed.csv"},
        {"url": "vendor.example"},
        {"url": None},
        {"token_url": "https://evil.example/token"},
        {"region": "us"},
        {"region": None},
        {"auth": {"token_url": "https://evil.example/token"}},
    ],
)
def test_changed_addresses_change_the_destination(changes: dict[str, Any]) -> None:
    assert describe_destination(**changes) != describe_destination()


def test_other_texts_are_their_own_origin() -> None:
    for text in ("https://vendor.example:port/", "ftp://vendor.example", "https://[::1", "shop.example", ""):
        assert extract_origin(text) == text
    assert extract_origin("http://[2001:DB8::1]/x") == "http://2001:db8::1:80"
