"""POST /v1/sources/{id}/uploads; GET /v1/uploads/{id}; POST /v1/uploads/{id}/complete."""

from typing import Final, TypeAlias

from adapters.wire import uploads as wire
from adapters.wire.runs import OUTCOME
from domain.runs.usecases.rehearsal import Rehearsal
from domain.uploads.model import NewUpload
from domain.uploads.usecases import UploadService
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Write, WriteContext

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


async def complete(call: Writing) -> Reply:
    """Start the run that reads the file."""
    return call.one(wire.UPLOAD, await call.service.complete(call.tx, call.ids["id"], call.command))


OPERATIONS: Final = (
    Write(
        id="uploads.announce",
        method="POST",
        path="/v1/sources/{id}/uploads",
        ids={"id": "src"},
        summary="Announce a file",
        description="For sources of kind file. PUT the bytes to `target.url` with exactly `target.headers` within 15 "
        "minutes, then complete the upload. Its size counts against the plan's storage from now on, so a file that does "
        "not fit is refused: 429. While a hundred files wait for their bytes: 409.",
        handler=announce,
        scope="sources:write",
        body=wire.UPLOAD.create(NewUpload),
        reply=wire.UPLOAD.schema,
        status=201,
        errors=("not_found", "conflict", "unprocessable", "quota_exceeded"),
        undo="It expires by itself after 15 minutes unless it is completed.",
    ),
    Read(
        id="uploads.read",
        path="/v1/uploads/{id}",
        ids={"id": "upl"},
        summary="Read an upload",
        description="An announced file and, once it is completed, the run that reads it.",
        handler=read,
        scope="sources:read",
        reply=wire.UPLOAD.schema,
        errors=("not_found",),
        agent=None,
    ),
    Write(
        id="uploads.complete",
        method="POST",
        path="/v1/uploads/{id}/complete",
        ids={"id": "upl"},
        summary="Complete an upload",
        description="Tells that the bytes are there and starts the run that reads them. Completing again answers the "
        "same upload. Bytes that are not there yet, an expired upload, an inactive source or an open run: 409; another "
        "size than announced: 422. `accept_shrink` lets the run withdraw as much as it finds gone. A dry run with "
        "`explain` reads the first rows and tells what would come of them.",
        handler=complete,
        scope="sources:write",
        body=wire.COMPLETE,
        preview=OUTCOME,
        reply=wire.UPLOAD.schema,
        rate="expensive",
        errors=("not_found", "conflict", "unprocessable"),
        undo="What was read of the file stays; upload a right one.",
    ),
)

AREA: Final = Area(
    name="uploads",
    title="Uploads",
    description="Files staged for a file source.",
    service=lambda dependencies: UploadService(
        dependencies.objects, rehearse=Rehearsal(dependencies.feed_readers, dependencies.workspaces).file
    ),
    operations=OPERATIONS,
)
