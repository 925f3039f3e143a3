"""JSON of uploads (docs/conventions.md#uploads)."""

from typing import Any

from adapters.wire.resource import Body, Resource, into
from domain.kernel.plain import plain
from domain.kernel.resource import computed, fixed, optional
from domain.kernel.schema import (
    boolean,
    constant,
    enum,
    id_of,
    integer,
    map_of,
    record,
    strict_object,
    text,
    timestamp,
    url,
)
from domain.uploads.model import CompleteUpload, Upload, UploadStatus
from ports.objects import SignedPut

FILENAME = text("spring-price-list.csv", longest=255) | {
    "pattern": r"^[^/\\\u0000-\u001f\u007f]+$",
    "x-words": "a file name without slashes and control characters",
}
CONTENT_TYPE = text("text/csv", longest=255) | {
    "pattern": r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( ?; ?[A-Za-z0-9_.-]+=[A-Za-z0-9_.\x22-]+)*$",
    "x-words": "a media type",
}
TARGET = record(
    None,
    {
        "method": constant("PUT"),
        "url": url("https://objects.joinery.example/uploads/upl_01J8ZQ5T3V7XK2M9RB4CDW?signature=3f9a"),
        "headers": map_of({"type": "string"}, {"Content-Type": "text/csv"}, "Headers to send exactly as given."),
        "expires_at": timestamp(),
    },
    description="Where to PUT the file until the upload is completed; valid for 15 minutes.",
)
UPLOAD = Resource[Upload](
    "upload",
    {
        "id": id_of("upl"),
        "source": id_of("src"),
        "filename": fixed(FILENAME, required=True),
        "content_type": fixed(CONTENT_TYPE, required=True),
        "bytes": fixed(integer(48213, least=1), required=True),
        "status": enum(*UploadStatus),
        "run": optional(id_of("run", "The run that imports the file, after the upload is completed.")),
        "target": optional(computed(TARGET, lambda _upload, _view: None)),
        "expires_at": timestamp(),
        "created_at": timestamp(),
        "completed_at": optional(timestamp()),
    },
    path="/v1/uploads/{id}",
)

COMPLETE = Body(
    strict_object({"accept_shrink": boolean(False, "Permit the run to withdraw more items than the removal limit.")}),
    into(CompleteUpload),
    required=False,
)


def target_of(target: SignedPut | None) -> dict[str, Any]:
    """Return the property `target`, or nothing if there is no target."""
    return {"target": {"method": "PUT", **plain(target)}} if target else {}
