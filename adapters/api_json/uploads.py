"""JSON of uploads (docs/conventions.md#uploads)."""

from typing import Any

from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import computed, optional, set_at_creation
from domain.kernel.schema import (
    boolean,
    constant,
    enum,
    id_schema,
    integer,
    map_schema,
    response_object,
    strict_object,
    text,
    timestamp,
    url,
)
from domain.uploads.model import CompleteUpload, Upload, UploadStatus
from ports.objects import SignedPut

FILENAME = text("spring-price-list.csv", max_length=255) | {
    "pattern": r"^[^/\\\u0000-\u001f\u007f]+$",
    "x-words": "a file name without slashes, backslashes or control characters",
}
CONTENT_TYPE = text("text/csv", max_length=255) | {
    "pattern": r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( ?; ?[A-Za-z0-9_.-]+=[A-Za-z0-9_.\x22-]+)*$",
    "x-words": "a media type",
}
UPLOAD_TARGET = response_object(
    None,
    {
        "method": constant("PUT"),
        "url": url("https://objects.joinery.example/uploads/upl_01J8ZQ5T3V7XK2M9RB4CDW?signature=3f9a"),
        "headers": map_schema(
            {"type": "string"}, {"Content-Type": "text/csv"}, "Headers to send unchanged with the file."
        ),
        "expires_at": timestamp(),
    },
    description="Where to PUT the file until the upload is completed; valid for 15 minutes.",
)
UPLOAD = JsonResource[Upload](
    "upload",
    {
        "id": id_schema("upl"),
        "source": id_schema("src"),
        "filename": set_at_creation(FILENAME, required=True),
        "content_type": set_at_creation(CONTENT_TYPE, required=True),
        "bytes": set_at_creation(integer(48213, minimum=1), required=True),
        "status": enum(*UploadStatus),
        "run": optional(id_schema("run", "The run that imports the file, after the upload is completed.")),
        "target": optional(computed(UPLOAD_TARGET, lambda _upload, _view: None)),
        "expires_at": timestamp(),
        "created_at": timestamp(),
        "completed_at": optional(timestamp()),
    },
    path="/v1/uploads/{id}",
)

COMPLETE_UPLOAD_BODY = Body(
    strict_object({"accept_shrink": boolean(False, "Permit the run to withdraw more items than the removal limit.")}),
    create_decoder(CompleteUpload),
    is_required=False,
)


def render_target(target: SignedPut | None) -> dict[str, Any]:
    """Return the property `target` with the link for the PUT request, or no property if there is no link."""
    return {"target": {"method": "PUT", **to_json_value(target)}} if target else {}
