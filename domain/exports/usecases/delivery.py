"""Delivery of scheduled exports to their targets, by jobs with retries."""

import asyncio
import logging
from dataclasses import dataclass, replace

from domain.access.usecases import find_member_scopes
from domain.exports.model import PRODUCTS, Export, ExportFile, ExportStatus
from domain.exports.ports import DeliveryFailed, ExportStore, FileTargets, ScheduledExportStore
from domain.exports.schedules import MAX_DELIVERY_ATTEMPTS, ScheduledExport, ScheduleStatus
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import compute_retry_delay
from domain.kernel.errors import LeaseLost
from domain.outbox.usecases import OutgoingMail
from domain.people.ports import People
from domain.secrets.ports import Vault
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork

_MAX_SECONDS = 3_600
"""Seconds after which an attempt to send a file is aborted."""
_SCOPE = "products:read"
"""Scope that the role of a member who receives a link must include."""
_FILE_DELETED = "The file was deleted before it was sent."
_LOG = logging.getLogger("joinery.exports")


@dataclass(frozen=True, slots=True)
class ExportDelivery:
    """Handler of `exports.deliver` jobs."""

    uow: UnitOfWork
    objects: ObjectStore
    targets: FileTargets
    people: People
    mail: OutgoingMail
    vault: Vault
    base_url: str

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Send the file of an export, or schedule another attempt. Raises LeaseLost if another worker has taken over."""
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            schedule = await tx[ScheduledExportStore].get(str(job.args["schedule"]))
            export = await tx[ExportStore].get(str(job.args["export"]))
            is_current = schedule is not None and schedule.last_export == job.args["export"]
            if schedule is None or not is_current or schedule.last_status != ScheduleStatus.DELIVERING:
                await tx[JobStore].finish(job)
                return
        if export is None:
            await self._finish(job, schedule, ScheduleStatus.FAILED, _FILE_DELETED)
            return
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                await self._send(job, schedule, export)
        except LeaseLost:
            raise
        except DeliveryFailed as failure:
            await self._retry_or_fail(job, schedule, str(failure), is_final=failure.is_final)
        except Exception:  # a job that never ends would prevent all further exports of the schedule
            _LOG.exception("scheduled export could not be sent", extra={"export": export.id})
            await self._retry_or_fail(job, schedule, "The file could not be read or sent in time.")
        else:
            await self._finish(job, schedule, ScheduleStatus.DELIVERED)

    async def _send(self, job: ClaimedJob, schedule: ScheduledExport, export: Export) -> None:
        file = next((file for file in export.files if file.dataset == PRODUCTS), None)
        if export.status != ExportStatus.SUCCEEDED or file is None:
            raise DeliveryFailed(_FILE_DELETED, is_final=True)
        target = self.targets.get(schedule.target.kind)
        if target is None:
            await self._send_links(job, schedule, export, file)
            return
        credentials = self.vault.decrypt(schedule.credentials, schedule.id)
        name = schedule.build_file_name(export)
        await target.send(schedule.target, credentials, name, file.bytes, self.objects.read(file.key))

    async def _send_links(self, job: ClaimedJob, schedule: ScheduledExport, export: Export, file: ExportFile) -> None:
        """Send a link to the file to the target's members who may read products and whose addresses are verified."""
        users = await self.people.get_many(schedule.target.members)
        async with self.uow.begin_reading(job.tenant) as tx:
            verified = [user for user in users.values() if user.verified_at]
            members = [user for user in verified if _SCOPE in await find_member_scopes(tx, user.id)]
        if not members:
            raise DeliveryFailed(
                "None of the members may read products and has a verified address any more.", is_final=True
            )
        if export.expires_at is None:
            raise DeliveryFailed(_FILE_DELETED, is_final=True)
        name = schedule.build_file_name(export)
        link = await self.objects.sign_get(file.key, filename=name, expires_at=export.expires_at)
        until = export.expires_at.strftime("%Y-%m-%d %H:%M UTC")
        text = (
            f"The scheduled export “{schedule.name}” is ready: {file.rows} rows.\n\n{name}\n{link}\n\n"
            f"Everyone with this link can download the file until {until}. Change or pause the schedule at\n"
            f"{self.base_url}/console/organisation/exports/schedules\n"
        )
        for member in members:
            await self.mail.add_message(member.email, f"Export: {schedule.name}", text, "scheduled_export")

    async def _finish(
        self, job: ClaimedJob, schedule: ScheduledExport, status: ScheduleStatus, error: str | None = None
    ) -> None:
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            current = await tx[ScheduledExportStore].get(schedule.id, lock=True)
            if current is not None and current.last_export == schedule.last_export:
                await tx[ScheduledExportStore].save(current.with_status(status, tx.now, error))
            await tx[JobStore].finish(job)

    async def _retry_or_fail(
        self, job: ClaimedJob, schedule: ScheduledExport, error: str, *, is_final: bool = False
    ) -> None:
        failures = schedule.failures + 1
        if is_final or failures >= MAX_DELIVERY_ATTEMPTS:
            await self._finish(job, schedule, ScheduleStatus.FAILED, error)
            return
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            current = await tx[ScheduledExportStore].get(schedule.id, lock=True)
            if current is not None and current.last_export == schedule.last_export:
                delivering = current.with_status(ScheduleStatus.DELIVERING, tx.now, error)
                await tx[ScheduledExportStore].save(replace(delivering, failures=failures))
            await tx[JobStore].reschedule(job, tx.now + compute_retry_delay(failures))
