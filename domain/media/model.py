"""Stored images, the URLs from which images are fetched, and the times of further requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from urllib.parse import urlsplit

LINK_LIFETIME = timedelta(minutes=15)
"""Lifetime of a download link of an image."""
MAX_FAILED_FETCHES = 6
"""Maximum number of consecutive failed attempts to fetch an image URL."""
REFETCH_AFTER = timedelta(days=7)
"""Time after which a fetched image URL is requested again."""
QUOTA_RETRY_DELAY = timedelta(hours=1)
"""Delay of all fetches from a host after an image of the host exceeded the organisation's storage quota."""
_FIRST_DELAY = timedelta(minutes=5)
_LONGEST_DELAY = timedelta(hours=6)
_NON_IMAGE_ROLES = frozenset(("video", "document"))
_FORMATS_BY_HEAD = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF87a", "GIF"), (b"GIF89a", "GIF"))
HEAD_BYTES = 12
"""Number of bytes at the beginning of a file that determine the image format."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """Smaller version of a stored image, as a WebP file; width and height in pixels."""

    key: str
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Image:
    """Stored image, as a WebP file; width and height in pixels.

    Attributes:
        content: Digest of the WebP file's bytes, by which equal images are recognised.
        key: Key of the file in the object store.
        bytes: Size of the file.
        renditions: Smaller versions, smallest first; they are created and deleted with the image.
    """

    id: str
    content: str
    key: str
    bytes: int
    width: int
    height: int
    created_at: datetime
    renditions: tuple[Rendition, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the image and its renditions in the object store."""
        return self.key, *(rendition.key for rendition in self.renditions)


@dataclass(frozen=True, slots=True)
class ImageUrl:
    """URL of an image that a product contains, with the state of the downloads.

    Attributes:
        url_digest: Digest of the URL, which serves as ID.
        host: Host of the URL, with the port if the URL has one.
        run: ID of the run whose feed last contained the URL.
        tries: Number of consecutive failed attempts.
        image: ID of the stored image, or None.
        etag: ETag of the last response, for a conditional request.
        last_modified: Last-Modified header of the last response, for a conditional request.
    """

    url_digest: str
    url: str
    host: str
    run: str
    tries: int = 0
    image: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class ProductMedia:
    """Media of a product and its variants: `items` are pairs of URL and role, such as `hero` or `video`."""

    product: str
    items: tuple[tuple[str, str | None], ...]

    def find_image_urls(self) -> frozenset[str]:
        """Return the HTTP URLs among the media that can be images, by their role."""
        return frozenset(
            url for url, role in self.items if role not in _NON_IMAGE_ROLES and parse_host(url) is not None
        )


def parse_host(url: str) -> str | None:
    """Return the host of an HTTP URL in lower case, with the port if the URL has one; None for any other URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    return host if port is None else f"{host}:{port}"


def parse_origin(url: str) -> str:
    """Return the origin (scheme, host and port) of a URL in lower case, such as `https://img.example/`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/".lower()


def compute_url_digest(url: str) -> str:
    """Return the digest that identifies a URL in the store."""
    # URLs can be too long for keys.
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def build_image_urls(urls: Iterable[str], run: str) -> list[ImageUrl]:
    """Return an `ImageUrl` for each distinct HTTP URL, sorted by digest.

    `run` is the ID of the run whose feed contains the URLs.
    """
    found = (
        ImageUrl(compute_url_digest(url), url, host, run) for url in set(urls) if (host := parse_host(url)) is not None
    )
    return sorted(found, key=lambda image_url: image_url.url_digest)


def compute_retry_delay(failures: int) -> timedelta | None:
    """Return the time until the next attempt after `failures` consecutive failures (at least 1).

    None for no further attempt.
    """
    return None if failures >= MAX_FAILED_FETCHES else min(_LONGEST_DELAY, _FIRST_DELAY * 4 ** (failures - 1))


RETRY_DELAYS = tuple(wait for tries in range(1, MAX_FAILED_FETCHES) if (wait := compute_retry_delay(tries)))
"""Times until the next attempt after one failure, two, and so on; after more failures, there is no further attempt."""


def detect_format(head: bytes) -> str | None:
    """Return the image format that the first HEAD_BYTES of a file indicate, such as `PNG`.

    None if it is not supported.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    return next((name for magic, name in _FORMATS_BY_HEAD if head.startswith(magic)), None)
