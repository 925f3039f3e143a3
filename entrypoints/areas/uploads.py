"""POST /v1/sources/{id}/uploads; GET /v1/uploads/{id}; POST /v1/uploads/{id}/complete."""

from typing import TypeAlias

from adapters.wire import uploads as wire
from adapters.wire.runs import OUTCOME
from domain.runs.usecases.rehearsal import Rehearsal
from domain.uploads.model import NewUpload
from domain.uploads.usecases import UploadService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, WriteContext
from ports.objects import Objects

Reading: TypeAlias = ReadContext[UploadService]
Writing: TypeAlias = WriteContext[UploadService]


async def announce(call: Writing) -> Reply:
    """Announce a file."""
    announcement = await call.service.announce(call.tx, call.ids["id"], call.command)
    return call.made(wire.UPLOAD, announcement.upload, **wire.target_of(announcement.target))


async def read(call: Reading) -> Reply:
    """Return one upload."""
    upload_state = await call.service.get(call.tx, call.ids["id"])
    return call.one(wire.UPLOAD, upload_state.upload, **wire.target_of(upload_state.target))


def _service(objects: Objects, rehearsal: Rehearsal) -> UploadService:
    return UploadService(objects, rehearse=rehearsal.file)


UPLOADS = Collection("uploads", wire.UPLOAD, "sources")

AREA = Area(
    "uploads",
    "Uploads",
    "Files uploaded to a file source.",
    service=_service,
    operations=(
        UPLOADS.write(
            "announce",
            "Create an upload",
            "For sources of kind file. PUT the bytes to `target.url` with exactly `target.headers` within 15 minutes, then complete "
            "the upload. The announced size counts against the plan's storage immediately; if it exceeds the quota: 429. While a "
            "hundred uploads wait for their bytes: 409.",
            path="/v1/sources/{id}/uploads",
            handler=announce,
            body=wire.UPLOAD.create(NewUpload),
            status=201,
            errors=("conflict", "unprocessable", "quota_exceeded"),
            undo="An upload that is not completed expires after 15 minutes.",
        ),
        UPLOADS.read(
            "Read an upload",
            "Returns an upload and, after completion, the run that imports it.",
            handler=read,
            agent=None,
        ),
        UPLOADS.write(
            "complete",
            "Complete an upload",
            "States that the bytes are stored, and starts the run that imports them. Completing again returns the same upload. If "
            "the bytes are not stored yet, the upload has expired, the source is not active or a run is open: 409; if the size differs "
            "from the announced one: 422. `accept_shrink` allows the run to withdraw all items that are missing from the file. A dry "
            "run with `explain` reads the first rows and returns their effects.",
            UploadService.complete,
            body=wire.COMPLETE,
            preview=OUTCOME,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            undo="Imported data stays. Upload a corrected file.",
        ),
    ),
)
