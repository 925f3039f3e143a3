"""Walks lists of an API page by page, asks for smaller pages where one is too large, and keeps each as one line."""

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
    """One list: `request` gives URL and headers for so many items from an offset on, `items` finds them in an answer.

    `total` is how many there are in all by an answer, None where it does not say.
    """

    kind: str
    request: Callable[[int, int], tuple[str, Mapping[str, str]]]
    items: Callable[[Any], Any]
    total: Callable[[Page, Any], int | None]
    size: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """One page of a list: its line for the snapshot, its items, and the answer."""

    line: bytes
    items: list[Any]
    answer: Page


async def leaves(
    ctx: Context, listing: Listing, *, first: bool = False, about: Mapping[str, Any] | None = None
) -> AsyncIterator[Leaf]:
    """The pages of a list. What the source asks to wait for is waited for here, unless this is the `first` request of all.

    `about` is written beside each page. Raises ConnectorError; BadData also where an answer is no such list.
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
        # A service that gives less than asked counts its pages by what it gives.
        size = min(size, len(items))
        await rest(ctx, answer)


async def read(answer: Page) -> Any:
    """Decode an answer. Raises Refused for a web page, BadData for what is no JSON in UTF-8."""
    if "html" in answer.media_type or answer.body.lstrip()[:1] == b"<":
        raise Refused("The service answers with a web page instead of JSON.")
    return await decoded_page(answer.body)


def wrapped(kind: str, answer: Page, about: Mapping[str, Any] | None = None) -> bytes:
    """A page on one line of a snapshot: `{"kind": …, "page": …}`, with what else is known about it."""
    head = json.dumps({"kind": kind, **(about or {})})
    return head[:-1].encode() + b', "page": ' + answer.line().rstrip(b"\n") + b"}\n"


def one(kind: str, answer: Page, about: Mapping[str, Any] | None = None) -> bytes:
    """A single item on one line of a snapshot, as if a page of the list held it alone."""
    return wrapped(kind, replace(answer, body=b"[" + answer.body.removeprefix(b"\xef\xbb\xbf") + b"]"), about)


async def rest(ctx: Context, answer: Page) -> None:
    """Wait where the source says that nothing is left of what it allows for now (X-Rate-Limit-Requests-Left)."""
    left, reset = (answer.headers.get(f"X-Rate-Limit-{name}") or "" for name in ("Requests-Left", "Time-Reset-Ms"))
    if left.strip() in {"0", "1"} and reset.strip().isdecimal() and len(reset) < 10:
        seconds = int(reset) / 1000
        if seconds > ctx.limits.patience_seconds:
            raise RetryLater("The source limits how often it is asked.", until=None)
        await ctx.sleep(seconds)
