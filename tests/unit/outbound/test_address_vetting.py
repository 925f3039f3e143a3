"""Addresses that may be connected to, in all their spellings."""

from ipaddress import ip_address

import pytest
from yarl import URL

from adapters.http.errors import RefusedAddress
from adapters.http.resolver import AddressVetting, matches_host
from domain.kernel.addresses import describe_url_refusal, is_public

INTERNAL = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.9",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::",
    "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::",
    "2001:0:7f00:1::1", "2001:0:808:808::80ff:fffe", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1",
    "ff02::1", "5f00::1", "3fff::1", "3fff:fff::1", "5f00:ffff::1", "fec0:1::1", "192.0.0.8", "192.0.0.170", "::ffff:192.0.0.8",
    "::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8", "64:ff9b:1:ffff::1", "64:ff9b::c058:6301", "2002:c000:8::", "2001:0:1:2::3", "2001:20::1",
    "100:0:0:1::1", "2001:2::1", "2001:10::1",
]  # fmt: skip

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808",
    "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_refused(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_accepted(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", [*INTERNAL, *PUBLIC])
def test_the_check_of_urls_refuses_the_same_addresses(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    assert (describe_url_refusal(f"https://{host}/", frozenset()) is None) == is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://0/",
        "http://017700000001/", "http://127.0.0.1./", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/", "http://169.254.169.254/latest", "http://[fe80::1%25eth0]/", "http://134744072/",
        "ftp://files.example/", "file:///etc/passwd", "gopher://x.example/", "http://user:word@files.example/",
        "http://user@files.example/", "http://files.example:8080/", "https://files.example:22/", "//files.example/",
        "http:///x",
        "http://①②⑦.⓪.⓪.①/",
    ],
)  # fmt: skip
def test_urls_of_internal_addresses_are_refused(url: str) -> None:
    with pytest.raises((RefusedAddress, ValueError)):
        AddressVetting().vet(URL(url))


@pytest.mark.parametrize(
    "url", ["http://files.example/a", "https://files.example:443/", "http://8.8.8.8/", "https://[2606:4700::1111]/"]
)
def test_urls_of_public_addresses_are_accepted(url: str) -> None:
    AddressVetting().vet(URL(url))


def test_hosts_of_the_operator_are_accepted() -> None:
    vetting = AddressVetting(frozenset({"demo.local", "127.0.0.1:8081", "::1"}))
    for url in ("http://demo.local:9999/", "http://DEMO.local./", "http://127.0.0.1:8081/", "http://[::1]:5000/"):
        vetting.vet(URL(url))
    for url in ("http://127.0.0.1:8082/", "http://127.0.0.1/", "http://x.demo.local:9999/"):
        with pytest.raises(RefusedAddress):
            vetting.vet(URL(url))


def test_any_port_can_be_allowed() -> None:
    AddressVetting(ports=None).vet(URL("http://files.example:8080/"))
    with pytest.raises(RefusedAddress):
        AddressVetting(ports=None).vet(URL("http://127.0.0.1:8080/"))


def test_hosts_are_restricted_by_the_connector() -> None:
    hosts = frozenset({"api.acme.example", "*.cdn.example"})
    assert matches_host("API.acme.example", hosts)
    assert matches_host("a.b.cdn.example", hosts)
    assert not matches_host("cdn.example", hosts)
    assert not matches_host("evilacme.example", hosts)
    with pytest.raises(RefusedAddress, match="connector"):
        AddressVetting().vet(URL("https://other.example/"), hosts)
