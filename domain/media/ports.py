"""Stores and services for images: addresses to fetch, stored images, and their display in documents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from domain.media.model import Address, Image, NamedMedia


class MediaStore(Protocol):
    """Images within a tenant's transaction."""

    async def image(self, id: str) -> Image | None:
        """Return a stored image that a product names."""
        ...

    async def named(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[NamedMedia]:
        """Return the media of the source's products that changed since a time, newest first, starting after `before` (None: from the newest)."""
        ...

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        """Replace the addresses that products use; return the keys of objects to free.

        New addresses and those last fetched before `stale` are due at once. An address that no product uses is deleted,
        as is an image without an address.
        """
        ...

    async def due(self, host: str, limit: int) -> Sequence[Address]:
        """Return the host's due addresses, the longest due first."""
        ...

    async def next_due(self, host: str) -> datetime | None:
        """Return the time when the host's next address falls due, or None."""
        ...

    async def by_content(self, content: str) -> Image | None:
        """Return the image with this content, locked against deletion until the transaction ends."""
        ...

    async def add(self, image: Image) -> bool:
        """Store an image; return False if one with the same content exists."""
        ...

    async def found(self, address: Address, image: str) -> Sequence[str]:
        """Record that the address leads to the image, and queue the documents that name it; return the keys of objects to free.

        Nothing happens if the address has been deleted.
        """
        ...

    async def knows(self, address: str) -> bool:
        """Return whether the address is still used; it is locked until the transaction ends."""
        ...

    async def unchanged(self, address: str) -> None:
        """Record that the content of the address has not changed."""
        ...

    async def failed(self, address: str, tries: int, failure: str, again: datetime | None) -> None:
        """Record the `tries`-th failure of the address; `again` is the time of the next try, or None to give up."""
        ...

    async def origin_failed(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        """Record a failure of every due address of the host below `origin`, and delay each by its number of failures.

        Addresses beyond `delays` are given up; return their number by run.
        """
        ...

    async def postpone(self, host: str, until: datetime) -> None:
        """Delay all addresses of the host until the time."""
        ...

    async def show(self, limit: int) -> int:
        """Rebuild up to `limit` documents whose images changed; return their number.

        Products locked by others are skipped and stay pending.
        """
        ...

    async def unshown(self) -> bool:
        """Return whether documents must be rebuilt."""
        ...


class ImageRefused(Exception):
    """The image cannot be accepted; the message gives the reason and may be shown."""


class ImageUnreachable(Exception):
    """The image could not be fetched; the message gives the reason and may be shown.

    `pressed`: the host throttles requests; `refused`: the address is forbidden; `absent`: the origin
    (`https://host:port/`) does not respond at all.
    """

    def __init__(
        self, message: str, *, pressed: bool = False, refused: bool = False, absent: str | None = None
    ) -> None:
        super().__init__(message)
        self.pressed, self.refused, self.absent = pressed, refused, absent


@dataclass(frozen=True, slots=True)
class FetchedImage:
    """The bytes of a response, at most IMAGE_BYTES, and the validators for the next request."""

    path: Path
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A WebP file: its size in bytes, width and height in pixels."""

    path: Path
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ConvertedImage:
    """A converted image: its file, the digest of the file's bytes, and smaller versions, the smallest first."""

    file: ConvertedFile
    content: str
    renditions: tuple[ConvertedFile, ...] = ()

    @property
    def files(self) -> tuple[ConvertedFile, ...]:
        """All files, the image's own first."""
        return self.file, *self.renditions


class ImageFetcher(Protocol):
    """Client for images that requests vetted addresses only."""

    async def fetch(self, url: str, path: Path, etag: str | None, last_modified: str | None) -> FetchedImage | None:
        """Download an image to `path`; return None if it has not changed. Raises ImageUnreachable, ImageRefused."""
        ...


class ImageConverter(Protocol):
    """Image decoder in a separate process with limited memory and time."""

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        """Convert the first picture of a JPEG, PNG, GIF or WebP file to a WebP file at `target`, with smaller ones beside it.

        No file is larger than the picture. Raises ImageRefused.
        """
        ...

    async def close(self) -> None:
        """Stop all processes."""
        ...
