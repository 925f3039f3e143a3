"""Pages of scheduled exports: list, new schedule with a test of its target, and changes."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from domain.exports.ports import DeliveryFailed
from domain.exports.schedules import DEFAULT_FILE_NAME, ExportTarget, NewScheduledExport, TargetKind
from domain.exports.usecases.schedules import ScheduledExportService
from domain.exports.usecases.service import ExportRequester
from domain.kernel.clock_schedule import WEEKDAYS, ClockSchedule, list_zones
from domain.kernel.errors import Unprocessable
from domain.kernel.paging import PageRequest
from domain.orgs.ports import OrgStore
from domain.people.model import User
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.catalogue_exports import (
    SCHEDULES_PATH,
    build_filter,
    describe_filters,
    parse_layout,
    select_filters,
)
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.request import FormData
from entrypoints.console.translation import gettext
from entrypoints.http.exchange import Response
from ports.limits import RateLimitBucket

_PAGE_SIZE = 20
_MAX_MEMBERS = 100
_CREDENTIAL_FIELDS = {
    TargetKind.MAIL: (),
    TargetKind.BUCKET: ("access_key", "secret_key"),
    TargetKind.SFTP: ("password", "private_key"),
}

pages = Pages(SCHEDULES_PATH, section="Organisation", scope="exports:read")


@pages.register_get()
async def list_schedules(page: PageContext) -> Response:
    """Show the scheduled exports with their next times and last results."""
    async with page.open_read_transaction() as tx:
        found = await page.dependencies[ScheduledExportService].page(tx, PageRequest(limit=_PAGE_SIZE, key=page.cursor))
    owners = {schedule.owner for schedule in found.items}
    recipients = {member for schedule in found.items for member in schedule.target.members}
    return page.render(
        "organisation/export_schedules.html",
        schedules=found,
        people=await page.people.get_many(owners | recipients),
        describe=lambda schedule: _describe_target(schedule.target),
    )


@pages.register_form("/new", scope="exports:write")
async def create_schedule(page: PageContext) -> Response:
    """Show the form; if it is submitted, test the target, and store the schedule unless only the test was requested."""
    page.require_scope("products:read")
    fields = page.form if page.is_post else page.query
    pairs, layout = select_filters(fields), parse_layout(fields)
    target, tested = _parse_target(fields), False
    if page.must_process:
        service, credentials = page.dependencies[ScheduledExportService], _parse_credentials(fields, target.kind)
        await page.take_token(RateLimitBucket(f"export-target:{page.principal.tenant.org}", 10, 1 / 6))
        try:
            target, tested = await service.test_target(target, credentials), True
        except DeliveryFailed as failure:
            raise Unprocessable(str(failure)) from failure
        if fields["action"] != "test":
            new = NewScheduledExport(
                name=fields.get("name")[:100],
                owner=page.person.user.id,
                filters=build_filter(pairs),
                layout=layout,
                clock=_parse_clock(fields),
                target=target,
                file_name=fields.get("file_name", DEFAULT_FILE_NAME),
            )
            async with page.open_transaction("scheduled_exports.create") as tx:
                await service.create(tx, new, credentials, _create_requester(page))
            return page.redirect(SCHEDULES_PATH, gettext("Schedule created"))
    names = await find_source_names(page)
    return page.render(
        "organisation/export_schedule.html",
        status=200 if page.request.is_htmx else None,
        fields=fields,
        pairs=pairs,
        filters=describe_filters(pairs, names),
        layout=layout,
        target=target,
        is_tested=tested,
        fingerprint=compute_fingerprint(target.host_key) if target.host_key else "",
        members=await _list_verified_members(page),
        zones=list_zones(),
        default_file_name=DEFAULT_FILE_NAME,
        view_query=urlencode([*pairs, *(("columns", name) for name in layout.columns)]),
    )


@pages.register_post("/<schedule>/pause", scope="exports:write", error_view=list_schedules)
async def set_paused(page: PageContext) -> Response:
    """Pause or resume a schedule."""
    paused = page.form["paused"] == "true"
    async with page.open_transaction("scheduled_exports.update") as tx:
        service = page.dependencies[ScheduledExportService]
        await service.set_paused(tx, page.path_parameters["schedule"], paused)
    return page.redirect(SCHEDULES_PATH, gettext("Schedule paused") if paused else gettext("Schedule resumed"))


@pages.register_post("/<schedule>/run", scope="exports:write", error_view=list_schedules)
async def run_schedule(page: PageContext) -> Response:
    """Create an export of a schedule now, and send it to the target."""
    page.require_scope("products:read")
    async with page.open_transaction("scheduled_exports.run") as tx:
        service = page.dependencies[ScheduledExportService]
        await service.run_now(tx, page.path_parameters["schedule"], _create_requester(page))
    return page.redirect(SCHEDULES_PATH, gettext("Export started. You can leave this page."), tone="info")


@pages.register_post("/<schedule>/delete", scope="exports:write", error_view=list_schedules)
async def delete_schedule(page: PageContext) -> Response:
    """Delete a schedule with its credentials."""
    async with page.open_transaction("scheduled_exports.delete") as tx:
        await page.dependencies[ScheduledExportService].delete(tx, page.path_parameters["schedule"])
    return page.redirect(SCHEDULES_PATH, gettext("Schedule deleted"))


def compute_fingerprint(host_key: str) -> str:
    """Return the fingerprint of a public key in OpenSSH's format; empty if it is not one."""
    parts = host_key.split()
    try:
        digest = hashlib.sha256(base64.b64decode(parts[1], validate=True)).digest()
    except (IndexError, ValueError):
        return ""
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _create_requester(page: PageContext) -> ExportRequester:
    return ExportRequester(page.principal.organisation.plan, page.principal.scopes)


def _parse_target(fields: FormData) -> ExportTarget:
    kind = fields.get("target_kind", TargetKind.MAIL)
    texts: dict[str, Any]
    if kind == TargetKind.BUCKET:
        texts = {**fields.select("endpoint", "region", "bucket", "prefix")}
        return ExportTarget(TargetKind.BUCKET, **texts)
    if kind == TargetKind.SFTP:
        port = fields.get_number("port") if fields.get("port") else 22
        texts = {"port": port, **fields.select("host", "user", "folder", "host_key")}
        return ExportTarget(TargetKind.SFTP, **texts)
    return ExportTarget(TargetKind.MAIL, members=tuple(dict.fromkeys(fields.get_all("members"))))


def _parse_credentials(fields: FormData, kind: TargetKind) -> Mapping[str, Any]:
    return {name: fields[name] for name in _CREDENTIAL_FIELDS[kind] if fields[name]}


def _parse_clock(fields: FormData) -> ClockSchedule:
    """Return the schedule in the form; missing values remain, so that the use case refuses them. Raises InvalidRequest."""
    minute, selected = fields.get_minute("time"), fields.get_all("weekdays")
    weekdays = tuple(day for day in WEEKDAYS if str(day) in selected)
    return ClockSchedule(*divmod(-1 if minute is None else minute, 60), fields.get("zone", "UTC"), weekdays)


def _describe_target(target: ExportTarget) -> str:
    if target.kind == TargetKind.BUCKET:
        return "/".join(part.strip("/") for part in ("s3:/", target.bucket, target.prefix) if part)
    if target.kind == TargetKind.SFTP:
        return f"sftp://{target.host}:{target.port}/{(target.folder or '').strip('/')}"
    return ""


async def _list_verified_members(page: PageContext) -> list[User]:
    """Return the members of the organisation whose email addresses are verified."""
    async with page.open_read_transaction() as tx:
        members = await tx[OrgStore].list_members(PageRequest(limit=_MAX_MEMBERS))
    people = await page.people.get_many([member.user for member in members.items])
    return [user for user in people.values() if user.verified_at]
