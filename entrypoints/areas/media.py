"""Stored images, GET /v1/media/{id}, and the jobs that fetch images."""

from adapters.api_json import media as wire
from domain.media.fetch_jobs import FETCH
from domain.media.usecases import MediaService
from domain.media.usecases.image_collection import ImageCollectionJob
from domain.media.usecases.image_fetch import ImageFetchJob
from domain.runs.run_queue import COLLECT_IMAGES
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area

IMAGES = Collection("media", wire.MEDIA, "products", "/v1/media")

AREA = Area(
    "media",
    "Images",
    "Product images, stored as WebP.",
    create_service=MediaService,
    operations=(
        IMAGES.read(
            "Read a stored image",
            "Returns the dimensions of the stored WebP and a download link that is valid for 15 minutes. Every caller who can read "
            "a product with the image can read the image.",
        ),
    ),
    handler_factories={COLLECT_IMAGES: ImageCollectionJob, FETCH: ImageFetchJob},
)
