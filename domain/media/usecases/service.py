"""What readers ask of stored images: one, with a link to its bytes."""

from dataclasses import dataclass
from datetime import datetime

from domain.kernel.errors import NotFound
from domain.media.model import LINK_LIFETIME, Image
from ports.objects import Objects
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image, and where its bytes may be downloaded until when."""

    image: Image
    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class MediaService:
    """Reads; fetching is what jobs do."""

    objects: Objects

    async def get(self, tx: Tx, id: str) -> StoredImage:
        """A stored image that a product of the tenant names. Raises NotFound."""
        image = await tx.media.image(id)
        if image is None:
            raise NotFound
        expires_at = tx.now + LINK_LIFETIME
        url = await self.objects.sign_get(image.key, filename=f"{image.id}.webp", expires_at=expires_at)
        return StoredImage(image, url, expires_at)
