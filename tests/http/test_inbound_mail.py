"""Inbound addresses and messages over HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.api_json.mail import INBOUND_MESSAGE
from domain.kernel.ids import new_id
from domain.mail.model import Attachment, Authentication, InboundMessage, MailPolicy, MessageStatus, SenderCheckResult
from entrypoints.operations.validation import JsonSchemaValidator
from tests.http.application import OPERATOR
from tests.http.sources import FILE_SOURCE, SourceHarness, open_source_harness

pytestmark = pytest.mark.asyncio
MAIL = {"kind": "mail", "config": {"inbound": {"senders": ["orders@vendor.example", "partner.example"]}}}


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _rotate(harness: SourceHarness, source: Any, **headers: str) -> Any:
    return await harness.client.post(f"/v1/sources/{source['id']}/inbound-address/rotate", **headers)


async def test_rotation_returns_the_source_with_another_address(harness: SourceHarness) -> None:
    source = await harness.create_source(**MAIL)
    response = await _rotate(harness, source)
    assert response.status == 200
    after = response.json()
    assert after["inbound_address"] != source["inbound_address"] and after["version"] == source["version"] + 1
    assert after == (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    assert {name for name in after if after[name] != source[name]} <= {"inbound_address", "version", "updated_at"}


async def test_a_repeated_rotation_rotates_once(harness: SourceHarness) -> None:
    source, key = await harness.create_source(**MAIL), new_id("req")
    first, second = [await _rotate(harness, source, idempotency_key=key) for _ in range(2)]
    assert first.json() == second.json()
    assert (await harness.load_source(source["id"])).version == 2


async def test_sources_without_mail_have_no_address_to_rotate(harness: SourceHarness) -> None:
    source = await harness.create_source(**FILE_SOURCE, config={})
    assert (await _rotate(harness, source)).code == "unprocessable"
    assert (await _rotate(harness, {"id": new_id("src")})).status == 404


async def test_a_dry_rotation_changes_nothing(harness: SourceHarness) -> None:
    source = await harness.create_source(**MAIL)
    assert (await _rotate(harness, source, service_dry_run="true")).status == 200
    assert (await harness.load_source(source["id"])).inbound_address == source["inbound_address"]


async def test_senders_must_be_addresses_or_domains(harness: SourceHarness) -> None:
    config = {"inbound": {"senders": ["ok.example", "not an address"]}}
    response = await harness.client.post("/v1/sources", {"name": "Mail", "kind": "mail", "config": config})
    assert response.status == 400 and ("config.inbound.senders.1", "invalid_format") in response.faults


async def test_messages_are_listed_newest_first(harness: SourceHarness) -> None:
    source = await harness.create_source(**MAIL)
    path = f"/v1/sources/{source['id']}/inbound-messages"
    assert (await harness.client.get(path)).json()["data"] == []
    await harness.change_source(source["id"], name="Kept")
    checks = Authentication(
        SenderCheckResult.SOFTFAIL, SenderCheckResult.PASS, SenderCheckResult.PASS, MailPolicy.REJECT
    )
    now = harness.application.clock.now()
    rows = [
        InboundMessage(
            new_id("inm"), source["id"], "orders@vendor.example", f"Day {day}", now + timedelta(days=day),
            MessageStatus.ACCEPTED, "f", (Attachment("a.csv", 12, run=new_id("run")), Attachment("b", 3, note="winmail")), checks,
        )
        for day in range(3)
    ]  # fmt: skip
    refused = InboundMessage(
        new_id("inm"), source["id"], "x@y.example", "", now, MessageStatus.REFUSED, "g", reason="sender_not_listed", detail="No."
    )  # fmt: skip
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        for row in (*rows, refused):
            await tx.store(InboundMessage).add(row)
    listed = (await harness.client.get(path)).json()["data"]
    assert [one["id"] for one in listed] == [row.id for row in (refused, *reversed(rows))]
    faults = JsonSchemaValidator()
    assert [faults.find_field_errors(INBOUND_MESSAGE.schema, one, "message") for one in listed] == [()] * 4
    assert {"from", "reason", "detail"} <= listed[0].keys() and "authentication" not in listed[0]
    assert listed[1]["authentication"] == {"spf": "softfail", "dkim": "pass", "dmarc": "pass", "policy": "reject"}
    assert [sorted(file) for file in listed[1]["attachments"]] == [
        ["bytes", "filename", "run"],
        ["bytes", "filename", "note"],
    ]
    page = (await harness.client.get(path + "?limit=3")).json()
    rest = (await harness.client.get(f"{path}?limit=3&starting_after={page['next_cursor']}")).json()
    assert [one["id"] for one in page["data"] + rest["data"]] == [one["id"] for one in listed]
    assert (await harness.client.get(f"/v1/sources/{new_id('src')}/inbound-messages")).status == 404
