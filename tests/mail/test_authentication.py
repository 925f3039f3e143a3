"""Genuine and forged senders: SPF, DKIM and DMARC with test keys and records."""

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any

import dkim
import pytest

from tests.mail.harness import MailHarness, open_mail_harness
from tests.mail.smtp import CSV, SENDER, DkimKey, SmtpConnection, build_message, serialise_message

pytestmark = pytest.mark.asyncio
KEY = DkimKey.generate()
RELAYS = {"JOINERY_MAIL_RELAYS": "127.0.0.0/8"}
OUTSIDE = "ADDR=192.0.2.10 HELO=mta.vendor.example"


def publish_records(harness: MailHarness, policy: str = "reject", spf: str = "v=spf1 ip4:192.0.2.10 -all") -> None:
    """Publish the records of vendor.example."""
    harness.name_records.put("vendor.example", "TXT", "some-verification=1", spf)
    harness.name_records.put("_dmarc.vendor.example", "TXT", f"v=DMARC1; p={policy}")
    harness.name_records.put("feeds._domainkey.vendor.example", "TXT", KEY.record)


async def _find_message(harness: MailHarness, source: str) -> Any:
    return (await harness.list_messages(source))[0]


@pytest.mark.parametrize("canon", [(b"relaxed", b"relaxed"), (b"simple", b"simple")])
async def test_a_signature_authenticates_the_author(harness: MailHarness, canon: tuple[bytes, bytes]) -> None:
    publish_records(harness, spf="v=spf1 -all")
    source, address = await harness.create_source()
    raw = KEY.sign(serialise_message(build_message(("a.csv", CSV))), canonicalize=canon)
    assert (await harness.send(address, raw)).startswith("250")
    assert (await _find_message(harness, source))["authentication"] == {
        "spf": "fail", "dkim": "pass", "dmarc": "pass", "policy": "reject",
    }  # fmt: skip


async def test_the_server_authenticates_the_author(tmp_path: Path) -> None:
    async with open_mail_harness(tmp_path, **RELAYS) as harness:
        publish_records(harness)
        source, address = await harness.create_source()
        assert (await harness.send(address, build_message(("a.csv", CSV)), xforward=OUTSIDE)).startswith("250")
        shown = (await _find_message(harness, source))["authentication"]
        assert (shown["spf"], shown["dkim"], shown["dmarc"]) == ("pass", "none", "pass")
        reply = await harness.send(
            address, build_message(("b.csv", CSV)), xforward="ADDR=192.0.2.11 HELO=elsewhere.example"
        )
        assert reply.startswith("550 5.7.26") and "SPF fail" in reply


async def test_mail_that_fails_is_refused_if_the_domain_requires_it(harness: MailHarness) -> None:
    publish_records(harness)
    source, address = await harness.create_source()
    reply = await harness.send(address, build_message(("a.csv", CSV)))
    assert reply.startswith("550 5.7.26"), reply
    shown = await _find_message(harness, source)
    assert (shown["status"], shown["reason"]) == ("refused", "dmarc_rejected")
    assert shown["authentication"] == {"spf": "fail", "dkim": "none", "dmarc": "fail", "policy": "reject"}
    assert await harness.list_runs(source) == []


@pytest.mark.parametrize("policy", ["quarantine", "none"])
async def test_milder_policies_are_recorded(harness: MailHarness, policy: str) -> None:
    publish_records(harness, policy)
    source, address = await harness.create_source()
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("250")
    shown = await _find_message(harness, source)
    assert shown["authentication"] == {"spf": "fail", "dkim": "none", "dmarc": "fail", "policy": policy}


async def test_a_changed_message_fails_authentication(harness: MailHarness) -> None:
    publish_records(harness)
    source, address = await harness.create_source()
    raw = KEY.sign(serialise_message(build_message(("a.csv", CSV))))
    for forged in (raw.replace(b"Daily", b"Other"), raw.replace(b"attached inventory", b"Attached inventory")):
        assert forged != raw
        assert (await harness.send(address, forged)).startswith("550 5.7.26")
    assert (await _find_message(harness, source))["authentication"]["dkim"] == "fail"


async def test_a_partial_signature_is_ignored(harness: MailHarness) -> None:
    """With `l=`, third parties can append attachments to a signed message."""
    publish_records(harness)
    source, address = await harness.create_source()
    raw = KEY.sign(serialise_message(build_message(("a.csv", CSV))), length=True)
    assert dkim.verify(raw, dnsfunc=lambda *_, **__: KEY.record)
    assert (await harness.send(address, raw)).startswith("550 5.7.26")
    assert (await _find_message(harness, source))["authentication"]["dkim"] == "policy"


@pytest.mark.parametrize(
    ("domain", "record", "sender", "code"),
    [
        ("mail.vendor.example", "v=DMARC1; p=reject", SENDER, "250"),
        ("mail.vendor.example", "v=DMARC1; p=reject; adkim=s", SENDER, "550"),
        ("vendor.example", "v=DMARC1; p=reject", "a@eu.vendor.example", "250"),
        ("elsewhere.example", "v=DMARC1; p=reject", SENDER, "550"),
        ("notvendor.example", "v=DMARC1; p=reject", SENDER, "550"),
        ("vendor.example", "v=DMARC1; p=none; sp=reject; adkim=s", "a@eu.vendor.example", "550"),
        ("elsewhere.example", "v=DMARC1; p=reject; pct=0", SENDER, "250"),
        ("elsewhere.example", "v=DMARC1; p=reject; t=y", SENDER, "250"),
    ],
)
async def test_whose_signature_counts(harness: MailHarness, domain: str, record: str, sender: str, code: str) -> None:
    harness.name_records.put("_dmarc.vendor.example", "TXT", record)
    harness.name_records.put(f"feeds._domainkey.{domain}", "TXT", KEY.record)
    _, address = await harness.create_source(SENDER, "eu.vendor.example")
    raw = KEY.sign(serialise_message(build_message(("a.csv", CSV), sender=sender)), domain)
    assert (await harness.send(address, raw, sender="bounces@bulk.example")).startswith(code)


async def test_an_unavailable_dns_defers_outside_senders(tmp_path: Path) -> None:
    """Outside senders are deferred; a local relay may run without DNS."""
    async with open_mail_harness(tmp_path, **RELAYS) as harness:
        publish_records(harness)
        harness.name_records.down.add("_dmarc.vendor.example")
        source, address = await harness.create_source()
        same = build_message(("a.csv", CSV))
        assert (await harness.send(address, same, xforward=OUTSIDE)).startswith("451 4.7.0")
        assert ((await _find_message(harness, source))["reason"], await harness.list_runs(source)) == (
            "not_checked",
            [],
        )
        harness.name_records.down.clear()
        assert (await harness.send(address, same, xforward=OUTSIDE)).startswith("250")
        harness.name_records.down.add("*")
        assert (await harness.send(address, build_message(("b.csv", CSV)))).startswith("250")
        assert (await _find_message(harness, source))["authentication"]["dmarc"] == "temperror"


async def test_an_unavailable_key_is_not_a_forgery(tmp_path: Path) -> None:
    async with open_mail_harness(tmp_path, **RELAYS) as harness:
        publish_records(harness, spf="v=spf1 -all")
        harness.name_records.down.add("feeds._domainkey.vendor.example")
        _source, address = await harness.create_source()
        raw = KEY.sign(serialise_message(build_message(("a.csv", CSV))))
        assert (await harness.send(address, raw, xforward=OUTSIDE)).startswith("451 4.7.0")


async def test_authentication_headers_of_senders_are_ignored(harness: MailHarness) -> None:
    publish_records(harness)
    _, address = await harness.create_source()
    claims = "mx.joinery.example; spf=pass smtp.mailfrom=vendor.example; dkim=pass; dmarc=pass"
    reply = await harness.send(address, build_message(("a.csv", CSV), Authentication_Results=claims))
    assert reply.startswith("550 5.7.26")


async def test_spf_is_bounded(harness: MailHarness) -> None:
    """Endless chains of records, and records of arbitrary bytes."""
    source, address = await harness.create_source()
    for number in range(30):
        harness.name_records.put(
            f"s{number}.vendor.example", "TXT", f"v=spf1 include:s{number + 1}.vendor.example -all"
        )
    harness.name_records.put("vendor.example", "TXT", "v=spf1 include:s0.vendor.example -all")
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("250")
    assert (await _find_message(harness, source))["authentication"]["spf"] == "permerror"
    assert len([name for name, _ in harness.name_records.queries if name.startswith("s")]) <= 11
    harness.name_records.put("vendor.example", "TXT", b"v=spf1 \xff\x00%{" + b"(" * 3000)
    assert (await harness.send(address, build_message(("b.csv", CSV)))).startswith("250")
    assert (await _find_message(harness, source))["authentication"]["spf"] == "permerror"


async def test_expensive_signatures_are_limited(harness: MailHarness) -> None:
    publish_records(harness, "none")
    _source, address = await harness.create_source()
    blanks = (b" " * 900 + b"x\r\n") * 2000
    raw = KEY.sign(serialise_message(build_message(("a.csv", CSV)))) + blanks
    many = b"".join(KEY.sign(b"From: feeds@vendor.example\r\n\r\n").partition(b"From:")[0] for _ in range(40))
    for hostile in (raw, many + serialise_message(build_message(("b.csv", CSV)))):
        async with asyncio.timeout(20):
            assert (await harness.send(address, hostile)).startswith("250")
    lookups = [name for name, _ in harness.name_records.queries if name.startswith("feeds._domainkey")]
    assert len(lookups) <= 10


async def test_the_session_continues_under_tls(tmp_path: Path) -> None:
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=in.joinery.example", "-days", "1",
         "-keyout", str(key), "-out", str(chain)],
        check=True, capture_output=True,
    )  # fmt: skip
    files = {"JOINERY_MAIL_TLS_CERTIFICATE": str(chain), "JOINERY_MAIL_TLS_KEY": str(key)}
    async with open_mail_harness(tmp_path, **files) as harness:
        source, address = await harness.create_source()
        raw = serialise_message(build_message(("a.csv", CSV)))
        assert (await asyncio.to_thread(_send_under_tls, harness.port, address, raw))[0] == 250
        assert (await _find_message(harness, source))["status"] == "accepted"
        assert await asyncio.to_thread(_inject_command, harness.port) == b""


def _send_under_tls(port: int, address: str, raw: bytes) -> tuple[int, bytes]:
    import smtplib

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with smtplib.SMTP("127.0.0.1", port, timeout=20) as server:
        server.starttls(context=context)
        server.ehlo("mta.vendor.example")
        assert not server.has_extn("auth") and not server.has_extn("starttls")
        server.mail(SENDER)
        server.rcpt(address)
        return server.data(raw)


def _inject_command(port: int) -> bytes:
    """Send a plaintext command after STARTTLS; return the reply under TLS."""
    dialogue = SmtpConnection(port)
    dialogue.read_reply()
    dialogue.exchange("EHLO mta.vendor.example\r\n")
    assert dialogue.exchange("STARTTLS\r\nNOOP\r\n").startswith("220")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    secured = context.wrap_socket(dialogue._socket)
    secured.settimeout(0.5)
    try:
        return secured.recv(100)
    except TimeoutError:
        return b""
    finally:
        secured.close()
