"""Images in store: what products name, where it is fetched, and what of it is shown in documents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from domain.media.model import Address, Image, NamedMedia


class MediaStore(Protocol):
    """In a tenant's transaction."""

    async def image(self, id: str) -> Image | None:
        """Return a stored image that a product names."""
        ...

    async def named(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[NamedMedia]:
        """Return the media of the source's products that changed since a time, newest first, starting after `before` (None: from the newest)."""
        ...

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        """Put down which products use which addresses, and nothing else any more; answers keys of objects to free.

        New addresses are due at once, and so are those that were last looked at before `stale`. An address that no
        product uses is forgotten, and an image that no address leads to.
        """
        ...

    async def due(self, host: str, limit: int) -> Sequence[Address]:
        """Addresses of the host that are due, the longest due first."""
        ...

    async def next_due(self, host: str) -> datetime | None:
        """When the host's next address falls due."""
        ...

    async def by_content(self, content: str) -> Image | None:
        """Return the image with this content, locked against deletion until the transaction ends."""
        ...

    async def add(self, image: Image) -> bool:
        """Put down an image; False when there is one of its content already."""
        ...

    async def found(self, address: Address, image: str) -> Sequence[str]:
        """Record that the address leads to the image, and queue the documents that name it; return the keys of objects to free.

        Nothing happens when the address was forgotten meanwhile.
        """
        ...

    async def knows(self, address: str) -> bool:
        """Whether the address is still used; it is locked until the transaction ends."""
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
        """Everything of the host below `origin` that is due failed once more, and waits by how often it has; beyond `delays` it is given up.

        Answers how many addresses of each run are given up.
        """
        ...

    async def postpone(self, host: str, until: datetime) -> None:
        """Nothing of the host is due before then."""
        ...

    async def show(self, limit: int) -> int:
        """Make documents anew whose images changed, at most `limit` of them; answers how many.

        Products that somebody else holds are passed by: they stay to be done.
        """
        ...

    async def unshown(self) -> bool:
        """Whether there are documents that must be made anew."""
        ...


class ImageRefused(Exception):
    """It is no image that can be taken in; the message says why, and may be shown."""


class ImageUnreachable(Exception):
    """The image could not be fetched; the message says why, and may be shown.

    `pressed` says that the host asks to be left alone for a while; `refused` that the address is none to be reached;
    `absent` that nobody answers for what begins like this (`https://host:port/`), whatever of it is asked for.
    """

    def __init__(
        self, message: str, *, pressed: bool = False, refused: bool = False, absent: str | None = None
    ) -> None:
        super().__init__(message)
        self.pressed, self.refused, self.absent = pressed, refused, absent


@dataclass(frozen=True, slots=True)
class FetchedImage:
    """The bytes that an address answered, at most IMAGE_BYTES of them, and what makes the next request conditional."""

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
    """What was made of a picture: its file, the digest of that one's bytes, and smaller ones, the smallest first."""

    file: ConvertedFile
    content: str
    renditions: tuple[ConvertedFile, ...] = ()

    @property
    def files(self) -> tuple[ConvertedFile, ...]:
        """All of them, its own first."""
        return self.file, *self.renditions


class ImageFetcher(Protocol):
    """Reaches out to vetted addresses only."""

    async def fetch(self, url: str, path: Path, etag: str | None, last_modified: str | None) -> FetchedImage | None:
        """Download an image to `path`; return None if it has not changed. Raises ImageUnreachable, ImageRefused."""
        ...


class ImageConverter(Protocol):
    """Decodes in a process of its own, with bounded memory and time."""

    async def convert(self, source: Path, target: Path) -> ConvertedImage:
        """Make a WebP file at `target` of the first picture of a JPEG, PNG, GIF or WebP file, and smaller ones beside it.

        None is larger than the picture is. Raises ImageRefused.
        """
        ...

    async def close(self) -> None:
        """End every process."""
        ...
