"""Image downloads over the guarded client: vetted addresses, bounded bytes, conditional requests."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from adapters.http import errors
from adapters.http.client import Answer, Bounds, GuardedClient
from domain.media.model import HEAD_BYTES, format_of, origin_of
from domain.media.ports import FetchedImage, ImageRefused, ImageUnreachable

IMAGE_BYTES = 32 << 20
"""The largest accepted file, in bytes."""
_BOUNDS = Bounds(total_seconds=120.0, idle_seconds=20.0, wire_bytes=IMAGE_BYTES, body_bytes=IMAGE_BYTES)
_ACCEPT = "image/webp,image/png,image/jpeg,image/gif;q=0.9,*/*;q=0.1"
_REDIRECTS = 5
_LONGEST_VALIDATOR = 1024
_PRESSED = frozenset((429, 503))


class HttpImages:
    """ImageFetcher."""

    def __init__(self, client: GuardedClient, bounds: Bounds = _BOUNDS) -> None:
        self._client, self._bounds = client, bounds

    async def fetch(self, url: str, path: Path, etag: str | None, last_modified: str | None) -> FetchedImage | None:
        headers = {"Accept": _ACCEPT}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": last_modified} if last_modified else {}
        try:
            async with self._client.request(
                "GET", url, headers=headers, redirects=_REDIRECTS, bounds=self._bounds
            ) as answer:
                if answer.status == 304 and (etag or last_modified):
                    return None
                if answer.status != 200:
                    raise ImageUnreachable(f"The server answered {answer.status}.", pressed=answer.status in _PRESSED)
                await _written(answer, path)
                return FetchedImage(path, _validator(answer, "ETag"), _validator(answer, "Last-Modified"))
        except errors.RefusedAddress as error:
            raise ImageUnreachable(str(error), refused=True) from None
        except (errors.DnsFailed, errors.ConnectFailed) as error:
            raise ImageUnreachable(str(error), absent=None if error.redirected else origin_of(url)) from None
        except errors.OutboundError as error:
            raise ImageUnreachable(str(error)) from None


def _validator(answer: Answer, name: str) -> str | None:
    value = answer.headers.get(name)
    return value if value is not None and len(value) <= _LONGEST_VALIDATOR and value.isprintable() else None


async def _written(answer: Answer, path: Path) -> None:
    """Write the body to a file. Raises ImageRefused as soon as its first bytes match no accepted format."""
    head, write = b"", _appending(path)
    async for chunk in answer.chunks:
        if len(head) < HEAD_BYTES:
            head += chunk[: HEAD_BYTES - len(head)]
            if len(head) == HEAD_BYTES and format_of(head) is None:
                break
        await asyncio.to_thread(write, chunk)
    if format_of(head) is None:
        raise ImageRefused("It is no JPEG, PNG, GIF or WebP image.")


def _appending(path: Path) -> Callable[[bytes], int]:
    def write(chunk: bytes) -> int:
        with path.open("ab") as file:
            return file.write(chunk)

    return write
