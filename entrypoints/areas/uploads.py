"""Uploads of files: POST /v1/sources/{id}/uploads; GET /v1/uploads/{id}; POST /v1/uploads/{id}/complete."""

from typing import TypeAlias

from adapters.api_json import uploads as wire
from adapters.api_json.runs import RUN_PREVIEW_PROPERTIES
from domain.runs.usecases.dry_run import DryRun
from domain.uploads.model import NewUpload
from domain.uploads.usecases import UploadService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, WriteContext
from ports.objects import ObjectStore

UploadReadContext: TypeAlias = ReadContext[UploadService]
UploadWriteContext: TypeAlias = WriteContext[UploadService]


async def create_upload(context: UploadWriteContext) -> Reply:
    """Create an upload, and return it with the URL to which the caller sends the file."""
    pending_upload = await context.service.create(context.tx, context.ids["id"], context.command)
    return context.build_created_reply(wire.UPLOAD, pending_upload.upload, **wire.render_target(pending_upload.target))


async def read_upload(context: UploadReadContext) -> Reply:
    """Return one upload."""
    upload_state = await context.service.get(context.tx, context.ids["id"])
    return context.build_resource_reply(wire.UPLOAD, upload_state.upload, **wire.render_target(upload_state.target))


def _create_service(objects: ObjectStore, dry_run: DryRun) -> UploadService:
    return UploadService(objects, preview_run=dry_run.preview_file)


UPLOADS = Collection("uploads", wire.UPLOAD, "sources")

AREA = Area(
    "uploads",
    "Uploads",
    "Files uploaded to a file source.",
    create_service=_create_service,
    operations=(
        UPLOADS.write(
            "announce",
            "Create an upload",
            "For sources of kind file. PUT the bytes to `target.url` with exactly `target.headers` within 15 minutes, then "
            "complete the upload. The announced size counts against the plan's storage immediately. Returns 429 if the "
            "quota would be exceeded. Returns 409 while a hundred uploads wait for their files.",
            path="/v1/sources/{id}/uploads",
            handler=create_upload,
            body=wire.UPLOAD.build_create_body(NewUpload),
            status=201,
            errors=("conflict", "unprocessable", "quota_exceeded"),
            undo="An upload that is not completed expires after 15 minutes.",
        ),
        UPLOADS.read(
            "Read an upload",
            "Returns an upload and, after completion, the run that imports it.",
            handler=read_upload,
            agent=None,
        ),
        UPLOADS.write(
            "complete",
            "Complete an upload",
            "Declares that the file is stored, and starts the run that imports it. A repeated request returns the same "
            "upload. Returns 409 if the file is not stored yet, the upload has expired, the source is not active or a run "
            "is open. Returns 422 if the size differs from the announced size. `accept_shrink` allows the run to withdraw "
            "all items that are missing from the file. A dry run with `explain` reads the first rows and returns their "
            "effects.",
            UploadService.complete,
            body=wire.COMPLETE_UPLOAD_BODY,
            preview=RUN_PREVIEW_PROPERTIES,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            undo="Imported data stays. Upload a corrected file.",
        ),
    ),
)
