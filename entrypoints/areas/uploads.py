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
    """Stage a file."""
    announced = await call.service.announce(call.tx, call.ids["id"], call.command)
    return call.made(wire.UPLOAD, announced.upload, **wire.target_of(announced.target))


async def read(call: Reading) -> Reply:
    """One upload."""
    found = await call.service.get(call.tx, call.ids["id"])
    return call.one(wire.UPLOAD, found.upload, **wire.target_of(found.target))


def _service(objects: Objects, rehearsal: Rehearsal) -> UploadService:
    return UploadService(objects, rehearse=rehearsal.file)


UPLOADS = Collection("uploads", wire.UPLOAD, "sources")

AREA = Area(
    "uploads",
    "Uploads",
    "Files staged for a file source.",
    service=_service,
    operations=(
        UPLOADS.write(
            "announce",
            "Announce a file",
            "For sources of kind file. PUT the bytes to `target.url` with exactly `target.headers` within 15 "
            "minutes, then complete the upload. Its size counts against the plan's storage from now on, so a file that does "
            "not fit is refused: 429. While a hundred files wait for their bytes: 409.",
            path="/v1/sources/{id}/uploads",
            handler=announce,
            body=wire.UPLOAD.create(NewUpload),
            status=201,
            errors=("conflict", "unprocessable", "quota_exceeded"),
            undo="It expires by itself after 15 minutes unless it is completed.",
        ),
        UPLOADS.read(
            "Read an upload",
            "An announced file and, once it is completed, the run that reads it.",
            handler=read,
            agent=None,
        ),
        UPLOADS.write(
            "complete",
            "Complete an upload",
            "Tells that the bytes are there and starts the run that reads them. Completing again answers the "
            "same upload. Bytes that are not there yet, an expired upload, an inactive source or an open run: 409; another "
            "size than announced: 422. `accept_shrink` lets the run withdraw as much as it finds gone. A dry run with "
            "`explain` reads the first rows and tells what would come of them.",
            UploadService.complete,
            body=wire.COMPLETE,
            preview=OUTCOME,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            undo="What was read of the file stays; upload a right one.",
        ),
    ),
)
