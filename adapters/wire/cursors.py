"""Opaque cursors that cannot be forged, or carried to another list, organisation, mode or set of filters."""

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
"""What the schema of a parameter says that takes one: whatever it is given that is none is an `invalid_cursor`."""
NO_CURSOR = "This is not a cursor. Give the next_cursor of the page before, whole and unchanged, or leave it out to begin with the first page."
OTHER_LIST = (
    "This list did not give this cursor with these filters. A cursor goes on only in the list that gave it, in the same mode and with the "
    "same filters (limit may change): use them again, or leave the cursor out to begin with the first page."
)
_LATELY = 4096
"""Cursors remembered: all who stream a tenant's events need the same ones."""


def context_of(operation: str, tenant: Tenant, ids: Mapping[str, str], query: Mapping[str, Any]) -> bytes:
    """What a cursor is bound to: the list, the organisation, its mode, the ids in the path and the filters (`query`)."""
    filters = sorted((name, str(value)) for name, value in query.items())
    return repr((operation, tenant.org, tenant.livemode, sorted(ids.items()), filters)).encode()


class Cursors:
    """Signs and opens cursors (a keyed BLAKE2b over context and key, RFC 7693); those of former keys open, too."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def sign(self, context: bytes, key: str | None) -> str | None:
        """The cursor of the item with that key, or None for no key."""
        if key is None:
            return None
        text = key.encode()
        return _text(_mac(self._keys.current, context, text) + text)

    def open(self, context: bytes, cursor: str) -> str | None:
        """The key inside, or None when the cursor was not issued in this context."""
        if len(cursor) > LONGEST_CURSOR:
            return None
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            key = raw[_MAC:].decode()
        except (ValueError, binascii.Error):
            return None
        return key if self._signed(context, raw) and _text(raw) == cursor else None

    def _signed(self, context: bytes, raw: bytes) -> bool:
        if compare_digest(_mac(self._keys.current, context, raw[_MAC:]), raw[:_MAC]):
            return True
        return any(compare_digest(_mac(one.key, context, raw[_MAC:]), raw[:_MAC]) for one in self._keys.former)

    def page_request(self, context: bytes, query: Mapping[str, Any]) -> PageRequest:
        """The page that the query asks for. Raises InvalidRequest with code invalid_cursor, or for both directions."""
        after, before = query.get("starting_after"), query.get("ending_before")
        limit = query.get("limit", 20)
        if after is None and before is None:
            return PageRequest(limit)
        if after is not None and before is not None:
            detail = "Give starting_after (to go on) or ending_before (to go back), not both."
            raise InvalidRequest(detail, fields=(FieldError("query.ending_before", "invalid_value", detail),))
        name, cursor = ("starting_after", after) if before is None else ("ending_before", before)
        key = self.open(context, str(cursor))
        if key is None:
            detail = self.wrong(str(cursor))
            raise InvalidRequest(detail, fields=(FieldError(f"query.{name}", "invalid_cursor", detail),))
        return PageRequest(limit, key, backwards=before is not None)

    def wrong(self, cursor: str) -> str:
        """Why a cursor is refused, as far as the text itself tells, and what to give instead."""
        if (looks_like := kind_of(cursor)) is not None:
            return f"This is the id of {looks_like}, not a cursor. Give the next_cursor of the page before, not an id."
        return OTHER_LIST if self._is_whole(cursor) else NO_CURSOR

    def _is_whole(self, cursor: str) -> bool:
        """Whether the text could be one of our cursors, uncut: none can be told from the cursor of another list."""
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
    """Cursors of the change feed: a place in one's own log and in the network's, bound to organisation and mode alone.

    So the very same cursor serves the change feed and the stream, whatever the filters, exports and webhook headers.
    """

    def __init__(self, keys: SigningKeys) -> None:
        self._cursors = Cursors(keys)
        self._signed = lru_cache(maxsize=_LATELY)(self._sign)

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """The cursor of everything after that position."""
        return self._signed(tenant, position)

    def _sign(self, tenant: Tenant, position: FeedPosition) -> str:
        text = f"{_written(position.own)} {_written(position.network)}"
        return self._cursors.sign(_feed_of(tenant), text) or ""

    def open(self, tenant: Tenant, text: str) -> FeedPosition | None:
        """The position inside, or None when the cursor is not this tenant's."""
        key = self._cursors.open(_feed_of(tenant), text)
        if key is None:
            return None
        own, _, network = key.partition(" ")
        return FeedPosition(_read(own), _read(network))


def _feed_of(tenant: Tenant) -> bytes:
    return context_of("changes", tenant, {}, {})


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _written(position: LogPosition) -> str:
    """Position, epoch and microseconds, as far as they are known. A position alone is what the first cursors held."""
    time = "" if position.time is None else f".{(position.time - _EPOCH) // _MICROSECOND:x}"
    return f"{position.position:x}.{position.epoch:x}{time}"


def _read(text: str) -> LogPosition:
    if "." not in text:
        return LogPosition(position=int(text or "0"))
    position, epoch, *time = text.split(".")
    moment = _EPOCH + int(time[0], 16) * _MICROSECOND if time else None
    return LogPosition(int(epoch, 16), int(position, 16), moment)
