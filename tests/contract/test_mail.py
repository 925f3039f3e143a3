"""Inbound addresses and their messages (domain/mail/ports.py, ports/unit_of_work.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.mail.model import (
    Attachment,
    Authentication,
    InboundMessage,
    MailPolicy,
    MessageFilter,
    MessageStatus,
    SenderCheckResult,
)
from domain.mail.ports import Recipient
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


def _build_address() -> str:
    return f"{new_id('src').lower()}@in.joinery.example"


def _build_message(**changes: object) -> InboundMessage:
    made = InboundMessage(
        id=new_id("inm"),
        source="src_1",
        sender="feeds@vendor.example",
        subject="Preise für „Frühling“",
        received_at=builders.MOMENT,
        status=MessageStatus.ACCEPTED,
        fingerprint="f1",
        attachments=(Attachment("a.csv", 12, run="run_1"), Attachment("b.png", 3, note="not_data")),
        authentication=Authentication(
            SenderCheckResult.PASS, SenderCheckResult.NONE, SenderCheckResult.PASS, MailPolicy.REJECT
        ),
    )
    return replace(made, **changes)


async def test_an_address_is_found_across_tenants(backend: Backend) -> None:
    address = _build_address()
    assert await backend.addresses.find_recipient(address) is None
    for livemode in (True, False):
        tenant, mine = await backend.tenant(livemode=livemode), _build_address()
        source = builders.source(kind="mail", inbound_address=mine)
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[SourceStore].add(builders.source())
        assert await backend.addresses.find_recipient(mine) == Recipient(tenant, source.id, mine)
        assert await backend.addresses.find_recipient(mine.upper()) is None
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].save(with_changes(source, tx.now, inbound_address=address + str(livemode)))
        assert await backend.addresses.find_recipient(mine) is None


async def test_uncommitted_addresses_are_not_found(backend: Backend) -> None:
    address = _build_address()
    async with backend.uow.begin(await backend.tenant(), CALL) as tx:
        await tx[SourceStore].add(builders.source(kind="mail", inbound_address=address))
        assert await backend.addresses.find_recipient(address) is None


async def test_messages_keep_every_field(uow: UnitOfWork, tenant: Tenant) -> None:
    whole = _build_message(received_at=builders.MOMENT + timedelta(microseconds=7))
    bare = _build_message(
        attachments=(), authentication=None, status=MessageStatus.REFUSED, reason="malformed", detail="Why."
    )
    async with uow.begin(tenant, CALL) as tx:
        await tx.store(InboundMessage).add(whole)
        await tx.store(InboundMessage).add(bare)
    async with uow.begin_reading(tenant) as tx:
        assert (await tx.store(InboundMessage).page(PageRequest())).items == (bare, whole)
    async with uow.begin_reading(replace(tenant, livemode=False)) as tx:
        assert (await tx.store(InboundMessage).page(PageRequest())).items == ()


async def test_the_newest_duplicate_is_found(uow: UnitOfWork, tenant: Tenant) -> None:
    first, refused, second = _build_message(), _build_message(status=MessageStatus.REFUSED), _build_message()
    async with uow.begin(tenant, CALL) as tx:
        for one in (first, refused, second, _build_message(source="src_2"), _build_message(fingerprint="f2")):
            await tx.store(InboundMessage).add(one)
    async with uow.begin_reading(tenant) as tx:
        for status, expected in ((MessageStatus.ACCEPTED, second), (MessageStatus.REFUSED, refused)):
            found = await tx.store(InboundMessage).page(PageRequest(1), MessageFilter("src_1", status, "f1"))
            assert found.items == (expected,)
