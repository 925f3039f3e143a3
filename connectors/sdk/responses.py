"""Translation of HTTP responses to errors of connectors, and readers of response headers and bodies."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from .context import Context, HttpResponse, Validators
from .errors import Refused, RetryLater, TooLarge, Unreachable, WaitReason

_BUSY_STATUSES = frozenset({502, 503, 504})
_THROTTLED_STATUSES = frozenset({429, 430})
_UNAUTHENTICATED_STATUSES = frozenset({401, 407})
_FORBIDDEN_STATUSES = frozenset({403, 451})
_WAIT_REASONS: Mapping[bool, tuple[str, WaitReason]] = {
    False: ("The source limits the rate of requests", "rate_limited"),
    True: ("The source is busy", "upstream_busy"),
}
_MAX_WAIT = timedelta(days=7)


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """Return the time of the next permitted request from Retry-After (seconds or a date, RFC 9110 §10.2.3), or None.

    Without Retry-After, BigCommerce's header X-Rate-Limit-Time-Reset-Ms (milliseconds) is used. Times more than seven
    days after `now` are replaced by that limit.
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
    return min(max(until, now), now + _MAX_WAIT)


def raise_for_status(response: HttpResponse, ctx: Context) -> None:
    """Raise the error for the status of a response, unless the status is 2xx or 304.

    Raises:
        RetryLater: For 429, 430, 502, 503 and 504.
        Refused: For 401, 403, 407 and 451.
        Unreachable: For all other statuses.
    """
    status = response.status
    if 200 <= status < 300 or status == 304:
        return
    if status in _THROTTLED_STATUSES | _BUSY_STATUSES:
        message, reason = _WAIT_REASONS[status in _BUSY_STATUSES]
        raise RetryLater(
            f"{message} (HTTP {status}).", until=parse_retry_after(response.headers, ctx.now()), reason=reason
        )
    signed = bool(ctx.credentials)
    if status in _UNAUTHENTICATED_STATUSES:
        message = "The source refused the credentials" if signed else "The source requires credentials"
        raise Refused(f"{message} (HTTP {status}).", is_credentials_error=True)
    if status in _FORBIDDEN_STATUSES:
        raise Refused(f"The source refused the request (HTTP {status}).", is_credentials_error=signed)
    raise Unreachable(f"The source returned HTTP {status}.")


def parse_media_type(response: HttpResponse) -> str:
    """Return the response's media type in lower case without parameters, or an empty text if there is none."""
    return (response.headers.get("Content-Type") or "").split(";", 1)[0].strip().lower()


def read_validators(response: HttpResponse) -> Validators:
    """Return the ETag and Last-Modified headers of the response."""
    return Validators(etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified"))


async def read_body(response: HttpResponse, max_bytes: int) -> bytes:
    """Read the whole body. Raises TooLarge if the body is longer than `max_bytes` bytes."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"A response of the source is larger than {max_bytes // (1024 * 1024)} MiB.")
        chunks.append(chunk)
    return b"".join(chunks)
