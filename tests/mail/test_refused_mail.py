"""Refusals during the SMTP session, and their records for the source's owner."""

import asyncio
import errno
import io
import logging
import zipfile
from pathlib import Path

import psycopg
import pytest

from adapters.mime.structure import MAX_PARTS
from domain.kernel.errors import StorageFull, Unavailable
from domain.mail.model import MAX_BYTES_PER_MESSAGE
from domain.mail.usecases import attachments
from entrypoints.mail import session as receiving
from entrypoints.mail.peers import MIB
from ports.objects import ObjectStore
from tests.flows.in_process_service import InProcessService
from tests.mail.harness import MailHarness, open_mail_harness
from tests.mail.smtp import CSV, SENDER, SmtpConnection, build_message, serialise_message
from tests.support.postgres import database

pytestmark = pytest.mark.asyncio


async def _find_outcome(harness: MailHarness, source: str) -> tuple[str, str]:
    [shown] = await harness.list_messages(source)
    assert await harness.list_runs(source) == []
    return shown["status"], shown["reason"]


async def test_an_unknown_address_is_refused_before_the_message(harness: MailHarness) -> None:
    for address in (
        "nobody@in.joinery.example",
        "a" * 20 + "@in.joinery.example",
        "x@other.example",
        "@",
        "a b@c.example",
    ):
        assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("5"), address


async def test_a_rotated_address_is_refused_from_then_on(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    response = await harness.bench.client.post(f"/v1/sources/{source}/inbound-address/rotate")
    assert response.status == 200 and response.json()["inbound_address"] != address
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("550 5.1.1")
    assert await harness.list_messages(source) == []
    assert (await harness.send(response.json()["inbound_address"], build_message(("a.csv", CSV)))).startswith("250")


async def test_an_address_rotated_during_the_message_is_refused(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    dialogue = await asyncio.to_thread(lambda: SmtpConnection(harness.port).begin_message(address))
    assert (await harness.bench.client.post(f"/v1/sources/{source}/inbound-address/rotate")).status == 200
    reply = await asyncio.to_thread(dialogue.exchange, serialise_message(build_message(("a.csv", CSV))) + b".\r\n")
    assert reply.startswith("550 5.1.1") and await harness.list_runs(source) == []


async def test_a_source_without_mail_refuses_messages(harness: MailHarness) -> None:
    source, address = await harness.create_source(kind="file")
    await harness.bench.client.send_json(
        "PATCH", f"/v1/sources/{source}", {"config": {"currency": "usd"}}, if_match="*"
    )
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("550 5.1.1")


async def test_each_tenant_sees_its_own_messages(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    await harness.send(address, build_message(("a.csv", CSV)))
    other = await harness.bench.world.create_tenancy(await harness.bench.world.create_organisation(), True)
    assert (await other.client.get(f"/v1/sources/{source}/inbound-messages")).status == 404
    assert (await other.client.post(f"/v1/sources/{source}/inbound-address/rotate")).status == 404
    theirs = InProcessService(harness.bench.world, other.client, other.tenant)
    config = {"inbound": {"senders": ["others@elsewhere.example"]}}
    second = await theirs.create_source("mail", config=config)
    to = (await other.client.get(f"/v1/sources/{second}")).json()["inbound_address"]
    assert (await harness.send(to, build_message(("a.csv", CSV)))).startswith("550 5.7.1")
    assert len(await harness.list_messages(source)) == 1
    assert (await other.client.get(f"/v1/sources/{second}/inbound-messages")).json()["data"][0]["reason"] == (
        "sender_not_listed"
    )


async def test_unlisted_senders_are_refused(harness: MailHarness) -> None:
    source, address = await harness.create_source("orders@other.example", "partner.example")
    reply = await harness.send(address, build_message(("a.csv", CSV)))
    assert reply.startswith("550 5.7.1") and "feeds@vendor.example is not in the list of permitted senders" in reply
    assert await _find_outcome(harness, source) == ("refused", "sender_not_listed")
    for sender, code in (("a@partner.example", "250"), ("Orders@OTHER.example", "250"), ("a@x.partner.example", "550")):
        assert (await harness.send(address, build_message(("a.csv", CSV), sender=sender))).startswith(code), sender


async def test_a_repeated_refusal_is_shown_to_the_owner_once(harness: MailHarness) -> None:
    source, address = await harness.create_source("other.example")
    same = build_message(("a.csv", CSV))
    assert {(await harness.send(address, same))[:3] for _ in range(3)} == {"550"}
    assert len(await harness.list_messages(source)) == 1


async def test_a_message_over_the_limit(harness: MailHarness) -> None:
    source, address = await harness.create_source()

    def announce() -> str:
        dialogue = SmtpConnection(harness.port)
        dialogue.read_reply()
        dialogue.exchange("EHLO mta.vendor.example\r\n")
        return dialogue.exchange(f"MAIL FROM:<{SENDER}> SIZE={MAX_BYTES_PER_MESSAGE + 1}\r\n")

    assert (await asyncio.to_thread(announce)).startswith("552")

    def pour() -> str:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(serialise_message(build_message(subject="Huge")).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        dialogue.send((b"x" * 998 + b"\r\n") * (MAX_BYTES_PER_MESSAGE // 1000 + 1))
        return dialogue.exchange(".\r\n")

    assert (await asyncio.to_thread(pour)).startswith("552 5.3.4")
    [shown] = await harness.list_messages(source)
    assert (shown["status"], shown["reason"], shown["from"], shown["subject"]) == (
        "refused",
        "too_large",
        SENDER,
        "Huge",
    )


@pytest.mark.parametrize("end", [b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r", b"\r\n.\r", b"x\ry\r\n", b"\n"], ids=repr)
async def test_ambiguous_message_ends_close_the_connection(harness: MailHarness, end: bytes) -> None:
    """Ambiguous ends of a message close the connection (SMTP smuggling)."""
    source, address = await harness.create_source()
    smuggled = f"MAIL FROM:<{SENDER}>\r\nRCPT TO:<{address}>\r\nDATA\r\n".encode() + serialise_message(
        build_message(("b.csv", CSV))
    )

    def smuggle() -> tuple[str, bytes]:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(serialise_message(build_message(("a.csv", CSV))) + end + smuggled + b".\r\n")
        return dialogue.read_reply(), dialogue._file.read()

    reply, rest = await asyncio.to_thread(smuggle)
    assert reply.startswith("521 5.5.2") and rest == b""
    assert await _find_outcome(harness, source) == ("refused", "malformed")


async def test_bounces_are_refused(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    reply = await harness.send(address, build_message(("a.csv", CSV)), sender="")
    assert reply.startswith("550 5.7.1") and "return path" in reply
    assert await _find_outcome(harness, source) == ("refused", "bounce")


async def test_one_recipient_at_a_time(harness: MailHarness) -> None:
    _, address = await harness.create_source()
    _, second = await harness.create_source()

    def talk() -> list[str]:
        dialogue = SmtpConnection(harness.port)
        dialogue.read_reply()
        dialogue.exchange("EHLO mta.vendor.example\r\n")
        lines = (f"MAIL FROM:<{SENDER}>", f"RCPT TO:<{address}>", f"RCPT TO:<{second}>", "RSET", "DATA")
        return [dialogue.exchange(line + "\r\n") for line in lines]

    assert [reply[:9] for reply in await asyncio.to_thread(talk)] == [
        "250 OK", "250 2.1.5", "452 4.5.3", "250 OK", "503 5.5.1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (b"From: a@vendor.example\r\nFrom: feeds@vendor.example\r\n", "2 From headers"),
        (b"Subject: none\r\n", "0 From headers"),
        (b"From: feeds@vendor.example, other@vendor.example\r\n", "one email address"),
        (b"From: feeds\r\n", "one email address"),
        (b"From: " + b"(" * 1900 + b"\r\n", "From header"),
        (b"From: feeds@vendor.example\r\n" + b"X: y\r\n" * 20_000, "headers"),
    ],
)
async def test_messages_without_a_single_author_are_refused(harness: MailHarness, headers: bytes, text: str) -> None:
    source, address = await harness.create_source()
    reply = await harness.send(address, headers + b"\r\nSKU,Price\r\na,1\r\n")
    assert reply.startswith("550 5.6.0") and text in reply, reply
    assert await _find_outcome(harness, source) == ("refused", "malformed")


async def test_messages_with_too_many_parts_are_refused(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    parts = (b"--b\r\n\r\nx\r\n" * (MAX_PARTS + 1)) + b"--b--\r\n"
    head = b"From: feeds@vendor.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    reply = await harness.send(address, head + parts)
    assert reply.startswith("550 5.6.0") and "parts" in reply
    assert await _find_outcome(harness, source) == ("refused", "malformed")


async def test_too_many_data_files_start_nothing(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(21):
            archive.writestr(f"{number}.csv", CSV.replace(b"OAK", b"OAK%d" % number))
    assert (await harness.send(address, build_message(("a.zip", packed.getvalue())))).startswith("550 5.3.4")
    assert await _find_outcome(harness, source) == ("refused", "too_many_files")


async def test_a_paused_source_defers_the_sender(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    await harness.bench.client.send_json("PATCH", f"/v1/sources/{source}", {"status": "paused"}, if_match="*")
    same = build_message(("a.csv", CSV))
    assert (await harness.send(address, same)).startswith("450 4.2.1")
    assert await _find_outcome(harness, source) == ("refused", "source_not_active")
    await harness.bench.client.send_json("PATCH", f"/v1/sources/{source}", {"status": "active"}, if_match="*")
    assert (await harness.send(address, same)).startswith("250")
    assert [shown["status"] for shown in await harness.list_messages(source)] == ["accepted", "refused"]


async def test_guessed_addresses_close_the_connection(harness: MailHarness) -> None:
    def guess() -> list[str]:
        dialogue = SmtpConnection(harness.port)
        dialogue.read_reply()
        dialogue.exchange("EHLO mta.vendor.example\r\n")
        dialogue.exchange(f"MAIL FROM:<{SENDER}>\r\n")
        replies = [dialogue.exchange(f"RCPT TO:<guess{number}@in.joinery.example>\r\n") for number in range(5)]
        return [*replies, dialogue.read_reply()]

    replies = await asyncio.to_thread(guess)
    assert [reply[:3] for reply in replies] == ["550"] * 5 + [""]


async def test_connections_and_messages_are_bounded(tmp_path) -> None:
    bounds = {"JOINERY_MAIL_CONNECTIONS_EACH": "2", "JOINERY_MAIL_EACH_MINUTE": "2"}
    async with open_mail_harness(tmp_path, **bounds) as harness:
        _source, address = await harness.create_source()

        def crowd() -> list[str]:
            open_ones = [SmtpConnection(harness.port) for _ in range(3)]
            heard = [dialogue.read_reply()[:3] for dialogue in open_ones]
            for dialogue in open_ones:
                dialogue.close()
            return heard

        assert sorted(await asyncio.to_thread(crowd)) == ["220", "220", "421"]
        await asyncio.sleep(0.2)
        replies = [await harness.send(address, build_message(("a.csv", CSV))) for _ in range(3)]
        assert [reply[:9] for reply in replies] == ["250 2.0.0", "250 2.0.0", "451 4.7.1"]
        _, other = await harness.create_source()
        assert (await harness.send(other, build_message(("a.csv", CSV)))).startswith("250")


async def test_a_full_plan_defers_the_sender(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner:
        await owner.execute(
            "INSERT INTO storage_usage (org, livemode, bytes) VALUES (%s, true, %s)",
            (harness.bench.tenant.org, 1 << 60),
        )
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("452 4.2.2")
    assert await _find_outcome(harness, source) == ("refused", "quota_exceeded")


async def test_supported_extensions_are_announced(harness: MailHarness) -> None:
    def talk() -> tuple[str, list[str]]:
        dialogue = SmtpConnection(harness.port)
        dialogue.read_reply()
        dialogue.send("EHLO mta.vendor.example\r\n")
        lines = []
        while True:
            line = dialogue._file.readline().decode().strip()
            lines.append(line[4:])
            if line[3] == " ":
                break
        commands = ("AUTH PLAIN AGEAYg==", "VRFY a", "EXPN a", "XFORWARD ADDR=192.0.2.1", "NOOP")
        return " ".join(lines), [dialogue.exchange(command + "\r\n")[:3] for command in commands]

    offered, replies = await asyncio.to_thread(talk)
    assert f"SIZE {MAX_BYTES_PER_MESSAGE} " in offered
    assert {"8BITMIME", "SMTPUTF8", "PIPELINING", "ENHANCEDSTATUSCODES"} <= set(offered.split())
    assert "AUTH" not in offered and "STARTTLS" not in offered and "XFORWARD" not in offered
    assert replies == ["500", "500", "500", "550", "250"]


async def test_ambiguous_message_ends_close_the_connection_without_a_database(
    harness: MailHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal cannot be stored, but the connection is closed."""
    source, address = await harness.create_source()
    intake = harness.listener._state.intake

    async def lost(*_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(type(intake), "_store_refusal", lost)

    def smuggle() -> tuple[str, bytes]:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(serialise_message(build_message(("a.csv", CSV))) + b"\n.\nRSET\r\n" * 3)
        return dialogue.read_reply(), dialogue._file.read()

    reply, rest = await asyncio.to_thread(smuggle)
    assert reply.startswith("521") and rest == b"" and await harness.list_runs(source) == []


async def test_endless_lines_are_refused(harness: MailHarness) -> None:
    source, address = await harness.create_source()

    def pour() -> list[str]:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(b"From: feeds@vendor.example\r\nSubject: Long\r\n\r\n" + b"x" * 200_000 + b"\r\n")
        heard = [
            dialogue.exchange(b".\r\n"),
            dialogue.exchange(b"NOOP " + b"x" * 100_000 + b"\r\n"),
            dialogue.exchange(b"NOOP\r\n"),
        ]
        dialogue.close()
        return heard

    replies = await asyncio.to_thread(pour)
    assert [reply[:3] for reply in replies] == ["550", "500", "250"]
    [shown] = await harness.list_messages(source)
    assert (shown["reason"], shown["subject"]) == ("malformed", "Long")


async def test_messages_in_progress_are_bounded(harness: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    source, address = await harness.create_source()
    monkeypatch.setattr(harness.listener._state.connection_limits.message_bytes, "max_total", 2 * MIB)
    large = build_message(("a.csv", CSV + b"OAK-9,Chair,1,1\r\n" * 150_000))
    assert (await harness.send(address, large)).startswith("452 4.3.1")
    assert (
        harness.listener._state.connection_limits.message_bytes.amount_in_use == 0
        and await harness.list_messages(source) == []
    )
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("250")
    assert harness.listener._state.connection_limits.message_bytes.amount_in_use == 0


async def test_closed_connections_are_not_counted(harness: MailHarness) -> None:
    _, address = await harness.create_source()
    for hang_up in (b"", b"QUIT\r\n", b"EHLO x\r\nMAIL FROM:<a@b.example>\r\n"):
        dialogue = await asyncio.to_thread(SmtpConnection, harness.port)
        dialogue.send(hang_up)
        dialogue.close()
    abandoned = await asyncio.to_thread(lambda: SmtpConnection(harness.port).begin_message(address))
    abandoned.send(b"Subject: half")
    abandoned.close()
    async with asyncio.timeout(10):
        while harness.listener._state.connection_limits.connections.amount_in_use:
            await asyncio.sleep(0.02)


async def test_a_silent_sender_is_disconnected(harness: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    _, address = await harness.create_source()
    monkeypatch.setattr(receiving, "MAX_PAUSE_SECONDS", 0.2)

    def pause() -> tuple[str, bytes]:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(b"Subject: half")
        return dialogue.read_reply(), dialogue._file.read()

    reply, rest = await asyncio.to_thread(pause)
    assert reply.startswith("421 4.4.2") and rest == b""


async def test_mail_is_deferred_while_the_store_is_full(harness: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    source, address = await harness.create_source()

    async def full(key: str, path: object) -> None:
        raise StorageFull

    with monkeypatch.context() as patched:
        patched.setattr(harness.bench.world.dependencies[ObjectStore], "put_file", full)
        assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("451 4.3.0")
    assert await harness.list_messages(source) == [] and await harness.list_runs(source) == []
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("250")


async def test_mail_is_deferred_while_the_work_folder_is_full(
    harness: MailHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source, address = await harness.create_source()

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(attachments, "_write_file", full)
        assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("451 4.3.0")
    [logged] = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert logged.levelno == logging.WARNING and logged.exc_info is None and "work folder" in logged.getMessage()
    assert await harness.list_messages(source) == [] and await harness.list_runs(source) == []
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("250")


async def test_a_sender_is_checked_before_the_message_is_read(harness: MailHarness) -> None:
    source, address = await harness.create_source("orders@vendor.example")
    bomb = build_message(*[(f"{at}.csv", CSV) for at in range(MAX_PARTS + 1)], sender="stranger@elsewhere.example")
    assert (await harness.send(address, bomb)).startswith("550 5.7.1")
    assert await _find_outcome(harness, source) == ("refused", "sender_not_listed")
    assert (await harness.list_messages(source))[0].get("attachments", []) == []
