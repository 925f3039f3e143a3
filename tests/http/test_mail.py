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
from tests.http.fakes import OPERATOR
from tests.http.sources import FILE_SOURCE, Shop, shop

pytestmark = pytest.mark.asyncio
MAIL = {"kind": "mail", "config": {"inbound": {"senders": ["orders@vendor.example", "partner.example"]}}}


@pytest_asyncio.fixture(name="shop")
async def running_shop() -> AsyncIterator[Shop]:
    """A running application."""
    async with shop() as made:
        yield made


async def _rotate(shop: Shop, source: Any, **headers: str) -> Any:
    return await shop.client.post(f"/v1/sources/{source['id']}/inbound-address/rotate", **headers)


async def test_rotation_answers_the_source_with_another_address(shop: Shop) -> None:
    source = await shop.create(**MAIL)
    answer = await _rotate(shop, source)
    assert answer.status == 200
    after = answer.json()
    assert after["inbound_address"] != source["inbound_address"] and after["version"] == source["version"] + 1
    assert after == (await shop.client.get(f"/v1/sources/{source['id']}")).json()
    assert {name for name in after if after[name] != source[name]} <= {"inbound_address", "version", "updated_at"}


async def test_a_repeated_rotation_rotates_once(shop: Shop) -> None:
    source, key = await shop.create(**MAIL), new_id("req")
    first, second = [await _rotate(shop, source, idempotency_key=key) for _ in range(2)]
    assert first.json() == second.json()
    assert (await shop.stored(source["id"])).version == 2


async def test_sources_that_take_no_mail_have_no_address_to_rotate(shop: Shop) -> None:
    source = await shop.create(**FILE_SOURCE, config={})
    assert (await _rotate(shop, source)).code == "unprocessable"
    assert (await _rotate(shop, {"id": new_id("src")})).status == 404


async def test_a_dry_rotation_changes_nothing(shop: Shop) -> None:
    source = await shop.create(**MAIL)
    assert (await _rotate(shop, source, service_dry_run="true")).status == 200
    assert (await shop.stored(source["id"])).inbound_address == source["inbound_address"]


async def test_senders_must_be_addresses_or_domains(shop: Shop) -> None:
    config = {"inbound": {"senders": ["ok.example", "not an address"]}}
    answer = await shop.client.post("/v1/sources", {"name": "Mail", "kind": "mail", "config": config})
    assert answer.status == 400 and ("config.inbound.senders.1", "invalid_format") in answer.faults


async def test_messages_are_listed_newest_first(shop: Shop) -> None:
    source = await shop.create(**MAIL)
    path = f"/v1/sources/{source['id']}/inbound-messages"
    assert (await shop.client.get(path)).json()["data"] == []
    await shop.change(source["id"], name="Kept")
    checks = Authentication(
        SenderCheckResult.SOFTFAIL, SenderCheckResult.PASS, SenderCheckResult.PASS, MailPolicy.REJECT
    )
    now = shop.world.clock.now()
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
    async with shop.world.uow.begin(shop.tenant, OPERATOR) as tx:
        for row in (*rows, refused):
            await tx.store(InboundMessage).add(row)
    listed = (await shop.client.get(path)).json()["data"]
    assert [one["id"] for one in listed] == [row.id for row in (refused, *reversed(rows))]
    faults = JsonSchemaValidator()
    assert [faults.find_field_errors(INBOUND_MESSAGE.schema, one, "message") for one in listed] == [()] * 4
    assert {"from", "reason", "detail"} <= listed[0].keys() and "authentication" not in listed[0]
    assert listed[1]["authentication"] == {"spf": "softfail", "dkim": "pass", "dmarc": "pass", "policy": "reject"}
    assert [sorted(file) for file in listed[1]["attachments"]] == [
        ["bytes", "filename", "run"],
        ["bytes", "filename", "note"],
    ]
    page = (await shop.client.get(path + "?limit=3")).json()
    rest = (await shop.client.get(f"{path}?limit=3&starting_after={page['next_cursor']}")).json()
    assert [one["id"] for one in page["data"] + rest["data"]] == [one["id"] for one in listed]
    assert (await shop.client.get(f"/v1/sources/{new_id('src')}/inbound-messages")).status == 404
