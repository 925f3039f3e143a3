"""Loads a copy and keeps it right: an export first, or the list where there are none, then the change feed for ever."""

import asyncio
import math
import secrets
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any

import httpx
import msgspec

from domain.kernel.versions import SUPPORTED
from entrypoints.clients.python.runtime.async_core import AsyncCore
from entrypoints.clients.python.runtime.calls import RetryPolicy
from entrypoints.clients.python.runtime.errors import (
    ConnectionFailed,
    CursorExpired,
    InvalidRequest,
    JoineryError,
    RateLimited,
    ServerError,
    UnreadableAnswer,
    unreadable,
)
from entrypoints.clients.python.runtime.tables import FEED_PAGE_FIELDS
from entrypoints.mirror.copies import CURSOR, Copy, MirrorError

PATIENCE = 120.0
"""Seconds for which a request is repeated that is refused for a while, unless the mirror runs for ever."""
_TIMEOUT = 120.0
_WAIT = 25
"""Seconds that a request waits for the next change."""
_AT_ONCE = 100
"""Products that are read in one request."""
_KEY = "export-key"
_POLL = (0.2, 5.0)
_TRIES = 3
_PAUSES = (1.0, 5.0, 30.0)
"""Before loading is tried again: three times where patience has an end, else for ever."""
_OTHERWISE = frozenset({"feature_unavailable", "quota_exceeded", "permission_denied", "conflict"})
"""Refusals of an export that leave the list to be read."""
_ALSO = ("product", "merged_into", "unmerged_from", "previous_product")
_GZIP = 31


class Gone(MirrorError):
    """The export's files are there no more: another export is needed."""


class _Named(msgspec.Struct):
    id: str


class _Offer(_Named):
    version: int


class _Variant(_Offer):
    offers: list[_Offer]


class _Product(_Offer):
    variants: list[_Variant]


class _Products(msgspec.Struct):
    """A page of products, each as its bytes stand in the answer."""

    data: list[msgspec.Raw]
    has_more: bool
    next_cursor: str | None = None


_NAMED = msgspec.json.Decoder(_Named).decode
_PRODUCT = msgspec.json.Decoder(_Product).decode
_PRODUCTS = msgspec.json.Decoder(_Products).decode


@dataclass(frozen=True, slots=True)
class Mirror:
    """One copy, and the service that it comes from; `say` takes a line for each event. Export files are read without the key."""

    core: AsyncCore
    files: httpx.AsyncClient
    copy: Copy
    say: Callable[[str], None]
    once: bool

    async def run(self) -> None:
        """Follow for ever, or until nothing more is to be read. Raises MirrorError, JoineryError."""
        while True:
            cursor = self.copy.note(CURSOR)
            try:
                if cursor is None:
                    await self._load()
                elif await self._step(cursor) and self.once:
                    return
            except CursorExpired:
                self.say("the cursor has expired: everything is taken anew")
                await self._load()
            except InvalidRequest as refusal:
                if cursor is None:
                    raise
                raise MirrorError(
                    f"The copy's cursor is not one of this key's organisation and mode ({refusal}). Use the key that the copy was made with, "
                    "or another place."
                ) from refusal

    async def _step(self, cursor: str) -> bool:
        """Apply the next changes; answers whether there were none left."""
        page = await self._changes({"cursor": cursor, "limit": 1000, "wait": None if self.once else _WAIT})
        wanted = list(self._stale(page["data"]))
        changed: dict[str, bytes | None] = dict.fromkeys(wanted)
        for begin in range(0, len(wanted), _AT_ONCE):
            # what was merged is answered by what it was merged into
            async for products in self._products(id=wanted[begin : begin + _AT_ONCE]):
                changed |= products
        if changed or page["next_cursor"] != cursor:
            self.copy.apply(changed, page["next_cursor"])
        if changed:
            self.say(f"{len(page['data']):,} events, {len(changed):,} products read again")
        return page["caught_up"] and not page["data"]

    async def _changes(self, query: dict[str, Any]) -> Any:
        return await self.core.call("GET", "/v1/changes", query=query, needs=FEED_PAGE_FIELDS)

    async def _products(self, **query: Any) -> AsyncIterator[dict[str, bytes]]:
        """All products, or those with these ids, page by page."""
        query["limit"] = _AT_ONCE
        while True:
            answer = await self.core.send(self.core.request("GET", "/v1/products", query=query))
            try:
                page = _PRODUCTS(answer.content)
                products = {_NAMED(raw).id: bytes(raw) for raw in page.data}
            except msgspec.MsgspecError:
                raise unreadable(answer) from None
            if page.has_more and page.next_cursor is None:
                raise unreadable(answer)
            yield products
            if not page.has_more:
                return
            query["starting_after"] = page.next_cursor

    def _stale(self, events: Iterable[Any]) -> Iterator[str]:
        """Products that are to be read again, once each: those of which an event tells more than is held."""
        versions: dict[str, dict[str, int]] = {}
        seen: set[str] = set()
        for event in events:
            named = [event["subject"], *(event["data"].get(name) for name in _ALSO)]
            products = dict.fromkeys(id for id in named if isinstance(id, str) and id.startswith("prod_"))
            ids = [id for id in products if id not in seen]
            for id in ids:
                if id not in versions:
                    versions[id] = _versions(self.copy.held(id))
            known = versions.get(ids[0], {}) if len(ids) == 1 else {}
            if known.get(event["subject"], 0) < event["version"]:
                seen.update(ids)
                yield from ids

    async def _load(self) -> None:
        """Fill the copy anew. Raises MirrorError, JoineryError."""
        for tries in count(1):
            try:
                if not await self._by_export():
                    await self._by_list()
            except (MirrorError, ConnectionFailed, ServerError) as error:
                if tries >= _TRIES and self.once:
                    raise
                if isinstance(error, Gone):
                    self.copy.set_note(_KEY, None)
                pause = _PAUSES[min(tries, len(_PAUSES)) - 1]
                self.say(f"{error} It is tried again in {pause:.0f} s.")
                await asyncio.sleep(pause)
            else:
                self.copy.set_note(_KEY, None)
                self.say(f"{self.copy.count():,} products are here; following")
                return

    async def _by_export(self) -> bool:
        """Load an export, unless there is none to be had. Killed meanwhile, the same one is gone on with, under the same key."""
        key = self.copy.note(_KEY) or secrets.token_hex(16)
        self.copy.set_note(_KEY, key)
        try:
            made = await self.core.call(
                "POST", "/v1/exports", body={"kind": "products"}, keyed=True, idempotency_key=key, needs=("id",)
            )
        except JoineryError as refusal:
            if isinstance(refusal, (ConnectionFailed, ServerError)):
                raise
            self.copy.set_note(_KEY, None)
            if refusal.code not in _OTHERWISE:
                raise
            self.say(f"no export is to be had ({refusal.code}): the list is read")
            return False
        id, (pause, longest) = made["id"], _POLL
        while (made := await self.core.call("GET", "/v1/exports/{}", (id,)))["status"] in ("pending", "running"):
            await asyncio.sleep(pause)
            pause = min(longest, pause * 1.5)
        if made["status"] != "succeeded":
            self.copy.set_note(_KEY, None)
            self.say(f"the export {made['status']} ({made.get('error', 'its files are gone')}): the list is read")
            return made["status"] == "expired" and await self._by_export()
        files = {file["dataset"]: file["url"] for file in made["files"]}
        manifest = [msgspec.json.decode(line) async for lines in self._lines(files["manifest"]) for line in lines]
        digest = next(file["sha256"] for file in manifest if file["dataset"] == "products")
        self.say(f"loading {made['rows']:,} products of the export {id}")
        with self.copy.loading(made["changes_cursor"]) as loading:
            async for lines in self._lines(files["products"], digest):
                loading.put((_NAMED(line).id, line) for line in lines)
        return True

    async def _lines(self, url: str, digest: str | None = None) -> AsyncIterator[list[bytes]]:
        """The lines of an export's file, some at a time. Raises MirrorError at the end when it is not whole."""
        unpack, seen, rest = zlib.decompressobj(_GZIP), sha256(), b""
        try:
            async with self.files.stream("GET", url, follow_redirects=True) as answer:
                if answer.status_code != 200:
                    raise Gone(f"A file of the export cannot be downloaded ({answer.status_code}).")
                async for piece in answer.aiter_bytes():
                    seen.update(piece)
                    *whole, rest = (rest + unpack.decompress(piece)).split(b"\n")
                    yield whole
        except (httpx.HTTPError, zlib.error) as error:
            raise MirrorError(f"The download of the export broke off ({error or type(error).__name__}).") from error
        if rest or not unpack.eof or digest not in (None, seen.hexdigest()):
            raise MirrorError("The export's file did not arrive whole.")

    async def _by_list(self) -> None:
        """Page by page; what changes meanwhile is told behind the cursor, which is taken first."""
        cursor = (await self._changes({"cursor": "now", "limit": 1}))["next_cursor"]
        with self.copy.loading(cursor) as loading:
            async for products in self._products():
                loading.put(products.items())


def _versions(body: bytes | None) -> dict[str, int]:
    """The versions of a product, its variants and its offers, by id."""
    if body is None:
        return {}
    product = _PRODUCT(body)
    offers = (offer for variant in product.variants for offer in variant.offers)
    return {one.id: one.version for one in (product, *product.variants, *offers)}


async def replicate(url: str, key: str, copy: Copy, say: Callable[[str], None], *, once: bool) -> None:
    """Keep the copy of the service at the address, for ever or once. Raises MirrorError."""
    policy = RetryPolicy(retries=None, max_total_delay=PATIENCE if once else math.inf, max_delay=30.0)
    try:
        core = AsyncCore(url, key, version=SUPPORTED.latest, agent="joinery-mirror", timeout=_TIMEOUT, policy=policy)
    except ValueError:
        raise MirrorError(
            "--url is an address such as https://joinery.example, and --key a key such as svc_live_…"
        ) from None
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT) as files:
            await Mirror(core, files, copy, say, once).run()
    except JoineryError as error:
        if isinstance(error, (ConnectionFailed, ServerError, RateLimited, UnreadableAnswer)):
            raise MirrorError(f"The service at {url} does not answer: {error}") from error
        raise MirrorError(f"The service answers {error.status} {error.code}: {error.detail}") from error
    finally:
        await core.close()
