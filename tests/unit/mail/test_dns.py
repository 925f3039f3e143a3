"""Queries to a name server over a real socket."""

import time

import pytest

from adapters.dns import DnsRecords
from benchmarks.nameserver import running_name_server
from domain.sso.ports import DnsRecord, DnsUnavailable

RECORDS = {
    ("vendor.example", "TXT"): ['"v=spf1 " "-all"', '"other"'],
    ("vendor.example", "A"): ["192.0.2.10"],
    ("vendor.example", "AAAA"): ["2001:db8::1"],
    ("vendor.example", "MX"): ["10 mx.vendor.example."],
    ("10.2.0.192.in-addr.arpa", "PTR"): ["mta.vendor.example."],
    ("broken.example", "TXT"): ["SERVFAIL"],
    ("silent.example", "TXT"): ["SILENT"],
}


def test_records_of_every_type_are_read() -> None:
    with running_name_server(RECORDS) as port:
        names = DnsRecords(f"127.0.0.1:{port}")
        assert {record.value for record in names.look_up("Vendor.Example.", "TXT", 3)} == {b"v=spf1 -all", b"other"}
        assert names.look_up("vendor.example", "A", 3) == (DnsRecord(b"192.0.2.10"),)
        assert names.look_up("vendor.example", "AAAA", 3) == (DnsRecord(b"2001:db8::1"),)
        assert names.look_up("vendor.example", "MX", 3) == (DnsRecord(b"mx.vendor.example", 10),)
        assert names.look_up("10.2.0.192.in-addr.arpa", "PTR", 3) == (DnsRecord(b"mta.vendor.example"),)


@pytest.mark.parametrize(
    "name", ["nowhere.example", "a..b.example", "x" * 70 + ".example", "ü\udcff.example", "", "a\\300.example"]
)
def test_missing_names_have_no_records(name: str) -> None:
    with running_name_server(RECORDS) as port:
        assert DnsRecords(f"127.0.0.1:{port}").look_up(name, "TXT", 3) == ()


def test_a_failed_lookup_is_an_error() -> None:
    with running_name_server(RECORDS) as port:
        names, start = DnsRecords(f"127.0.0.1:{port}"), time.monotonic()
        for name in ("broken.example", "silent.example"):
            with pytest.raises(DnsUnavailable):
                names.look_up(name, "TXT", 0.5)
        with pytest.raises(DnsUnavailable):
            names.look_up("vendor.example", "TXT", 0)
        assert time.monotonic() - start < 10
