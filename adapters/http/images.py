"""Download of images from untrusted URLs, with a maximum size and conditional requests."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from adapters.http import errors
from adapters.http.client import GuardedClient, HttpBounds, StreamedResponse
from domain.media.model import HEAD_BYTES, detect_format, parse_origin
from domain.media.ports import FetchedImage, ImageRefused, ImageUnreachable

MAX_IMAGE_BYTES = 32 << 20
"""Maximum size of an image file in bytes."""
_BOUNDS = HttpBounds(
    total_seconds=120.0, idle_seconds=20.0, max_received_bytes=MAX_IMAGE_BYTES, max_body_bytes=MAX_IMAGE_BYTES
)
_ACCEPT = "image/webp,image/png,image/jpeg,image/gif;q=0.9,*/*;q=0.1"
_MAX_REDIRECTS = 5
_MAX_VALIDATOR_CHARS = 1024
_OVERLOAD_STATUSES = frozenset((429, 503))


class HttpImages:
    """Downloader of images, an implementation of the port ImageFetcher (domain/media/ports.py)."""

    def __init__(self, client: GuardedClient, bounds: HttpBounds = _BOUNDS) -> None:
        self._client, self._bounds = client, bounds

    async def fetch(self, url: str, path: Path, etag: str | None, last_modified: str | None) -> FetchedImage | None:
        headers = {"Accept": _ACCEPT}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": last_modified} if last_modified else {}
        try:
            async with self._client.request(
                "GET", url, headers=headers, max_redirects=_MAX_REDIRECTS, bounds=self._bounds
            ) as response:
                if response.status == 304 and (etag or last_modified):
                    return None
                if response.status != 200:
                    raise ImageUnreachable(
                        f"The server returned {response.status}.", is_throttled=response.status in _OVERLOAD_STATUSES
                    )
                await _write_body(response, path)
                return FetchedImage(path, _read_validator(response, "ETag"), _read_validator(response, "Last-Modified"))
        except errors.RefusedAddress as error:
            raise ImageUnreachable(str(error), is_forbidden=True) from None
        except (errors.DnsFailed, errors.ConnectFailed) as error:
            raise ImageUnreachable(
                str(error), unreachable_origin=None if error.has_followed_redirect else parse_origin(url)
            ) from None
        except errors.OutboundError as error:
            raise ImageUnreachable(str(error)) from None


def _read_validator(response: StreamedResponse, name: str) -> str | None:
    value = response.headers.get(name)
    return value if value is not None and len(value) <= _MAX_VALIDATOR_CHARS and value.isprintable() else None


async def _write_body(response: StreamedResponse, path: Path) -> None:
    """Write a response's body to a file. Raises ImageRefused if the first bytes indicate no supported format."""
    head, write = b"", _append_to_file(path)
    async for chunk in response.chunks:
        if len(head) < HEAD_BYTES:
            head += chunk[: HEAD_BYTES - len(head)]
            if len(head) == HEAD_BYTES and detect_format(head) is None:
                break
        await asyncio.to_thread(write, chunk)
    if detect_format(head) is None:
        raise ImageRefused("The file is not a JPEG, PNG, GIF or WebP image.")


def _append_to_file(path: Path) -> Callable[[bytes], int]:
    def write(chunk: bytes) -> int:
        with path.open("ab") as file:
            return file.write(chunk)

    return write
