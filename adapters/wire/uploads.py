"""The JSON of uploads (specification, Upload)."""

from typing import Any, Final

from adapters.wire.schema import (
    closed,
    constant,
    id_of,
    instant,
    integer,
    map_of,
    present,
    record,
    text,
    timestamp,
    url,
    word,
)
from domain.uploads.usecases import Announced

FILENAME: Final = text("spring-price-list.csv", longest=255) | {"pattern": r"^[^/\\\u0000-\u001f\u007f]+$"}
CONTENT_TYPE: Final = text("text/csv", longest=255) | {
    "pattern": r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( ?; ?[A-Za-z0-9_.-]+=[A-Za-z0-9_.\"-]+)*$"
}
TARGET: Final = record(
    None,
    {
        "method": constant("PUT"),
        "url": url("https://objects.joinery.example/uploads/upl_01J8ZQ5T3V7XK2M9RB4CDW?signature=3f9a"),
        "headers": map_of({"type": "string"}, {"Content-Type": "text/csv"}, "Send exactly these."),
        "expires_at": timestamp(),
    },
    description="Where the bytes go, while they are awaited; valid for 15 minutes.",
)
UPLOAD: Final = record(
    "upload",
    {
        "id": id_of("upl"),
        "source": id_of("src"),
        "filename": FILENAME,
        "content_type": CONTENT_TYPE,
        "bytes": integer(48213, least=1),
        "status": word("pending", "completed", "expired", "failed"),
        "run": id_of("run", "The run that reads the file, once the upload is completed."),
        "target": TARGET,
        "expires_at": timestamp(),
        "created_at": timestamp(),
        "completed_at": timestamp(),
    },
    optional=("run", "target", "completed_at"),
)
ANNOUNCE: Final = closed(
    {"filename": FILENAME, "content_type": CONTENT_TYPE, "bytes": integer(48213, least=1)},
    ("filename", "content_type", "bytes"),
)


def to_wire(announced: Announced) -> dict[str, Any]:
    """An upload with its target, if it has one."""
    upload, target = announced.upload, announced.target
    where = target and {
        "method": "PUT",
        "url": target.url,
        "headers": dict(target.headers),
        "expires_at": instant(target.expires_at),
    }
    wire: dict[str, Any] = {
        "object": "upload",
        "id": upload.id,
        "source": upload.source,
        "filename": upload.filename,
        "content_type": upload.content_type,
        "bytes": upload.bytes,
        "status": upload.status,
        "expires_at": instant(upload.expires_at),
        "created_at": instant(upload.created_at),
    }
    completed = instant(upload.completed_at) if upload.completed_at else None
    return wire | present(run=upload.run, target=where, completed_at=completed)
