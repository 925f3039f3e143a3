"""JSON of stored images."""

from collections.abc import Mapping
from typing import Any

from adapters.api_json.resource import JsonResource
from domain.kernel.resource import computed
from domain.kernel.schema import array, constant, id_schema, integer, response_object, timestamp, url
from domain.media.usecases import ImageWithLinks

_DOWNLOAD = response_object(
    None,
    {
        "url": url("https://objects.joinery.example/images/img_01J8ZQ5T3V7XK2M9RB4CDW.webp?signature=3f9a"),
        "expires_at": timestamp(),
    },
    description="A download link, valid for 15 minutes.",
)
_RENDITION = response_object(
    None,
    {
        "width": integer(320, minimum=1, description="In pixels."),
        "height": integer(240, minimum=1, description="In pixels."),
        "bytes": integer(11204, minimum=1),
        "url": url("https://objects.joinery.example/images/img_01J8ZQ5T3V7XK2M9RB4CDW-320.webp?signature=77c0"),
    },
)


def _render_renditions(stored: ImageWithLinks) -> list[Mapping[str, Any]]:
    return [
        {"width": rendition.width, "height": rendition.height, "bytes": rendition.bytes, "url": link}
        for rendition, link in zip(stored.image.renditions, stored.rendition_urls, strict=True)
    ]


MEDIA = JsonResource[ImageWithLinks](
    "media",
    {
        "id": computed(id_schema("img"), lambda stored, _: stored.image.id),
        "content_type": computed(constant("image/webp"), lambda _stored, _: "image/webp"),
        "width": computed(integer(1600, minimum=1, description="In pixels."), lambda stored, _: stored.image.width),
        "height": computed(integer(1200, minimum=1, description="In pixels."), lambda stored, _: stored.image.height),
        "bytes": computed(integer(148213, minimum=1), lambda stored, _: stored.image.bytes),
        "download": computed(_DOWNLOAD, lambda stored, _: {"url": stored.url, "expires_at": stored.expires_at}),
        "renditions": computed(
            array(
                _RENDITION,
                description="Smaller versions of the image, smallest first. Their links expire at the same time as the link in `download`.",
            ),
            lambda stored, _: _render_renditions(stored),
        ),
        "created_at": computed(timestamp(), lambda stored, _: stored.image.created_at),
    },
)
