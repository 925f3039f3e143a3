"""Read access to stored images."""

from dataclasses import dataclass
from datetime import datetime

from domain.kernel.links import link_expiry
from domain.kernel.resource import require_found
from domain.media.model import LINK_LIFETIME, Image
from domain.media.ports import MediaStore
from ports.objects import ObjectStore
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class ImageWithLinks:
    """Stored image with download links.

    Attributes:
        image: The image.
        url: Download link of the image.
        expires_at: When the links expire.
        rendition_urls: Download links of `image.renditions`, in the same order.
    """

    image: Image
    url: str
    expires_at: datetime
    rendition_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaService:
    """Read access to stored images."""

    objects: ObjectStore

    async def get(self, tx: Tx, id: str) -> ImageWithLinks:
        """Return the image with that ID if a product of the tenant contains it. Raises NotFound."""
        image = require_found(await tx[MediaStore].get_image(id))
        expires_at = link_expiry(tx.now, LINK_LIFETIME)
        names = [f"{image.id}.webp", *(f"{image.id}-{one.width}x{one.height}.webp" for one in image.renditions)]
        links = [
            await self.objects.sign_get(key, filename=name, expires_at=expires_at)
            for key, name in zip(image.keys, names, strict=True)
        ]
        return ImageWithLinks(image, links[0], expires_at, tuple(links[1:]))
