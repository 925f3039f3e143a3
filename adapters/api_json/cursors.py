"""Opaque cursors of lists, signed and bound to one list with its organisation, mode and filters."""

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
from domain.kernel.ids import find_noun
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import SigningKeys

PAGING_PARAMETERS = frozenset({"limit", "starting_after", "ending_before"})
_MAC_BYTES = 12
MAX_CURSOR_LENGTH = 1024
CURSOR_FORMAT = "cursor"
"""JSON Schema format of cursor parameters. An invalid value gets the error code `invalid_cursor`."""
INVALID_CURSOR_DETAIL = "This is not a cursor. Send the unchanged next_cursor of the previous page, or omit the cursor to start with the first page."
FOREIGN_CURSOR_DETAIL = (
    "The cursor does not belong to this list with these filters. Use it with the list, the mode and the filters that returned it (limit may "
    "change), or omit it to start with the first page."
)
_CACHE_SIZE = 4096
"""Maximum number of cached feed cursors, so that streams of one tenant do not sign the same cursor again."""


def build_cursor_context(
    operation: str, tenant: Tenant, path_ids: Mapping[str, str], filter_values: Mapping[str, Any]
) -> bytes:
    """Return the bytes that bind a cursor to one list.

    Args:
        operation: Operation that returns the list.
        tenant: Tenant of the caller.
        path_ids: IDs in the path of the request.
        filter_values: Filters of the list.
    """
    filters = sorted((name, str(value)) for name, value in filter_values.items())
    return repr((operation, tenant.org, tenant.livemode, sorted(path_ids.items()), filters)).encode()


class CursorSigner:
    """Signer and verifier of list cursors, by keyed BLAKE2b (RFC 7693) over the cursor's context and content.

    A cursor contains the key of an item. Cursors that were signed with a previous signing key remain valid.
    """

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def sign(self, context: bytes, key: str | None) -> str | None:
        """Return the cursor that contains the key of an item; None if the key is None."""
        if key is None:
            return None
        text = key.encode()
        return _encode_base64(_compute_mac(self._keys.current, context, text) + text)

    def verify(self, context: bytes, cursor: str) -> str | None:
        """Verify a cursor and return the key of the item in it; None if it was not issued in this context."""
        if len(cursor) > MAX_CURSOR_LENGTH:
            return None
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            key = raw[_MAC_BYTES:].decode()
        except (ValueError, binascii.Error):
            return None
        return key if self._is_signed(context, raw) and _encode_base64(raw) == cursor else None

    def _is_signed(self, context: bytes, raw: bytes) -> bool:
        if compare_digest(_compute_mac(self._keys.current, context, raw[_MAC_BYTES:]), raw[:_MAC_BYTES]):
            return True
        return any(
            compare_digest(_compute_mac(former.key, context, raw[_MAC_BYTES:]), raw[:_MAC_BYTES])
            for former in self._keys.former
        )

    def parse_page_request(self, context: bytes, query: Mapping[str, Any]) -> PageRequest:
        """Return the page that the query of a list requests.

        Raises InvalidRequest for an invalid cursor, or if the query has both `starting_after` and `ending_before`.
        """
        after, before = query.get("starting_after"), query.get("ending_before")
        limit = query.get("limit", 20)
        if after is None and before is None:
            return PageRequest(limit)
        if after is not None and before is not None:
            detail = "Send either starting_after (next page) or ending_before (previous page), not both."
            raise InvalidRequest(detail, fields=(FieldError("query.ending_before", "invalid_value", detail),))
        name, cursor = ("starting_after", after) if before is None else ("ending_before", before)
        key = self.verify(context, str(cursor))
        if key is None:
            detail = self.describe_invalid_cursor(str(cursor))
            raise InvalidRequest(detail, fields=(FieldError(f"query.{name}", "invalid_cursor", detail),))
        return PageRequest(limit, key, backwards=before is not None)

    def describe_invalid_cursor(self, cursor: str) -> str:
        """Return the error detail for an invalid cursor: an ID, a text with the format of a cursor, or another text."""
        if (looks_like := find_noun(cursor)) is not None:
            return f"This is the ID of {looks_like}, not a cursor. Send the next_cursor of the previous page."
        return FOREIGN_CURSOR_DETAIL if self._has_cursor_format(cursor) else INVALID_CURSOR_DETAIL

    def _has_cursor_format(self, cursor: str) -> bool:
        """Return whether the text has the format of a cursor. It may still be forged, or belong to another list."""
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            raw[_MAC_BYTES:].decode()
        except (ValueError, binascii.Error):
            return False
        return len(raw) > _MAC_BYTES and _encode_base64(raw) == cursor


def _encode_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _compute_mac(key: bytes, context: bytes, text: bytes) -> bytes:
    return blake2b(len(context).to_bytes(4, "big") + context + text, key=key, digest_size=_MAC_BYTES).digest()


class FeedCursorSigner:
    """Signer and verifier of cursors of the change feed.

    A cursor contains positions in the tenant's log and in the network log (events of all published catalogues), and is
    bound to organisation and mode only.
    The same cursor is therefore valid for the change feed and the stream with any filters, for exports and for webhook
    headers.
    """

    def __init__(self, keys: SigningKeys) -> None:
        self._cursors = CursorSigner(keys)
        self._sign_cached = lru_cache(maxsize=_CACHE_SIZE)(self._create_cursor)

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the cursor from which the change feed continues after the position."""
        return self._sign_cached(tenant, position)

    def _create_cursor(self, tenant: Tenant, position: FeedPosition) -> str:
        text = f"{_format_position(position.own)} {_format_position(position.network)}"
        return self._cursors.sign(_build_feed_context(tenant), text) or ""

    def verify(self, tenant: Tenant, text: str) -> FeedPosition | None:
        """Verify a cursor and return its position, or None if the cursor does not belong to the tenant."""
        key = self._cursors.verify(_build_feed_context(tenant), text)
        if key is None:
            return None
        own, _, network = key.partition(" ")
        return FeedPosition(_parse_position(own), _parse_position(network))


def _build_feed_context(tenant: Tenant) -> bytes:
    return build_cursor_context("changes", tenant, {}, {})


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _format_position(position: LogPosition) -> str:
    """Return the text of a position in a cursor: number, epoch and, if there is one, the time in microseconds."""
    time = "" if position.time is None else f".{(position.time - _EPOCH) // _MICROSECOND:x}"
    return f"{position.position:x}.{position.epoch:x}{time}"


def _parse_position(text: str) -> LogPosition:
    """Parse the text of a position. Cursors of early releases contain only the number, without an epoch."""
    if "." not in text:
        return LogPosition(position=int(text or "0"))
    position, epoch, *time = text.split(".")
    moment = _EPOCH + int(time[0], 16) * _MICROSECOND if time else None
    return LogPosition(int(epoch, 16), int(position, 16), moment)
