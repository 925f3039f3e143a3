"""What people ask of stored images, and what fetches them."""

from domain.media.usecases.service import MediaService, StoredImage

__all__ = ["MediaService", "StoredImage"]
