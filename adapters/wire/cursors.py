"""Opaque cursors, signed and bound to a list, organisation, mode and filters."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.ids import kind_of
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import SigningKeys

PAGING = frozenset({"limit", "starting_after", "ending_before"})
_MAC = 12
LONGEST_CURSOR = 1024
CURSOR_FORMAT = "cursor"
"""JSON Schema format of cursor parameters; invalid values get the error code `invalid_cursor`."""
NO_CURSOR = "This is not a cursor. Send the unchanged next_cursor of the previous page, or omit the cursor to start with the first page."
OTHER_LIST = (
    "The cursor does not belong to this list with these filters. Use it with the list, the mode and the filters that returned it (limit may "
    "change), or omit it to start with the first page."
)
_CACHE_SIZE = 4096
"""Number of cached cursors; all streams of a tenant need the same ones."""


def context_of(operation: str, tenant: Tenant, ids: Mapping[str, str], query: Mapping[str, Any]) -> bytes:
    """Return the bytes that bind a cursor to its list, organisation, mode, path ids and filters (`query`)."""
    filters = sorted((name, str(value)) for name, value in query.items())
    return repr((operation, tenant.org, tenant.livemode, sorted(ids.items()), filters)).encode()


class Cursors:
    """Signs and opens cursors (keyed BLAKE2b over context and key, RFC 7693); former signing keys are accepted."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def sign(self, context: bytes, key: str | None) -> str | None:
        """Return the cursor of the item with the key; None for None."""
        if key is None:
            return None
        text = key.encode()
        return _text(_mac(self._keys.current, context, text) + text)

    def open(self, context: bytes, cursor: str) -> str | None:
        """Return the key of a cursor, or None if the cursor was not issued in this context."""
        if len(cursor) > LONGEST_CURSOR:
            return None
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            key = raw[_MAC:].decode()
        except (ValueError, binascii.Error):
            return None
        return key if self._is_signed(context, raw) and _text(raw) == cursor else None

    def _is_signed(self, context: bytes, raw: bytes) -> bool:
        if compare_digest(_mac(self._keys.current, context, raw[_MAC:]), raw[:_MAC]):
            return True
        return any(compare_digest(_mac(former.key, context, raw[_MAC:]), raw[:_MAC]) for former in self._keys.former)

    def page_request(self, context: bytes, query: Mapping[str, Any]) -> PageRequest:
        """Return the page that the query requests. Raises InvalidRequest for an invalid cursor or two directions."""
        after, before = query.get("starting_after"), query.get("ending_before")
        limit = query.get("limit", 20)
        if after is None and before is None:
            return PageRequest(limit)
        if after is not None and before is not None:
            detail = "Send either starting_after (next page) or ending_before (previous page), not both."
            raise InvalidRequest(detail, fields=(FieldError("query.ending_before", "invalid_value", detail),))
        name, cursor = ("starting_after", after) if before is None else ("ending_before", before)
        key = self.open(context, str(cursor))
        if key is None:
            detail = self.wrong(str(cursor))
            raise InvalidRequest(detail, fields=(FieldError(f"query.{name}", "invalid_cursor", detail),))
        return PageRequest(limit, key, backwards=before is not None)

    def wrong(self, cursor: str) -> str:
        """Return the error detail for an invalid cursor."""
        if (looks_like := kind_of(cursor)) is not None:
            return f"This is the ID of {looks_like}, not a cursor. Send the next_cursor of the previous page."
        return OTHER_LIST if self._is_whole(cursor) else NO_CURSOR

    def _is_whole(self, cursor: str) -> bool:
        """Return whether the text has a cursor's form; it may belong to another list, or be forged."""
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            raw[_MAC:].decode()
        except (ValueError, binascii.Error):
            return False
        return len(raw) > _MAC and _text(raw) == cursor


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _mac(key: bytes, context: bytes, text: bytes) -> bytes:
    return blake2b(len(context).to_bytes(4, "big") + context + text, key=key, digest_size=_MAC).digest()


class FeedCursors:
    """Cursors of the change feed: positions in the tenant's log and the network log, bound to organisation and mode only.

    The same cursor therefore works for the change feed and the stream with any filters, for exports and webhook headers.
    """

    def __init__(self, keys: SigningKeys) -> None:
        self._cursors = Cursors(keys)
        self._sign_cached = lru_cache(maxsize=_CACHE_SIZE)(self._sign)

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the cursor of the position."""
        return self._sign_cached(tenant, position)

    def _sign(self, tenant: Tenant, position: FeedPosition) -> str:
        text = f"{_format(position.own)} {_format(position.network)}"
        return self._cursors.sign(_context(tenant), text) or ""

    def open(self, tenant: Tenant, text: str) -> FeedPosition | None:
        """Return the position of a cursor, or None if the cursor does not belong to the tenant."""
        key = self._cursors.open(_context(tenant), text)
        if key is None:
            return None
        own, _, network = key.partition(" ")
        return FeedPosition(_parse(own), _parse(network))


def _context(tenant: Tenant) -> bytes:
    return context_of("changes", tenant, {}, {})


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _format(position: LogPosition) -> str:
    """Format position, epoch and, if known, time in microseconds; early cursors held the position only."""
    time = "" if position.time is None else f".{(position.time - _EPOCH) // _MICROSECOND:x}"
    return f"{position.position:x}.{position.epoch:x}{time}"


def _parse(text: str) -> LogPosition:
    if "." not in text:
        return LogPosition(position=int(text or "0"))
    position, epoch, *time = text.split(".")
    moment = _EPOCH + int(time[0], 16) * _MICROSECOND if time else None
    return LogPosition(int(epoch, 16), int(position, 16), moment)
