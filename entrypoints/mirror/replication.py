"""Replication of a catalogue: initial load by export (or list, if exports are unavailable), then the change feed."""

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
"""Maximum seconds of retries of a request, if the mirror does not run continuously."""
_TIMEOUT = 120.0
_WAIT = 25
"""Seconds that a request waits for the next change."""
_BATCH = 100
"""Products read in one request."""
_KEY = "export-key"
_POLL = (0.2, 5.0)
_TRIES = 3
_PAUSES = (1.0, 5.0, 30.0)
"""Delays between load attempts: three attempts for a single run, else without limit."""
_USE_LIST = frozenset({"feature_unavailable", "quota_exceeded", "permission_denied", "conflict"})
"""Errors of an export after which the list is read instead."""
_RELATED_PRODUCTS = ("product", "merged_into", "unmerged_from", "previous_product")
_GZIP = 31


class Gone(MirrorError):
    """The export's files no longer exist: a new export is needed."""


class _WithId(msgspec.Struct):
    id: str


class _Offer(_WithId):
    version: int


class _Variant(_Offer):
    offers: list[_Offer]


class _Product(_Offer):
    variants: list[_Variant]


class _ProductPage(msgspec.Struct):
    """Page of products as raw JSON."""

    data: list[msgspec.Raw]
    has_more: bool
    next_cursor: str | None = None


_DECODE_ID = msgspec.json.Decoder(_WithId).decode
_DECODE_PRODUCT = msgspec.json.Decoder(_Product).decode
_DECODE_PAGE = msgspec.json.Decoder(_ProductPage).decode


@dataclass(frozen=True, slots=True)
class Mirror:
    """Replication of one service to one copy; `say` receives progress messages. Export files are read without the key."""

    core: AsyncCore
    files: httpx.AsyncClient
    copy: Copy
    say: Callable[[str], None]
    once: bool

    async def run(self) -> None:
        """Replicate continuously, or until the copy is current. Raises MirrorError or JoineryError."""
        while True:
            cursor = self.copy.note(CURSOR)
            try:
                if cursor is None:
                    await self._load()
                elif await self._step(cursor) and self.once:
                    return
            except CursorExpired:
                self.say("the cursor has expired; loading all products again")
                await self._load()
            except InvalidRequest as refusal:
                if cursor is None:
                    raise
                raise MirrorError(
                    f"The copy's cursor belongs to another organisation or mode ({refusal}). Use the key with which the copy was created, "
                    "or another place."
                ) from refusal

    async def _step(self, cursor: str) -> bool:
        """Apply the next changes; return whether there are none left."""
        page = await self._changes({"cursor": cursor, "limit": 1000, "wait": None if self.once else _WAIT})
        stale_ids = list(self._stale(page["data"]))
        changed: dict[str, bytes | None] = dict.fromkeys(stale_ids)
        for begin in range(0, len(stale_ids), _BATCH):
            # a merged product returns the product into which it was merged
            async for products in self._products(id=stale_ids[begin : begin + _BATCH]):
                changed |= products
        if changed or page["next_cursor"] != cursor:
            self.copy.apply(changed, page["next_cursor"])
        if changed:
            self.say(f"{len(page['data']):,} events, {len(changed):,} products updated")
        return page["caught_up"] and not page["data"]

    async def _changes(self, query: dict[str, Any]) -> Any:
        return await self.core.call("GET", "/v1/changes", query=query, needs=FEED_PAGE_FIELDS)

    async def _products(self, **query: Any) -> AsyncIterator[dict[str, bytes]]:
        """Yield pages of all products, or of those matching the query."""
        query["limit"] = _BATCH
        while True:
            answer = await self.core.send(self.core.request("GET", "/v1/products", query=query))
            try:
                page = _DECODE_PAGE(answer.content)
                products = {_DECODE_ID(raw).id: bytes(raw) for raw in page.data}
            except msgspec.MsgspecError:
                raise unreadable(answer) from None
            if page.has_more and page.next_cursor is None:
                raise unreadable(answer)
            yield products
            if not page.has_more:
                return
            query["starting_after"] = page.next_cursor

    def _stale(self, events: Iterable[Any]) -> Iterator[str]:
        """Yield once each product for which an event is newer than the stored version."""
        versions: dict[str, dict[str, int]] = {}
        seen: set[str] = set()
        for event in events:
            ids_in_event = [event["subject"], *(event["data"].get(name) for name in _RELATED_PRODUCTS)]
            products = dict.fromkeys(id for id in ids_in_event if isinstance(id, str) and id.startswith("prod_"))
            ids = [id for id in products if id not in seen]
            for id in ids:
                if id not in versions:
                    versions[id] = _versions(self.copy.held(id))
            known = versions.get(ids[0], {}) if len(ids) == 1 else {}
            if known.get(event["subject"], 0) < event["version"]:
                seen.update(ids)
                yield from ids

    async def _load(self) -> None:
        """Load the copy from scratch. Raises MirrorError or JoineryError."""
        for tries in count(1):
            try:
                if not await self._load_by_export():
                    await self._load_by_list()
            except (MirrorError, ConnectionFailed, ServerError) as error:
                if tries >= _TRIES and self.once:
                    raise
                if isinstance(error, Gone):
                    self.copy.set_note(_KEY, None)
                pause = _PAUSES[min(tries, len(_PAUSES)) - 1]
                self.say(f"{error} Retrying in {pause:.0f} s.")
                await asyncio.sleep(pause)
            else:
                self.copy.set_note(_KEY, None)
                self.say(f"{self.copy.count():,} products loaded; following changes")
                return

    async def _load_by_export(self) -> bool:
        """Load an export; return False if none is available. After a crash, the same export is continued by its idempotency key."""
        key = self.copy.note(_KEY) or secrets.token_hex(16)
        self.copy.set_note(_KEY, key)
        try:
            export = await self.core.call(
                "POST", "/v1/exports", body={"kind": "products"}, keyed=True, idempotency_key=key, needs=("id",)
            )
        except JoineryError as refusal:
            if isinstance(refusal, (ConnectionFailed, ServerError)):
                raise
            self.copy.set_note(_KEY, None)
            if refusal.code not in _USE_LIST:
                raise
            self.say(f"no export available ({refusal.code}); reading the list")
            return False
        id, (pause, longest) = export["id"], _POLL
        while (export := await self.core.call("GET", "/v1/exports/{}", (id,)))["status"] in ("pending", "running"):
            await asyncio.sleep(pause)
            pause = min(longest, pause * 1.5)
        if export["status"] != "succeeded":
            self.copy.set_note(_KEY, None)
            self.say(f"the export {export['status']} ({export.get('error', 'its files are gone')}): the list is read")
            return export["status"] == "expired" and await self._load_by_export()
        files = {file["dataset"]: file["url"] for file in export["files"]}
        manifest = [msgspec.json.decode(line) async for lines in self._lines(files["manifest"]) for line in lines]
        digest = next(file["sha256"] for file in manifest if file["dataset"] == "products")
        self.say(f"loading {export['rows']:,} products of the export {id}")
        with self.copy.loading(export["changes_cursor"]) as loading:
            async for lines in self._lines(files["products"], digest):
                loading.put((_DECODE_ID(line).id, line) for line in lines)
        return True

    async def _lines(self, url: str, digest: str | None = None) -> AsyncIterator[list[bytes]]:
        """Yield the lines of an export's file in batches. Raises MirrorError at the end if it is incomplete."""
        unpack, seen, rest = zlib.decompressobj(_GZIP), sha256(), b""
        try:
            async with self.files.stream("GET", url, follow_redirects=True) as answer:
                if answer.status_code != 200:
                    raise Gone(f"A file of the export could not be downloaded ({answer.status_code}).")
                async for piece in answer.aiter_bytes():
                    seen.update(piece)
                    *lines, rest = (rest + unpack.decompress(piece)).split(b"\n")
                    yield lines
        except (httpx.HTTPError, zlib.error) as error:
            raise MirrorError(f"The download of the export failed ({error or type(error).__name__}).") from error
        if rest or not unpack.eof or digest not in (None, seen.hexdigest()):
            raise MirrorError("The export's file is incomplete.")

    async def _load_by_list(self) -> None:
        """Load page by page; changes meanwhile are after the cursor, which is read first."""
        cursor = (await self._changes({"cursor": "now", "limit": 1}))["next_cursor"]
        with self.copy.loading(cursor) as loading:
            async for products in self._products():
                loading.put(products.items())


def _versions(body: bytes | None) -> dict[str, int]:
    """Return the versions of a product, its variants and its offers by ID."""
    if body is None:
        return {}
    product = _DECODE_PRODUCT(body)
    offers = (offer for variant in product.variants for offer in variant.offers)
    return {row.id: row.version for row in (product, *product.variants, *offers)}


async def replicate(url: str, key: str, copy: Copy, say: Callable[[str], None], *, once: bool) -> None:
    """Replicate the service at the URL to the copy, continuously or once. Raises MirrorError."""
    policy = RetryPolicy(retries=None, max_total_delay=PATIENCE if once else math.inf, max_delay=30.0)
    try:
        core = AsyncCore(url, key, version=SUPPORTED.latest, agent="joinery-mirror", timeout=_TIMEOUT, policy=policy)
    except ValueError:
        raise MirrorError(
            "--url must be a URL such as https://joinery.example, and --key a key such as svc_live_…."
        ) from None
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT) as files:
            await Mirror(core, files, copy, say, once).run()
    except JoineryError as error:
        if isinstance(error, (ConnectionFailed, ServerError, RateLimited, UnreadableAnswer)):
            raise MirrorError(f"The service at {url} does not respond: {error}") from error
        raise MirrorError(f"The service returned {error.status} {error.code}: {error.detail}") from error
    finally:
        await core.close()
