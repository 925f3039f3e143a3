"""Getting images from outside, and making of them what is stored."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
        """The image's bytes, in a file at `path`; None when it is what it was. Raises ImageUnreachable, ImageRefused."""
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
