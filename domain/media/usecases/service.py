"""Read access to stored images."""

from dataclasses import dataclass
from datetime import datetime

from domain.kernel.links import link_expiry
from domain.kernel.resource import existing
from domain.media.model import LINK_LIFETIME, Image
from domain.media.ports import MediaStore
from ports.objects import Objects
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image with its download link and the link's expiry; `smaller` are the links of its renditions, in their order."""

    image: Image
    url: str
    expires_at: datetime
    smaller: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaService:
    """Read access to images; jobs fetch them."""

    objects: Objects

    async def get(self, tx: Tx, id: str) -> StoredImage:
        """Return a stored image that a product of the tenant names. Raises NotFound."""
        image = existing(await tx[MediaStore].image(id))
        expires_at = link_expiry(tx.now, LINK_LIFETIME)
        names = [f"{image.id}.webp", *(f"{image.id}-{one.width}x{one.height}.webp" for one in image.renditions)]
        links = [
            await self.objects.sign_get(key, filename=name, expires_at=expires_at)
            for key, name in zip(image.keys, names, strict=True)
        ]
        return StoredImage(image, links[0], expires_at, tuple(links[1:]))
