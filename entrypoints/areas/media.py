"""GET /v1/media/{id}, and the jobs that fetch images."""

from adapters.wire import media as wire
from domain.media.queueing import FETCH
from domain.media.usecases import MediaService
from domain.media.usecases.collecting import MediaCollection
from domain.media.usecases.fetching import MediaFetching
from domain.runs.queueing import COLLECT_IMAGES
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area

IMAGES = Collection("media", wire.MEDIA, "products", "/v1/media")

AREA = Area(
    "media",
    "Images",
    "Images that products name, stored as WebP.",
    service=MediaService,
    operations=(
        IMAGES.read(
            "Read a stored image",
            "The size of the stored WebP and a link to download it, valid for 15 minutes. Whoever may read a product "
            "that names the image may read it.",
        ),
    ),
    jobs={COLLECT_IMAGES: MediaCollection, FETCH: MediaFetching},
)
