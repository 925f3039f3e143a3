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
    "Product images, stored as WebP.",
    service=MediaService,
    operations=(
        IMAGES.read(
            "Read a stored image",
            "Returns the dimensions of the stored WebP and a download link that is valid for 15 minutes. Every caller who can read "
            "a product with the image can read the image.",
        ),
    ),
    jobs={COLLECT_IMAGES: MediaCollection, FETCH: MediaFetching},
)
