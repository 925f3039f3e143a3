"""What an HTTP answer's status means for a run, the same for every connector."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from .context import Context, HttpResponse, Validators
from .errors import Refused, RetryLater, TooLarge, Unreachable, WaitReason

_BUSY = frozenset({502, 503, 504})
_THROTTLED = frozenset({429, 430})
_UNSIGNED = frozenset({401, 407})
_FORBIDDEN = frozenset({403, 451})
_LATER: Mapping[bool, tuple[str, WaitReason]] = {
    False: ("The source limits how often it is asked", "rate_limited"),
    True: ("The source is busy", "upstream_busy"),
}
_LONGEST_WAIT = timedelta(days=7)


def retry_after(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When the source asks to be asked again: Retry-After in seconds or as a date (RFC 9110 §10.2.3), else None.

    Where that is missing, the milliseconds of X-Rate-Limit-Time-Reset-Ms, as BigCommerce writes it.
    """
    value = (headers.get("Retry-After") or "").strip()
    if not value:
        left = (headers.get("X-Rate-Limit-Time-Reset-Ms") or "").strip()
        return now + timedelta(milliseconds=int(left)) if left.isdecimal() and len(left) < 10 else None
    if value.isascii() and value.isdigit() and len(value) < 9:
        until = now + timedelta(seconds=int(value))
    else:
        try:
            until = parsedate_to_datetime(value)
            until = until.replace(tzinfo=UTC) if until.tzinfo is None else until.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):  # what a stranger writes for a date
            return None
    return min(max(until, now), now + _LONGEST_WAIT)


def check(response: HttpResponse, ctx: Context) -> None:
    """Let 2xx and 304 pass. Raises RetryLater (429, 430, 502-504), Refused (401, 403, 407, 451) or Unreachable."""
    status = response.status
    if 200 <= status < 300 or status == 304:
        return
    if status in _THROTTLED | _BUSY:
        said, reason = _LATER[status in _BUSY]
        raise RetryLater(f"{said} (HTTP {status}).", until=retry_after(response.headers, ctx.now()), reason=reason)
    signed = bool(ctx.credentials)
    if status in _UNSIGNED:
        said = "The source refused the credentials" if signed else "The source asks for credentials"
        raise Refused(f"{said} (HTTP {status}).", credentials=True)
    if status in _FORBIDDEN:
        raise Refused(f"The source refuses to answer (HTTP {status}).", credentials=signed)
    raise Unreachable(f"The source answered HTTP {status}.")


def media_type(response: HttpResponse) -> str:
    """The media type in lower case without parameters, empty when none is named."""
    return (response.headers.get("Content-Type") or "").split(";", 1)[0].strip().lower()


def validators_of(response: HttpResponse) -> Validators:
    """What the server says of this version of the resource."""
    return Validators(etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified"))


async def body_of(response: HttpResponse, limit: int) -> bytes:
    """The whole body. Raises TooLarge when it is longer than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.chunks:
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"One answer of the source is larger than {limit // (1024 * 1024)} MiB.")
        parts.append(chunk)
    return b"".join(parts)
