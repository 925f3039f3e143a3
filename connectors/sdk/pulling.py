"""Fetching of one file by its URL, or of one page of many, with the waits that sources request."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message
from urllib.parse import unquote, urlsplit

from .answers import body_of, check, media_type, validators_of
from .context import Context, HttpResponse
from .errors import RetryLater
from .spec import Fetched

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Page:
    """Response of a paged source, read whole."""

    status: int
    headers: Mapping[str, str]
    media_type: str
    final_url: str
    body: bytes

    def line(self) -> bytes:
        """Return the body as one line of a snapshot; JSON texts contain no raw line breaks."""
        return self.body.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


@asynccontextmanager
async def pull(
    ctx: Context, url: str, headers: Mapping[str, str], *, shown_url: str | None = None
) -> AsyncIterator[Fetched]:
    """Send one GET, conditional if there are validators, and pass the body on as it arrives.

    `shown_url` replaces the final URL if that one would contain a secret.
    """
    async with ctx.http.get(url, headers=headers, conditional=ctx.validators) as response:
        check(response, ctx)
        yield Fetched(
            status=response.status,
            chunks=_nothing() if response.status == 304 else response.chunks,
            final_url=shown_url or response.final_url,
            content_type=media_type(response) or None,
            filename=filename_of(response),
            not_modified=response.status == 304,
            validators=validators_of(response),
        )


async def page(
    ctx: Context, url: str, headers: Mapping[str, str], *, patient: bool, ends: frozenset[int] = frozenset()
) -> Page:
    """Fetch one page whole.

    With `patient`, waits that the source requests happen here, up to limits.patience_seconds and five tries. This suits
    the middle of a list, where a restart would cost the source more. `ends` are statuses that the caller takes as the
    end of the pages instead of an error. Raises as `answers.check`.
    """
    for retries in range(_TRIES - 1, -1, -1):
        try:
            async with ctx.http.get(url, headers=headers) as response:
                if response.status not in ends:
                    check(response, ctx)
                body = await body_of(response, ctx.limits.page_bytes)
                return Page(response.status, response.headers, media_type(response), response.final_url, body)
        except RetryLater as error:
            wait = _seconds(ctx, error)
            if not patient or not retries or wait > ctx.limits.patience_seconds:
                raise
            await ctx.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _seconds(ctx: Context, error: RetryLater) -> float:
    if error.until is None:
        return min(5.0, ctx.limits.patience_seconds)
    return max(0.0, (error.until - ctx.now()).total_seconds())


def filename_of(response: HttpResponse) -> str | None:
    """Return the file's name by Content-Disposition (RFC 6266), else the last part of the URL's path; never a path."""
    disposition = response.headers.get("Content-Disposition")
    name: str | None = None
    if disposition:
        message = Message()
        message["Content-Disposition"] = disposition
        name = message.get_filename()
    name = name or unquote(urlsplit(response.final_url).path.rsplit("/", 1)[-1])
    name = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    return name[:255] or None


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
