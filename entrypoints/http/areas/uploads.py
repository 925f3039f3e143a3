"""POST /v1/sources/{id}/uploads; GET /v1/uploads/{id}; POST /v1/uploads/{id}/complete."""

from typing import Final

from adapters.wire import uploads as wire
from domain.uploads.usecases import Announced
from entrypoints.http.operation import Operation, Reply, RequestContext


async def announce(call: RequestContext) -> Reply:
    """Stage a file."""
    announced = await call.use.uploads.announce(call.tx, call.ids["id"], **call.body)
    address = f"{call.base_url}/v1/uploads/{announced.upload.id}"
    return Reply(wire.to_wire(announced), status=201, headers={"Location": address})


async def read(call: RequestContext) -> Reply:
    """One upload."""
    return Reply(wire.to_wire(await call.use.uploads.get(call.tx, call.ids["id"])))


async def complete(call: RequestContext) -> Reply:
    """Start the run that reads the file."""
    upload = await call.use.uploads.complete(call.tx, call.ids["id"])
    return Reply(wire.to_wire(Announced(upload, None)))


OPERATIONS: Final = (
    Operation(
        id="uploads.announce",
        method="POST",
        path="/v1/sources/{id}/uploads",
        ids={"id": "src"},
        summary="Announce a file",
        description="For sources of kind file. PUT the bytes to `target.url` with exactly `target.headers` within 15 "
        "minutes, then complete the upload.",
        handler=announce,
        scope="sources:write",
        body=wire.ANNOUNCE,
        reply=wire.UPLOAD,
        status=201,
        rate="write",
        errors=("not_found", "conflict", "unprocessable"),
    ),
    Operation(
        id="uploads.read",
        method="GET",
        path="/v1/uploads/{id}",
        ids={"id": "upl"},
        summary="Read an upload",
        description="An announced file and, once it is completed, the run that reads it.",
        handler=read,
        scope="sources:read",
        reply=wire.UPLOAD,
        rate="read",
        errors=("not_found",),
    ),
    Operation(
        id="uploads.complete",
        method="POST",
        path="/v1/uploads/{id}/complete",
        ids={"id": "upl"},
        summary="Complete an upload",
        description="Tells that the bytes are there and starts the run that reads them. Completing again answers the "
        "same upload. Bytes that are not there yet, an expired upload, an inactive source or an open run: 409; another "
        "size than announced: 422.",
        handler=complete,
        scope="sources:write",
        reply=wire.UPLOAD,
        rate="expensive",
        errors=("not_found", "conflict", "unprocessable"),
    ),
)
