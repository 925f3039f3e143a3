"""The JSON of stored images."""

from typing import Final

from adapters.wire.resource import Resource, computed
from adapters.wire.schema import constant, id_of, integer, record, timestamp, url
from domain.media.usecases import StoredImage

_DOWNLOAD: Final = record(
    None,
    {
        "url": url("https://objects.joinery.example/images/img_01J8ZQ5T3V7XK2M9RB4CDW.webp?signature=3f9a"),
        "expires_at": timestamp(),
    },
    description="Where the bytes are downloaded; the link is valid for 15 minutes.",
)
MEDIA: Final = Resource[StoredImage](
    "media",
    {
        "id": computed(id_of("img"), lambda stored, _: stored.image.id),
        "content_type": computed(constant("image/webp"), lambda _stored, _: "image/webp"),
        "width": computed(integer(1600, least=1, description="In pixels."), lambda stored, _: stored.image.width),
        "height": computed(integer(1200, least=1, description="In pixels."), lambda stored, _: stored.image.height),
        "bytes": computed(integer(148213, least=1), lambda stored, _: stored.image.bytes),
        "download": computed(_DOWNLOAD, lambda stored, _: {"url": stored.url, "expires_at": stored.expires_at}),
        "created_at": computed(timestamp(), lambda stored, _: stored.image.created_at),
    },
)
