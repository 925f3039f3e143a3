"""Stored images, the addresses they are fetched from, and the times of further requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from urllib.parse import urlsplit

LINK_LIFETIME = timedelta(minutes=15)
"""Lifetime of a download link."""
TRIES = 6
"""Maximum number of attempts to fetch an address."""
FRESH = timedelta(days=7)
"""Time for which a fetched address is not requested again."""
NO_ROOM_FOR = timedelta(hours=1)
"""Waiting time of a host's images if the plan has no storage left."""
_FIRST_DELAY = timedelta(minutes=5)
_LONGEST_DELAY = timedelta(hours=6)
_NO_PICTURES = frozenset(("video", "document"))
_HEADS = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF87a", "GIF"), (b"GIF89a", "GIF"))
HEAD_BYTES = 12
"""Bytes at the beginning of a file that determine its format."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """A smaller WebP of a stored image, with its own object; width and height in pixels."""

    key: str
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Image:
    """A stored WebP: `content` is the digest of its bytes, `key` its object's; width and height in pixels.

    `renditions` are smaller versions, the smallest first; they are created and deleted with the image.
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
        """The keys of all its objects."""
        return self.key, *(rendition.key for rendition in self.renditions)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an image; `run` named it last. Validators of its last response make the next request conditional."""

    address: str
    url: str
    host: str
    run: str
    tries: int = 0
    image: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class NamedMedia:
    """The media of a product and its variants: URL and role."""

    product: str
    items: tuple[tuple[str, str | None], ...]

    def pictures(self) -> frozenset[str]:
        """Return the URLs that may lead to an image."""
        return frozenset(url for url, role in self.items if role not in _NO_PICTURES and host_of(url) is not None)


def host_of(url: str) -> str | None:
    """Return the host of an HTTP URL with its port, in lower case; None for any other URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    return host if port is None else f"{host}:{port}"


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL as written, in lower case (`https://img.example/`)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/".lower()


def address_of(url: str) -> str:
    """Return the digest that identifies a URL, because URLs can be longer than keys."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def addresses_of(urls: Iterable[str], run: str) -> list[Address]:
    """Return the distinct addresses of the URLs, in locking order."""
    found = (Address(address_of(url), url, host, run) for url in set(urls) if (host := host_of(url)) is not None)
    return sorted(found, key=lambda one: one.address)


def delay(tries: int) -> timedelta | None:
    """Return the waiting time after `tries` failures (from 1); None if the address is given up."""
    return None if tries >= TRIES else min(_LONGEST_DELAY, _FIRST_DELAY * 4 ** (tries - 1))


DELAYS = tuple(wait for tries in range(1, TRIES) if (wait := delay(tries)))
"""Waiting times after the first failure, the second and so on; after the last the address is given up."""


def format_of(head: bytes) -> str | None:
    """Return the image format that the first HEAD_BYTES of a file prove, by its name in decoders; None for unsupported formats."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    return next((name for magic, name in _HEADS if head.startswith(magic)), None)
