"""Scheduled exports from the due time to the target."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.aesgcm import AesGcmVault
from adapters.postgres.runs import PostgresScheduledExportMaintenance
from domain.catalogue.model import ProductFilter
from domain.exports.layout import ExportFormat, ExportLayout
from domain.exports.ports import DeliveryFailed, ExportStore, FileTargets, ScheduledExportStore
from domain.exports.schedules import (
    MAX_DELIVERY_ATTEMPTS,
    MAX_SCHEDULES,
    ExportTarget,
    NewScheduledExport,
    ScheduledExport,
    TargetKind,
)
from domain.exports.usecases.delivery import ExportDelivery
from domain.exports.usecases.schedules import ExportScheduler, ScheduledExportService
from domain.exports.usecases.service import ExportRequester
from domain.jobs.model import ClaimedJob, build_lane_name
from domain.kernel.clock_schedule import ClockSchedule
from domain.kernel.errors import Conflict, InvalidRequest, LeaseLost, NotFound, PermissionDenied, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from tests.contract.test_exports import ExportHarness, create_harness
from tests.support import builders
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]
CALL = builders.CALL
VAULT = AesGcmVault("a secret of at least thirty-two characters")
KEYS = {"access_key": "key", "secret_key": "a very secret key"}
BUCKET = ExportTarget(TargetKind.BUCKET, bucket="blobs", endpoint="https://s3.example")
SCOPES = frozenset({"products:read", "exports:write"})


@dataclass
class RecordingTarget:
    """Target that records the files, and fails the next `failures_left` attempts."""

    files: list[tuple[str, bytes, Mapping[str, Any]]] = field(default_factory=list)
    failures_left: int = 0
    is_final: bool = False
    error: Exception | None = None
    is_silent: bool = False

    async def test(self, target: ExportTarget, credentials: Mapping[str, Any]) -> ExportTarget:
        while self.is_silent:
            await asyncio.sleep(1)
        return target

    async def send(
        self, target: ExportTarget, credentials: Mapping[str, Any], name: str, size: int, chunks: AsyncIterator[bytes]
    ) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise self.error or DeliveryFailed("The server is down.", is_final=self.is_final)
        data = b"".join([chunk async for chunk in chunks])
        assert len(data) == size
        self.files.append((name, data, dict(credentials)))


@dataclass
class ScheduleHarness:
    """Organisation with scheduled exports and an owner."""

    exports: ExportHarness
    owner: User
    target: RecordingTarget = field(default_factory=RecordingTarget)

    def __post_init__(self) -> None:
        self.backend = self.exports.backend
        self.targets = FileTargets({TargetKind.BUCKET: self.target})
        self.service = ScheduledExportService(self.targets, VAULT)
        self.clock = SettableClock()

    @property
    def tenant(self) -> Tenant:
        return self.exports.tenant

    @property
    def requester(self) -> ExportRequester:
        return replace(self.exports.requester, scopes=SCOPES)

    def build(self, **changes: Any) -> NewScheduledExport:
        new: dict[str, Any] = {
            "name": "Daily", "owner": self.owner.id, "filters": ProductFilter(), "layout": ExportLayout(ExportFormat.CSV, ("sku",)),
            "clock": ClockSchedule(7, 30, "Europe/Berlin"), "target": BUCKET, "file_name": "products-{date}-{time}",
        }  # fmt: skip
        return NewScheduledExport(**new | changes)  # type: ignore[typeddict-item]

    async def create(self, credentials: Mapping[str, Any] = KEYS, **changes: Any) -> ScheduledExport:
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            return await self.service.create(tx, self.build(**changes), credentials, self.requester)

    async def load(self, schedule: ScheduledExport) -> ScheduledExport:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = await tx[ScheduledExportStore].get(schedule.id)
        assert found is not None
        return found

    async def set_due(self, schedule: ScheduledExport) -> None:
        """Set the time of the next export to three days ago."""
        current = await self.load(schedule)
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[ScheduledExportStore].save(replace(current, next_at=tx.now - timedelta(days=3)))

    async def tick(self) -> None:
        self.clock.advance(self.backend.now() - self.clock.now())
        upkeep = PostgresScheduledExportMaintenance(self.backend.pool)
        await ExportScheduler(self.backend.uow, upkeep, self.clock, self.service).create_due_exports()

    async def claim_deliveries(self, schedule: ScheduledExport) -> list[ClaimedJob]:
        lane = build_lane_name(self.tenant.org, f"export_delivery:{schedule.id}")
        return list(await self.backend.dispatch.claim(lane, 5, timedelta(seconds=30)))

    def create_delivery(self) -> ExportDelivery:
        mail = OutgoingMail(self.backend.outbox, VAULT, self.clock)
        objects, people = self.exports.objects, self.backend.people
        return ExportDelivery(self.backend.uow, objects, self.targets, people, mail, VAULT, "https://joinery.test")

    async def deliver(self, schedule: ScheduledExport) -> int:
        jobs = await self.claim_deliveries(schedule)
        for job in jobs:
            await self.create_delivery()(job, asyncio.Event())
        return len(jobs)

    async def run(self, schedule: ScheduledExport) -> ScheduledExport:
        """Run a schedule that is due until its file was sent or the first attempt has failed."""
        await self.set_due(schedule)
        await self.tick()
        await self.exports.run_jobs()
        await self.deliver(schedule)
        return await self.load(schedule)

    async def count_exports(self) -> int:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return len((await tx[ExportStore].page(PageRequest(limit=100))).items)


async def add_person(backend: Backend, tenant: Tenant, role: str = "owner", *, verified: bool = True) -> User:
    email, now = f"{new_id('usr')[4:].lower()}@fjord.test", backend.now()
    user = await backend.people.add(User(new_id("usr"), email, "Ada", now if verified else None, now))
    async with backend.uow.begin(Tenant(tenant.org, True), CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, tenant.org, email, role, now))
    return user


@pytest_asyncio.fixture
async def harness(backend: Backend) -> ScheduleHarness:
    exports = await create_harness(backend)
    await exports.add_products(3)
    return ScheduleHarness(exports, await add_person(backend, exports.tenant))


async def test_a_due_export_is_created_and_sent_once(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    assert (
        schedule.next_at is not None
        and schedule.next_at > harness.backend.now()
        and b"very secret" not in schedule.credentials
    )
    await harness.tick()
    assert await harness.count_exports() == 0, "not due yet"
    await harness.set_due(schedule)
    await harness.tick()
    await harness.tick()
    assert await harness.count_exports() == 1, "three missed days are one export"
    after = await harness.load(schedule)
    assert after.last_status == "exporting" and after.next_at is not None and after.next_at > harness.backend.now()
    assert await harness.deliver(schedule) == 0
    await harness.exports.run_jobs()
    assert (await harness.load(schedule)).last_status == "delivering"
    assert await harness.deliver(schedule) == 1
    done = await harness.load(schedule)
    assert (done.last_status, done.last_error, done.is_in_progress) == ("delivered", None, False)
    [(name, data, credentials)] = harness.target.files
    assert name.startswith("products-20") and name.endswith(".csv") and credentials == KEYS
    assert len(data.split(b"\r\n")) == 5 and data.startswith(b"sku\r\n")
    assert await harness.deliver(schedule) == 0


async def test_a_schedule_has_one_export_at_a_time(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    await harness.set_due(schedule)
    await harness.tick()
    await harness.set_due(schedule)
    await harness.tick()
    assert await harness.count_exports() == 1
    assert (await harness.load(schedule)).next_at > harness.backend.now()  # type: ignore[operator]
    with pytest.raises(Conflict):
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await harness.service.run_now(tx, schedule.id, harness.requester)


async def test_a_failed_delivery_is_retried_and_then_reported(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    harness.target.failures_left = 1
    first = await harness.run(schedule)
    assert (first.last_status, first.last_error, first.failures) == ("delivering", "The server is down.", 1)
    await harness.backend.pass_time(timedelta(minutes=1))
    assert await harness.deliver(schedule) == 1
    done = await harness.load(schedule)
    assert (done.last_status, done.last_error, len(harness.target.files)) == ("delivered", None, 1)
    harness.target.failures_left = 99
    await harness.run(schedule)
    for _ in range(MAX_DELIVERY_ATTEMPTS):
        await harness.backend.pass_time(timedelta(minutes=11))
        await harness.deliver(schedule)
    failed = await harness.load(schedule)
    assert (failed.last_status, failed.last_error, len(harness.target.files)) == ("failed", "The server is down.", 1)
    assert harness.target.failures_left == 99 - MAX_DELIVERY_ATTEMPTS and failed.next_at is not None
    harness.target.is_final = True
    assert (await harness.run(schedule)).last_status == "failed", "no further attempt"
    assert await harness.claim_deliveries(schedule) == []


async def test_a_target_that_never_responds_fails_the_test(harness: ScheduleHarness) -> None:
    harness.target.is_silent = True
    with pytest.raises(DeliveryFailed, match="in time"):
        await replace(harness.service, max_test_seconds=0.01).test_target(BUCKET, KEYS)


async def test_an_unexpected_error_ends_the_delivery_as_well(harness: ScheduleHarness) -> None:
    """Otherwise the schedule would remain in progress, and create no further exports."""
    schedule = await harness.create()
    harness.target.failures_left, harness.target.error = 99, KeyError("secret")
    first = await harness.run(schedule)
    assert (first.last_status, first.failures) == ("delivering", 1)
    for _ in range(MAX_DELIVERY_ATTEMPTS):
        await harness.backend.pass_time(timedelta(minutes=11))
        await harness.deliver(schedule)
    failed = await harness.load(schedule)
    assert failed.last_status == "failed" and "secret" not in (failed.last_error or "") and not failed.is_in_progress


async def test_a_takeover_sends_the_file_again_under_the_same_name(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    await harness.set_due(schedule)
    await harness.tick()
    await harness.exports.run_jobs()
    [job] = await harness.claim_deliveries(schedule)
    await harness.backend.pass_time(timedelta(minutes=5))
    assert await harness.deliver(schedule) == 1
    with pytest.raises(LeaseLost):
        await harness.create_delivery()._finish(job, await harness.load(schedule), "failed")  # type: ignore[arg-type]
    assert (await harness.load(schedule)).last_status == "delivered"


async def test_verified_members_receive_a_link(harness: ScheduleHarness) -> None:
    backend, tenant = harness.backend, harness.tenant
    unverified, outsider = (
        await add_person(backend, tenant, verified=False),
        await add_person(backend, Tenant((await backend.organisation()).id, True)),
    )
    reader, accountant = await add_person(backend, tenant, "viewer"), await add_person(backend, tenant, "billing")
    members = (harness.owner.id, unverified.id, outsider.id, reader.id, accountant.id, "usr_unknown")
    schedule = await harness.create(
        {}, target=ExportTarget(TargetKind.MAIL, members=members), name="Süß\r\nBcc: x@evil.example"
    )
    done = await harness.run(schedule)
    assert done.last_status == "delivered"
    sent = [
        message
        for message in await backend.outbox.list_latest(50)
        if message.purpose == "scheduled_export"
        and message.to in {user.email for user in (harness.owner, unverified, outsider, reader, accountant)}
    ]
    assert {message.to for message in sent} == {harness.owner.email, reader.email}
    mail = OutgoingMail(backend.outbox, VAULT, harness.clock)
    assert (
        "/objects/" in mail.decrypt_text(sent[0])
        and "\n" not in sent[0].subject
        and "3 rows" in mail.decrypt_text(sent[0])
    )
    outside_schedule = await harness.create({}, target=ExportTarget(TargetKind.MAIL, members=(outsider.id,)))
    failed = await harness.run(outside_schedule)
    assert failed.last_status == "failed" and "verified" in (failed.last_error or "")


async def test_the_owner_must_still_be_permitted(harness: ScheduleHarness) -> None:
    former = await add_person(harness.backend, harness.tenant)
    viewer = await add_person(harness.backend, harness.tenant, "viewer")
    schedules = [await harness.create(owner=person.id) for person in (former, viewer)]
    async with harness.backend.uow.begin(Tenant(harness.tenant.org, True), CALL) as tx:
        await tx[OrgStore].remove_member(former.id)
    for schedule in schedules:
        await harness.set_due(schedule)
        await harness.tick()
        found = await harness.load(schedule)
        assert found.last_status == "failed" and "no longer export" in (found.last_error or "")
    assert await harness.count_exports() == 0


async def test_a_refused_export_is_reported(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    plan = replace(harness.requester.plan, features=frozenset())
    await harness.backend.offer(plan)
    await harness.set_due(schedule)
    await harness.tick()
    found = await harness.load(schedule)
    assert found.last_status == "failed" and "bulk_exports" in (found.last_error or "") and found.next_at is not None


async def test_a_failed_export_is_reported(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    harness.exports.objects.failures_left = 99
    await harness.set_due(schedule)
    await harness.tick()
    for _ in range(4):
        await harness.exports.run_jobs()
        await harness.backend.pass_time(timedelta(minutes=1))
    found = await harness.load(schedule)
    assert found.last_status == "failed" and found.last_error and await harness.deliver(schedule) == 0


async def test_a_paused_schedule_waits_and_a_deleted_one_sends_nothing(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    await harness.set_due(schedule)
    async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
        await harness.service.set_paused(tx, schedule.id, True)
    await harness.tick()
    assert await harness.count_exports() == 0
    async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
        resumed = await harness.service.set_paused(tx, schedule.id, False)
        assert resumed.next_at is not None and resumed.next_at > tx.now
        await harness.service.run_now(tx, schedule.id, harness.requester)
    await harness.exports.run_jobs()
    [job] = await harness.claim_deliveries(schedule)
    async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
        await harness.service.delete(tx, schedule.id)
    await harness.create_delivery()(job, asyncio.Event())
    assert harness.target.files == []


async def test_schedules_of_other_tenants_are_unknown(harness: ScheduleHarness) -> None:
    schedule = await harness.create()
    other = await create_harness(harness.backend)
    for tenant in (other.tenant, Tenant(harness.tenant.org, False)):
        async with harness.backend.uow.begin(tenant, CALL) as tx:
            assert (await harness.service.page(tx, PageRequest(limit=10))).items == ()
            for attempt in (
                harness.service.delete(tx, schedule.id),
                harness.service.set_paused(tx, schedule.id, True),
                harness.service.run_now(tx, schedule.id, harness.requester),
            ):
                with pytest.raises(NotFound):
                    await attempt
    assert (await harness.load(schedule)).next_at == schedule.next_at


@pytest.mark.parametrize(
    ("changes", "credentials"),
    [
        ({"name": ""}, KEYS), ({"file_name": "../secret"}, KEYS), ({"file_name": "a/b"}, KEYS), ({"file_name": "{name}"}, KEYS),
        ({"file_name": ".hidden"}, KEYS), ({"clock": ClockSchedule(24, 0)}, KEYS), ({"clock": ClockSchedule(-1, -1)}, KEYS),
        ({"clock": ClockSchedule(1, 1, "Mars/Olympus")}, KEYS), ({"clock": ClockSchedule(1, 1, "UTC", ())}, KEYS), ({}, {}),
        ({"target": replace(BUCKET, bucket="a/b")}, KEYS), ({"target": replace(BUCKET, region="x.evil.example/")}, KEYS),
        ({"target": replace(BUCKET, prefix="../x")}, KEYS), ({"target": ExportTarget(TargetKind.MAIL)}, {}),
        ({"target": ExportTarget(TargetKind.SFTP, host="a b", port=22, user="u")}, {"password": "x"}),
        ({"target": ExportTarget(TargetKind.SFTP, host="a.example", port=0, user="u")}, {"password": "x"}),
        ({"target": ExportTarget(TargetKind.SFTP, host="a.example", port=22, user="u")}, {}),
        ({"target": ExportTarget(TargetKind.SFTP, host="a.example", port=22, user="u", folder="/in\nx")}, {"password": "x"}),
        ({"layout": ExportLayout(ExportFormat.CSV, ("password",))}, KEYS), ({"layout": ExportLayout(ExportFormat.GOOGLE_MERCHANT_XML)}, KEYS),
    ],
)  # fmt: skip
async def test_invalid_schedules_are_refused(
    harness: ScheduleHarness, changes: dict[str, Any], credentials: Mapping[str, Any]
) -> None:
    with pytest.raises((InvalidRequest, Unprocessable)):
        await harness.create(credentials, **changes)


async def test_limits_and_permissions_of_schedules(harness: ScheduleHarness) -> None:
    with pytest.raises(PermissionDenied):
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await harness.service.create(tx, harness.build(), KEYS, replace(harness.requester, scopes=frozenset()))
    for _ in range(MAX_SCHEDULES):
        await harness.create()
    with pytest.raises(Conflict):
        await harness.create()
