"""Inbound mail over a real socket, from SMTP to products: acceptance, deduplication and storage."""

import asyncio
import gzip
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from domain.sso.ports import DnsRecord, RecordKind
from ports.objects import ObjectStore
from tests.mail.harness import MailHarness
from tests.mail.smtp import CSV, SENDER, SmtpConnection, build_message, serialise_message
from tests.support.postgres import database

pytestmark = pytest.mark.asyncio
STOCK = b"SKU;Stock\r\nOAK-1;7\r\nOAK-2;1\r\n"


def build_archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


async def test_a_message_becomes_products(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    reply = await harness.send(address, build_message(("Inventory.csv", CSV)))
    assert reply.startswith("250 2.0.0"), reply
    [shown] = await harness.list_messages(source)
    assert (shown["object"], shown["from"], shown["subject"], shown["status"]) == (
        "inbound_message", "feeds@vendor.example", "Daily inventory", "accepted",
    )  # fmt: skip
    assert shown["authentication"] == {"spf": "none", "dkim": "none", "dmarc": "none"}
    [file] = shown["attachments"]
    assert (file["filename"], file["bytes"]) == ("Inventory.csv", len(CSV))
    await harness.bench.process_lane(source)
    [run] = await harness.list_runs(source)
    assert (run["id"], run["trigger"], run["status"]) == (file["run"], "mail", "succeeded")
    assert [data["title"] for data in await harness.bench.list_product_data()] == ["Oak chair", "Oak table"]


async def test_each_data_file_starts_a_run_in_order(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    other = CSV.replace(b"OAK", b"ASH")
    files = [
        ("a.dat", CSV),
        ("logo.png", b"\x89PNG\r\n\x1a\n123"),
        ("all.zip", build_archive({"b": other, "__MACOSX/._b": b"x"})),
    ]
    assert (await harness.send(address, build_message(*files))).startswith("250")
    assert (await harness.send(address, build_message(("stock.txt", STOCK)))).startswith("250")
    newest, first = await harness.list_messages(source)
    assert [(file["filename"], "run" in file, file.get("note")) for file in first["attachments"]] == [
        ("a.dat", True, None), ("logo.png", False, "not_data"), ("b", True, None),
    ]  # fmt: skip
    assert [run["status"] for run in await harness.list_runs(source)] == ["queued"] * 3
    assert [file["bytes"] for file in newest["attachments"]] == [len(STOCK)]
    await harness.bench.process_lane(source)
    runs = await harness.list_runs(source)
    assert [run["status"] for run in runs] == ["succeeded"] * 3, runs
    assert runs[0]["id"] == newest["attachments"][0]["run"] and runs[0]["stream"] == "stock"


async def test_a_repeated_message_is_accepted_once(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    same = build_message(("a.csv", CSV), message_id="<daily-1@vendor.example>")
    replies = await asyncio.gather(*(harness.send(address, same) for _ in range(4)))
    assert all(reply.startswith("250") for reply in replies)
    assert sum("Duplicate message" in reply for reply in replies) == 3
    assert len(await harness.list_runs(source)) == 1
    shown = await harness.list_messages(source)
    assert sorted(entry.get("reason", "") for entry in shown) == ["", "duplicate", "duplicate", "duplicate"]
    assert {entry["attachments"][0]["run"] for entry in shown} == {(await harness.list_runs(source))[0]["id"]}
    waiting = await harness.bench.fetch_rows(
        "SELECT count(*) FROM stored_objects WHERE org = %s AND run IS NULL AND NOT freed", harness.bench.tenant.org
    )
    assert waiting == [(0,)], "what the others had put aside is free again"
    changed = build_message(("a.csv", CSV + b"OAK-3,Stool,20,1\r\n"), message_id="<daily-1@vendor.example>")
    assert "Duplicate message" not in await harness.send(address, changed)
    assert len(await harness.list_runs(source)) == 2


async def test_without_an_id_the_same_bytes_are_the_same_message(harness: MailHarness) -> None:
    _source, address = await harness.create_source()
    made = build_message(("a.csv", CSV))
    del made["Message-ID"]
    assert "Duplicate message" not in await harness.send(address, made)
    assert "Duplicate message" in await harness.send(address, made)
    made.replace_header("Subject", "Another day")
    assert "Duplicate message" not in await harness.send(address, made)


async def test_a_message_repeated_after_a_week_is_new(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    same = build_message(("a.csv", CSV), message_id="<daily-1@vendor.example>")
    await harness.send(address, same)
    async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner:
        await owner.execute(
            "UPDATE inbound_messages SET received_at = received_at - %s WHERE source = %s", (timedelta(days=7), source)
        )
    assert "Duplicate message" not in await harness.send(address, same)


async def test_a_message_without_data_starts_no_run(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    reply = await harness.send(address, build_message(subject="Out of office", Auto_Submitted="auto-replied"))
    assert reply.startswith("250") and "No data file" in reply
    [shown] = await harness.list_messages(source)
    assert (shown["status"], shown["reason"], shown["attachments"]) == ("accepted", "no_data", [])
    assert await harness.list_runs(source) == []


async def test_a_file_source_accepts_mail(harness: MailHarness) -> None:
    source, address = await harness.create_source(kind="file")
    packed = gzip.compress(CSV)
    assert (await harness.send(address, build_message(("feed.csv.gz", packed)))).startswith("250")
    await harness.bench.process_lane(source)
    [run] = await harness.list_runs(source)
    assert (run["trigger"], run["status"]) == ("mail", "succeeded")
    [shown] = await harness.list_messages(source)
    assert shown["attachments"][0]["filename"] == "feed.csv"


async def test_acknowledged_messages_are_stored(harness: MailHarness) -> None:
    """The stored file is complete and counted when the reply is sent."""
    source, address = await harness.create_source()
    await harness.send(address, build_message(("a.csv", CSV)))
    [run] = await harness.list_runs(source)
    [(key, bytes)] = await harness.bench.fetch_rows("SELECT key, bytes FROM stored_objects WHERE run = %s", run["id"])
    objects = harness.bench.world.dependencies[ObjectStore]
    assert b"".join([chunk async for chunk in objects.read(key)]) == CSV and bytes == len(CSV)
    audited = await harness.bench.fetch_rows(
        "SELECT target FROM audit_entries WHERE org = %s AND action = 'mail.take' ORDER BY id",
        harness.bench.tenant.org,
    )
    assert {kind for (kind,) in audited} == {"upload", "run"}


async def test_a_failing_store_accepts_nothing(harness: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    source, address = await harness.create_source()
    objects = harness.bench.world.dependencies[ObjectStore]
    put = type(objects).put_file

    async def broken(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(objects), "put_file", broken)
    same = build_message(("a.csv", CSV))
    assert (await harness.send(address, same)).startswith("451")
    assert await harness.list_messages(source) == [] and await harness.list_runs(source) == []
    assert await harness.bench.fetch_rows("SELECT 1 FROM uploads WHERE source = %s", source) == []
    monkeypatch.setattr(type(objects), "put_file", put)
    assert (await harness.send(address, same)).startswith("250")


async def test_an_unavailable_database_defers_the_sender(harness: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    source, address = await harness.create_source()
    intake = harness.listener._state.intake

    async def away(_: str) -> Any:
        raise Unavailable

    monkeypatch.setattr(intake.addresses, "find_recipient", away)
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("451 4.3.0")
    monkeypatch.undo()

    async def lost(*_: Any) -> Any:
        raise Unavailable

    monkeypatch.setattr(type(intake), "_commit_acceptance", lost)
    assert (await harness.send(address, build_message(("a.csv", CSV)))).startswith("451 4.3.0")
    assert await harness.bench.fetch_rows("SELECT 1 FROM uploads WHERE source = %s", source) == []


async def test_a_sender_that_hangs_up_before_the_answer_may_send_again(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    same = build_message(("a.csv", CSV), message_id="<once@vendor.example>")

    def hang_up() -> None:
        dialogue = SmtpConnection(harness.port).begin_message(address)
        dialogue.send(serialise_message(same) + b".\r\n")
        dialogue.close()

    await asyncio.to_thread(hang_up)
    await asyncio.sleep(0.3)
    assert (await harness.send(address, same)).startswith("250")
    assert len(await harness.list_runs(source)) == 1


async def test_several_messages_in_one_connection_pipelined(harness: MailHarness) -> None:
    source, address = await harness.create_source()

    def talk() -> list[str]:
        dialogue = SmtpConnection(harness.port)
        dialogue.read_reply()
        dialogue.exchange("EHLO mta.vendor.example\r\n")
        heard = []
        for number in range(3):
            dialogue.send(f"MAIL FROM:<{SENDER}> BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<{address}>\r\nDATA\r\n")
            heard += [dialogue.read_reply() for _ in range(3)]
            raw = serialise_message(build_message((f"{number}.csv", CSV.replace(b"OAK", b"OAK%d" % number))))
            dialogue.send(raw + b".\r\n" + (b"QUIT\r\n" if number == 2 else b"NOOP\r\n"))
            heard += [dialogue.read_reply(), dialogue.read_reply()]
        dialogue.close()
        return heard

    heard = await asyncio.to_thread(talk)
    assert [line[:3] for line in heard] == ["250", "250", "354", "250", "250"] * 2 + ["250", "250", "354", "250", "221"]
    assert len(await harness.list_runs(source)) == 3


async def test_data_files_are_listed_before_images(harness: MailHarness) -> None:
    source, address = await harness.create_source()
    pictures = [(f"{number}.png", b"\x89PNG\r\n\x1a\n%d" % number) for number in range(120)]
    assert (await harness.send(address, build_message(*pictures, ("a.csv", CSV)))).startswith("250")
    [shown] = await harness.list_messages(source)
    assert len(shown["attachments"]) == 100 and shown["detail"] == "21 further attachments are not listed."
    assert shown["attachments"][0]["filename"] == "a.csv" and "reason" not in shown


async def test_slow_name_servers_do_not_delay_other_organisations(
    harness: MailHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(40))
    answered, waiting, look_up = threading.Event(), threading.Semaphore(0), harness.name_records.look_up

    def look_up_slowly(name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...]:
        if "silent.example" in name:
            waiting.release()
            answered.wait(60)
        return look_up(name, kind, seconds)

    monkeypatch.setattr(harness.name_records, "look_up", look_up_slowly)
    silent = "feeds@silent.example"
    _, address = await harness.create_source(silent)
    tenant = Tenant((await harness.bench.world.create_organisation()).id, livemode=True)
    other = MailHarness(
        replace(harness.bench, client=await harness.bench.world.create_client(tenant), tenant=tenant),
        harness.name_records, harness.listener, harness.port,
    )  # fmt: skip
    _, other_address = await other.create_source()
    held = [
        asyncio.create_task(harness.send(address, build_message((f"{n}.csv", CSV), sender=silent), silent))
        for n in range(12)
    ]
    try:
        assert await asyncio.to_thread(waiting.acquire, timeout=30)
        await asyncio.sleep(1)  # wait for the others
        reply = await asyncio.wait_for(harness.send(other_address, build_message(("a.csv", CSV))), 20)
        assert reply.startswith("250"), reply
    finally:
        answered.set()
        replies = await asyncio.gather(*held, return_exceptions=True)
    assert all(str(reply).startswith("250") for reply in replies), replies
