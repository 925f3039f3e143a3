"""Paging through a list of an API by offset. Each page becomes one line of the snapshot."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .context import Context
from .errors import BadData, Refused, RetryLater, TooLarge
from .fetching import FetchedPage, fetch_page
from .readers.json_stream import decode_page


@dataclass(frozen=True, slots=True)
class Listing:
    """List of an API, such as its products or its categories.

    Attributes:
        kind: Name of the list in the snapshot.
        build_request: Function that returns the URL and the headers for an offset and a number of items.
        select_items: Function that returns the items in a decoded response.
        read_total: Function that returns the number of items in the whole list, if a response states it, or None.
        max_items: Maximum number of items per page.
    """

    kind: str
    build_request: Callable[[int, int], tuple[str, Mapping[str, str]]]
    select_items: Callable[[Any], Any]
    read_total: Callable[[FetchedPage, Any], int | None]
    max_items: int


@dataclass(frozen=True, slots=True)
class ListingPage:
    """Page of a list: the page as a line of the snapshot, its items, and the response."""

    line: bytes
    items: list[Any]
    response: FetchedPage


async def iterate_pages(
    ctx: Context, listing: Listing, *, starts_fetch: bool = False, extra_members: Mapping[str, Any] | None = None
) -> AsyncIterator[ListingPage]:
    """Request and yield the pages of a list; a page that is too large is requested again with half as many items.

    Args:
        ctx: The environment of the connector.
        listing: The list.
        starts_fetch: Whether the fetch begins with this list. If so, its first request raises RetryLater instead of waiting.
        extra_members: Additional members of the line of each page.

    Raises:
        ConnectorError: BadData if a response does not contain the list.
    """
    offset, size = 0, listing.max_items
    while True:
        url, headers = listing.build_request(offset, size)
        try:
            answer = await fetch_page(ctx, url, headers, can_wait=not (starts_fetch and offset == 0))
        except TooLarge:
            if size == 1:
                raise
            size //= 2
            continue
        document = await decode_response(answer)
        items = listing.select_items(document)
        if not isinstance(items, list):
            raise BadData(f"The service's response contains no list of {listing.kind}.")
        yield ListingPage(encode_page(listing.kind, answer, extra_members), items, answer)
        offset += len(items)
        total = listing.read_total(answer, document)
        if not items or (offset >= total if total is not None else len(items) < size):
            return
        # A service that returns fewer items than requested counts pages by the number it returns.
        size = min(size, len(items))
        await wait_for_rate_limit(ctx, answer)


async def decode_response(response: FetchedPage) -> Any:
    """Decode a JSON response. Raises Refused for a web page, BadData for anything else that is not JSON in UTF-8."""
    if "html" in response.media_type or response.body.lstrip()[:1] == b"<":
        raise Refused("The service returned a web page instead of JSON.")
    return await decode_page(response.body)


def encode_page(kind: str, response: FetchedPage, extra_members: Mapping[str, Any] | None = None) -> bytes:
    """Return a page as one line of a snapshot: `{"kind": …, "page": …}` and the members of `extra_members`."""
    head = json.dumps({"kind": kind, **(extra_members or {})})
    return head[:-1].encode() + b', "page": ' + response.to_line().rstrip(b"\n") + b"}\n"


def encode_single_item(kind: str, response: FetchedPage, extra_members: Mapping[str, Any] | None = None) -> bytes:
    """Return a response that contains one item, not a list, as the line of a page with this item only."""
    return encode_page(
        kind, replace(response, body=b"[" + response.body.removeprefix(b"\xef\xbb\xbf") + b"]"), extra_members
    )


async def wait_for_rate_limit(ctx: Context, response: FetchedPage) -> None:
    """Wait if the X-Rate-Limit headers of the response state that at most one request is left.

    Raises RetryLater if the wait would be too long.
    """
    left, reset = (response.headers.get(f"X-Rate-Limit-{name}") or "" for name in ("Requests-Left", "Time-Reset-Ms"))
    if left.strip() in {"0", "1"} and reset.strip().isdecimal() and len(reset) < 10:
        seconds = int(reset) / 1000
        if seconds > ctx.limits.max_wait_seconds:
            raise RetryLater("The source limits the rate of requests.", until=None)
        await ctx.sleep(seconds)
