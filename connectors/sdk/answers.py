"""Mapping of HTTP responses to a run's errors, shared by all connectors."""

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
    False: ("The source limits the rate of requests", "rate_limited"),
    True: ("The source is busy", "upstream_busy"),
}
_LONGEST_WAIT = timedelta(days=7)


def retry_after(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """Return the time of the next permitted request by Retry-After (seconds or a date, RFC 9110 §10.2.3), or None.

    Without Retry-After, BigCommerce's X-Rate-Limit-Time-Reset-Ms (milliseconds) is used. The wait is limited to seven
    days.
    """
    value = (headers.get("Retry-After") or "").strip()
    if not value:
        milliseconds = (headers.get("X-Rate-Limit-Time-Reset-Ms") or "").strip()
        return (
            now + timedelta(milliseconds=int(milliseconds))
            if milliseconds.isdecimal() and len(milliseconds) < 10
            else None
        )
    if value.isascii() and value.isdigit() and len(value) < 9:
        until = now + timedelta(seconds=int(value))
    else:
        try:
            until = parsedate_to_datetime(value)
            until = until.replace(tzinfo=UTC) if until.tzinfo is None else until.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):  # dates come from third parties, in any form
            return None
    return min(max(until, now), now + _LONGEST_WAIT)


def check(response: HttpResponse, ctx: Context) -> None:
    """Accept 2xx and 304; raise RetryLater (429, 430, 502-504), Refused (401, 403, 407, 451) or Unreachable otherwise."""
    status = response.status
    if 200 <= status < 300 or status == 304:
        return
    if status in _THROTTLED | _BUSY:
        message, reason = _LATER[status in _BUSY]
        raise RetryLater(f"{message} (HTTP {status}).", until=retry_after(response.headers, ctx.now()), reason=reason)
    signed = bool(ctx.credentials)
    if status in _UNSIGNED:
        message = "The source refused the credentials" if signed else "The source asks for credentials"
        raise Refused(f"{message} (HTTP {status}).", credentials=True)
    if status in _FORBIDDEN:
        raise Refused(f"The source refuses to answer (HTTP {status}).", credentials=signed)
    raise Unreachable(f"The source answered HTTP {status}.")


def media_type(response: HttpResponse) -> str:
    """Return the media type in lower case without parameters, or an empty text if there is none."""
    return (response.headers.get("Content-Type") or "").split(";", 1)[0].strip().lower()


def validators_of(response: HttpResponse) -> Validators:
    """Return the ETag and Last-Modified headers of the response."""
    return Validators(etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified"))


async def body_of(response: HttpResponse, limit: int) -> bytes:
    """Read the whole body. Raises TooLarge if it is longer than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.chunks:
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"A response of the source is larger than {limit // (1024 * 1024)} MiB.")
        parts.append(chunk)
    return b"".join(parts)
