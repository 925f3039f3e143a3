"""Decisions about a URL from its text only."""

import pytest

from domain.kernel.addresses import describe_url_refusal

NO_HOSTS: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "url", ["https://a.example/", "http://a.example:80/x?y", "https://93.184.216.34/", "https://[2606:2800::1]/"]
)
def test_public_addresses_are_allowed(url: str) -> None:
    assert describe_url_refusal(url, NO_HOSTS) is None


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "https:///x",
        "https://a.example:x/",
        "https://a:b@a.example/",
        "https://127.0.0.1/",
        "https://localhost./",
        "https://x.localhost/",
        "https://0177.0.0.1/",
        "https://0x7f000001/",
        "https://10.1.2.3/",
        "https://[::1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[2002:7f00:1::]/",
        "https://[64:ff9b::a00:1]/",
        "https://224.0.0.1/",
    ],
)
@pytest.mark.parametrize("ports", [frozenset({80, 443}), None])
def test_other_addresses_are_refused_on_any_port(url: str, ports: frozenset[int] | None) -> None:
    assert describe_url_refusal(url, NO_HOSTS, ports) is not None


def test_ports_are_restricted() -> None:
    assert describe_url_refusal("https://a.example:8443/", NO_HOSTS) is not None
    assert describe_url_refusal("https://a.example:8443/", NO_HOSTS, None) is None
    assert describe_url_refusal("https://a.example:8443/", NO_HOSTS, frozenset({8443})) is None


def test_hosts_of_the_operator_are_allowed() -> None:
    allowed = frozenset({"files.internal", "127.0.0.1:9000", "[::1]:9000"})
    for url in ("http://files.internal:81/", "http://127.0.0.1:9000/x", "http://[::1]:9000/"):
        assert describe_url_refusal(url, allowed) is None
    assert describe_url_refusal("http://127.0.0.1:9001/", allowed) is not None
