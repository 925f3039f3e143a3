"""URLs that requests with short responses may be sent to."""

import pytest

from adapters.http.client import GuardedClient
from adapters.http.outbound import HttpOutbound

ALLOWED = frozenset({"models:8000", "Printer", "[::1]:8000"})


@pytest.mark.parametrize(
    ("url", "permitted"),
    [("https://a.example/x", True), ("http://a.example/x", False), ("http://models:8000/v1", True), ("http://models:81/v1", False),
     ("http://printer:81/", True), ("http://[::1]:8000/v1", True), ("http://[::1]:81/v1", False), ("https://a@b.example/", False),
     ("https://", False), ("ftp://models:8000/", False), ("https://a.example/#x", False), ("https://a.example/ x", False)],
)  # fmt: skip
def test_urls_are_permitted_by_host(url: str, permitted: bool) -> None:
    assert HttpOutbound(GuardedClient(), ALLOWED).permits(url) is permitted
