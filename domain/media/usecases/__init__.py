"""Use cases of images: reading and fetching."""

from domain.media.usecases.service import MediaService, StoredImage

__all__ = ["MediaService", "StoredImage"]
