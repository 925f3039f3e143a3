"""Use cases of images: reading and fetching."""

from domain.media.usecases.service import ImageWithLinks, MediaService

__all__ = ["ImageWithLinks", "MediaService"]
