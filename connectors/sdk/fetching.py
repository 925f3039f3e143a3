"""Fetching of one file as a stream, or of one page of a list as a whole."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message
from urllib.parse import unquote, urlsplit

from .context import Context, HttpResponse
from .errors import RetryLater
from .responses import parse_media_type, raise_for_status, read_body, read_validators
from .spec import Fetched

_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """Response with its whole body, from a source that delivers its data in pages."""

    status: int
    headers: Mapping[str, str]
    media_type: str
    final_url: str
    body: bytes

    def to_line(self) -> bytes:
        """Return the JSON of the body as one line of a snapshot, with its line breaks replaced by spaces."""
        # Strings in JSON contain no raw line breaks, so their values do not change.
        return self.body.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


@asynccontextmanager
async def stream_file(
    ctx: Context, url: str, headers: Mapping[str, str], *, shown_url: str | None = None
) -> AsyncIterator[Fetched]:
    """Send a GET request and yield the response with a streamed body.

    The request is conditional if the context has validators. `shown_url` replaces the final URL in the result, if the
    final URL contains a secret.
    """
    async with ctx.http.get(url, headers=headers, conditional=ctx.validators) as response:
        raise_for_status(response, ctx)
        yield Fetched(
            status=response.status,
            chunks=_no_chunks() if response.status == 304 else response.chunks,
            final_url=shown_url or response.final_url,
            content_type=parse_media_type(response) or None,
            filename=find_filename(response),
            not_modified=response.status == 304,
            validators=read_validators(response),
        )


async def fetch_page(
    ctx: Context, url: str, headers: Mapping[str, str], *, can_wait: bool, end_statuses: frozenset[int] = frozenset()
) -> FetchedPage:
    """Fetch a whole page. Raises the errors of `responses.raise_for_status`, and TooLarge.

    Args:
        ctx: The environment of the connector.
        url: URL of the page.
        headers: Headers of the request.
        can_wait: Whether to wait and retry if the source requests a wait of at most limits.max_wait_seconds, up to four
            times. Otherwise RetryLater is raised.
        end_statuses: HTTP statuses that mark the end of the list; such responses are returned, and raise no error.
    """
    for retries in range(_MAX_ATTEMPTS - 1, -1, -1):
        try:
            async with ctx.http.get(url, headers=headers) as response:
                if response.status not in end_statuses:
                    raise_for_status(response, ctx)
                body = await read_body(response, ctx.limits.page_bytes)
                return FetchedPage(
                    response.status, response.headers, parse_media_type(response), response.final_url, body
                )
        except RetryLater as error:
            wait = _wait_seconds(ctx, error)
            if not can_wait or not retries or wait > ctx.limits.max_wait_seconds:
                raise
            await ctx.sleep(wait)
    raise AssertionError("internal error: the last attempt neither returned nor raised")


def _wait_seconds(ctx: Context, error: RetryLater) -> float:
    if error.until is None:
        return min(5.0, ctx.limits.max_wait_seconds)
    return max(0.0, (error.until - ctx.now()).total_seconds())


def find_filename(response: HttpResponse) -> str | None:
    """Return the file name without folders, from Content-Disposition (RFC 6266) or else from the end of the URL."""
    disposition = response.headers.get("Content-Disposition")
    name: str | None = None
    if disposition:
        message = Message()
        message["Content-Disposition"] = disposition
        name = message.get_filename()
    name = name or unquote(urlsplit(response.final_url).path.rsplit("/", 1)[-1])
    name = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    return name[:255] or None


async def _no_chunks() -> AsyncIterator[bytes]:
    return
    yield b""
