"""Ports of images: storage of URLs and images, download and conversion."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from domain.media.model import Image, ImageUrl, ProductMedia


class MediaStore(Protocol):
    """Storage of images and of the URLs of images, in a tenant's transaction.

    URLs are identified by their digests (`compute_url_digest`), which the column `address` contains.
    """

    async def get_image(self, id: str) -> Image | None:
        """Return the stored image with that ID if a product contains it, or None."""
        ...

    async def list_media(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[ProductMedia]:
        """Return the media of the source's products that changed since a time, in descending order of product IDs.

        Only products with lower IDs than `before` are returned; None starts with the highest.
        """
        ...

    async def replace_image_urls(
        self,
        url_digests_by_product: Mapping[str, Collection[str]],
        image_urls: Sequence[ImageUrl],
        fetched_before: datetime,
    ) -> Sequence[str]:
        """Replace the image URLs that products contain; return the keys of objects to delete from the object store.

        New URLs, and URLs that were last fetched before `fetched_before`, become due for download. URLs
        that no product contains any more, and images without a URL, are deleted.

        Args:
            url_digests_by_product: The digests of the image URLs of each product, by product ID.
            image_urls: The URLs with these digests.
            fetched_before: Time before which the last fetch of a URL is outdated.
        """
        ...

    async def list_due(self, host: str, limit: int) -> Sequence[ImageUrl]:
        """Return up to `limit` of the host's image URLs that are due for download, longest due first."""
        ...

    async def find_next_due(self, host: str) -> datetime | None:
        """Return when the next download from the host is due, or None."""
        ...

    async def lock_by_content(self, content: str) -> Image | None:
        """Lock and return the image whose WebP file has the digest `content`, or None.

        The image cannot be deleted until the transaction ends.
        """
        ...

    async def add(self, image: Image) -> bool:
        """Store an image; return False if an image with the same content is stored."""
        ...

    async def record_image(self, image_url: ImageUrl, image: str) -> Sequence[str]:
        """Record that the URL returned the image with the ID `image`; return the keys of objects to delete.

        Products that contain the URL get a new document later. Nothing happens if the URL was deleted.
        """
        ...

    async def lock_image_url(self, url_digest: str) -> bool:
        """Lock a URL until the transaction ends, so that it is not deleted; return False if it is not stored."""
        ...

    async def record_unchanged(self, address: str) -> None:
        """Record that a fetch found the image unchanged at the URL with the digest `address`."""
        ...

    async def record_failure(self, address: str, tries: int, failure: str, next_attempt_at: datetime | None) -> None:
        """Record a failed fetch.

        Args:
            address: The digest of the URL.
            tries: Number of consecutive failures, including this one.
            failure: The reason.
            next_attempt_at: Time of the next attempt; None for no further attempt.
        """
        ...

    async def record_origin_failure(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        """Record a failed fetch for all due image URLs of the host that start with `origin`.

        Returns the numbers of URLs without a further attempt, by run.

        Args:
            host: The host.
            origin: Scheme, host and port, such as `https://img.example/`.
            failure: The reason.
            delays: Times until the next attempt after one failure, two, and so on; after more, there is no further
                attempt.
        """
        ...

    async def postpone(self, host: str, until: datetime) -> None:
        """Postpone all fetches from the host until the time."""
        ...

    async def rebuild_documents(self, limit: int) -> Sequence[str]:
        """Rebuild the documents of up to `limit` products whose images changed.

        Returns the ID of the visible product for each of them.
        Products that other transactions have locked are skipped, and remain queued.
        """
        ...

    async def has_pending_documents(self) -> bool:
        """Return whether products wait for a new document because their images changed."""
        ...


class ImageRefused(Exception):
    """Error for a file that is not an acceptable image. The message states the reason and may be shown to users."""


class ImageUnreachable(Exception):
    """Error for an image that could not be fetched. The message states the reason and may be shown to users.

    Attributes:
        is_throttled: Whether the host throttles requests (status 429 or 503).
        is_forbidden: Whether requests to the URL are not permitted, for example because its host has a private IP address.
        unreachable_origin: The origin (such as `https://host:port/`) if no server responds there; else None.
    """

    def __init__(
        self,
        message: str,
        *,
        is_throttled: bool = False,
        is_forbidden: bool = False,
        unreachable_origin: str | None = None,
    ) -> None:
        super().__init__(message)
        self.is_throttled, self.is_forbidden, self.unreachable_origin = is_throttled, is_forbidden, unreachable_origin


@dataclass(frozen=True, slots=True)
class FetchedImage:
    """Downloaded image file.

    `etag` and `last_modified` are headers of the response, for a later conditional request.
    """

    path: Path
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """WebP file: size in bytes, width and height in pixels."""

    path: Path
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ConvertedImage:
    """Converted image.

    Attributes:
        file: The largest version.
        content: Digest of the largest version's bytes, by which equal images are recognised.
        renditions: Smaller versions, smallest first.
    """

    file: ConvertedFile
    content: str
    renditions: tuple[ConvertedFile, ...] = ()

    @property
    def files(self) -> tuple[ConvertedFile, ...]:
        """All files of the image: the largest version, then the smaller ones."""
        return self.file, *self.renditions


class ImageFetcher(Protocol):
    """HTTP client for images, which connects to permitted IP addresses only."""

    async def fetch(self, url: str, path: Path, etag: str | None, last_modified: str | None) -> FetchedImage | None:
        """Download an image to `path`, or return None if the server responds that it has not changed.

        `etag` and `last_modified` are headers of the last response. Raises ImageUnreachable, ImageRefused.
        """
        ...


class ImageConverter(Protocol):
    """Conversion of images in a separate process with limits on memory and time."""

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        """Convert a JPEG, PNG, GIF or WebP file to a WebP file at `target`, and to smaller WebP files beside it.

        Of an animation, only the first frame is converted. No image is enlarged. Raises ImageRefused.
        """
        ...

    async def close(self) -> None:
        """Stop all processes that convert images."""
        ...
