"""Paging through lists of an API, with smaller pages if one is too large; each page becomes one line."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .context import Context
from .errors import BadData, Refused, RetryLater, TooLarge
from .pulling import Page, page
from .readers.json_stream import decoded_page


@dataclass(frozen=True, slots=True)
class Listing:
    """List of an API: `request` gives URL and headers for a number of items from an offset, `items` the items of a response.

    `total` gives the number of all items by a response, or None if it does not state one.
    """

    kind: str
    request: Callable[[int, int], tuple[str, Mapping[str, str]]]
    items: Callable[[Any], Any]
    total: Callable[[Page, Any], int | None]
    size: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """Page of a list: its line for the snapshot, its items, and the response."""

    line: bytes
    items: list[Any]
    answer: Page


async def leaves(
    ctx: Context, listing: Listing, *, first: bool = False, about: Mapping[str, Any] | None = None
) -> AsyncIterator[Leaf]:
    """Yield the pages of a list, waiting as the source requests, except in the `first` request of a fetch.

    `about` is stored with each page. Raises ConnectorError; BadData if a response is not such a list.
    """
    offset, size = 0, listing.size
    while True:
        url, headers = listing.request(offset, size)
        try:
            answer = await page(ctx, url, headers, patient=not (first and offset == 0))
        except TooLarge:
            if size == 1:
                raise
            size //= 2
            continue
        document = await read(answer)
        items = listing.items(document)
        if not isinstance(items, list):
            raise BadData(f"The service's answer lists no {listing.kind}.")
        yield Leaf(wrapped(listing.kind, answer, about), items, answer)
        offset += len(items)
        total = listing.total(answer, document)
        if not items or (offset >= total if total is not None else len(items) < size):
            return
        # A service that returns fewer items than requested counts pages by the number it returns.
        size = min(size, len(items))
        await rest(ctx, answer)


async def read(answer: Page) -> Any:
    """Decode a response. Raises Refused for a web page, BadData if it is not JSON in UTF-8."""
    if "html" in answer.media_type or answer.body.lstrip()[:1] == b"<":
        raise Refused("The service answers with a web page instead of JSON.")
    return await decoded_page(answer.body)


def wrapped(kind: str, answer: Page, about: Mapping[str, Any] | None = None) -> bytes:
    """Return a page as one line of a snapshot: `{"kind": …, "page": …}`, with the entries of `about`."""
    head = json.dumps({"kind": kind, **(about or {})})
    return head[:-1].encode() + b', "page": ' + answer.line().rstrip(b"\n") + b"}\n"


def one(kind: str, answer: Page, about: Mapping[str, Any] | None = None) -> bytes:
    """Return a single item as one line of a snapshot, as if it were the only one on a page."""
    return wrapped(kind, replace(answer, body=b"[" + answer.body.removeprefix(b"\xef\xbb\xbf") + b"]"), about)


async def rest(ctx: Context, answer: Page) -> None:
    """Wait if the source states that its rate limit is used up (X-Rate-Limit-Requests-Left)."""
    left, reset = (answer.headers.get(f"X-Rate-Limit-{name}") or "" for name in ("Requests-Left", "Time-Reset-Ms"))
    if left.strip() in {"0", "1"} and reset.strip().isdecimal() and len(reset) < 10:
        seconds = int(reset) / 1000
        if seconds > ctx.limits.patience_seconds:
            raise RetryLater("The source limits the rate of requests.", until=None)
        await ctx.sleep(seconds)
