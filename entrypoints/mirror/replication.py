"""Replication of a catalogue: all products from an export (or from the product list), then changes from the change feed."""

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
    UnexpectedResponse,
    build_unexpected_response_error,
)
from entrypoints.clients.python.runtime.tables import FEED_PAGE_FIELDS
from entrypoints.mirror.copies import CURSOR_NAME, CatalogueCopy, MirrorError

MAX_TOTAL_RETRY_SECONDS = 120.0
"""Maximum total delay in seconds of the retries of a request, if the mirror does not run continuously."""
_TIMEOUT = 120.0
_LONG_POLL_SECONDS = 25
"""Seconds that the server may wait for the next change before it responds."""
_MAX_PRODUCTS_PER_REQUEST = 100
"""Maximum products that are read in one request."""
_EXPORT_KEY_NAME = "export-key"
"""Name under which the copy stores the export's idempotency key."""
_EXPORT_POLL_SECONDS = (0.2, 5.0)
"""First and maximum delay in seconds between polls of an export's status."""
_MAX_ATTEMPTS = 3
_LOAD_RETRY_SECONDS = (1.0, 5.0, 30.0)
"""Seconds of delay after the first, the second and all further failed attempts to load all products."""
_EXPORT_REFUSALS = frozenset({"feature_unavailable", "quota_exceeded", "permission_denied", "conflict"})
"""Codes of errors of an export after which the product list is read instead."""
_PRODUCT_ID_FIELDS = ("product", "merged_into", "unmerged_from", "previous_product")
"""Fields of an event's data that contain IDs of products."""
_GZIP = 31


class ExportGone(MirrorError):
    """Failed download of an export's file, after which a new export is needed."""


class _IdentifiedObject(msgspec.Struct):
    id: str


class _VersionedObject(_IdentifiedObject):
    version: int


class _Variant(_VersionedObject):
    offers: list[_VersionedObject]


class _Product(_VersionedObject):
    variants: list[_Variant]


class _ProductPage(msgspec.Struct):
    """Page of the product list; each product stays encoded as JSON."""

    data: list[msgspec.Raw]
    has_more: bool
    next_cursor: str | None = None


_DECODE_ID = msgspec.json.Decoder(_IdentifiedObject).decode
_DECODE_PRODUCT = msgspec.json.Decoder(_Product).decode
_DECODE_PAGE = msgspec.json.Decoder(_ProductPage).decode


@dataclass(frozen=True, slots=True)
class MirrorReplication:
    """Replication of the catalogue of one service to one copy.

    Attributes:
        api_client: The client of the API.
        file_client: The HTTP client for files of exports, which sends no API key.
        copy: The copy of the catalogue.
        print_progress: Called with each progress message.
        stops_when_current: Whether replication ends when the copy is up to date.
    """

    api_client: AsyncCore
    file_client: httpx.AsyncClient
    copy: CatalogueCopy
    print_progress: Callable[[str], None]
    stops_when_current: bool

    async def run(self) -> None:
        """Replicate until cancelled, or, if `stops_when_current`, until the copy is up to date. Raises MirrorError or JoineryError."""
        while True:
            cursor = self.copy.get_value(CURSOR_NAME)
            try:
                if cursor is None:
                    await self._load()
                elif await self._apply_next_page(cursor) and self.stops_when_current:
                    return
            except CursorExpired:
                self.print_progress("the cursor has expired; loading all products again")
                await self._load()
            except InvalidRequest as refusal:
                if cursor is None:
                    raise
                raise MirrorError(
                    f"The copy's cursor belongs to another organisation or mode ({refusal}). Use the key with which the copy was created, "
                    "or another copy."
                ) from refusal

    async def _apply_next_page(self, cursor: str) -> bool:
        """Read the next page of changes and apply it to the copy; return whether the copy is up to date."""
        page = await self._read_changes(
            {"cursor": cursor, "limit": 1000, "wait": None if self.stops_when_current else _LONG_POLL_SECONDS}
        )
        stale_ids = list(self._find_stale_ids(page["data"]))
        changed: dict[str, bytes | None] = dict.fromkeys(stale_ids)
        for start in range(0, len(stale_ids), _MAX_PRODUCTS_PER_REQUEST):
            # a merged product returns the product into which it was merged
            async for products in self._read_products(id=stale_ids[start : start + _MAX_PRODUCTS_PER_REQUEST]):
                changed |= products
        if changed or page["next_cursor"] != cursor:
            self.copy.apply_changes(changed, page["next_cursor"])
        if changed:
            self.print_progress(f"{len(page['data']):,} events, {len(changed):,} products updated")
        return page["caught_up"] and not page["data"]

    async def _read_changes(self, query: dict[str, Any]) -> Any:
        """Return a page of the change feed."""
        return await self.api_client.call("GET", "/v1/changes", query=query, required_fields=FEED_PAGE_FIELDS)

    async def _read_products(self, **query: Any) -> AsyncIterator[dict[str, bytes]]:
        """Yield the products that match the query, page by page, as JSON by product ID."""
        query["limit"] = _MAX_PRODUCTS_PER_REQUEST
        while True:
            response = await self.api_client.send(self.api_client.build_request("GET", "/v1/products", query=query))
            try:
                page = _DECODE_PAGE(response.content)
                products = {_DECODE_ID(raw).id: bytes(raw) for raw in page.data}
            except msgspec.MsgspecError:
                raise build_unexpected_response_error(response) from None
            if page.has_more and page.next_cursor is None:
                raise build_unexpected_response_error(response)
            yield products
            if not page.has_more:
                return
            query["starting_after"] = page.next_cursor

    def _find_stale_ids(self, events: Iterable[Any]) -> Iterator[str]:
        """Yield the IDs of products for which an event has a newer version than the copy; each ID once."""
        versions: dict[str, dict[str, int]] = {}
        stale_ids: set[str] = set()
        for event in events:
            ids_in_event = [event["subject"], *(event["data"].get(name) for name in _PRODUCT_ID_FIELDS)]
            products = dict.fromkeys(id for id in ids_in_event if isinstance(id, str) and id.startswith("prod_"))
            ids = [id for id in products if id not in stale_ids]
            for id in ids:
                if id not in versions:
                    versions[id] = _list_versions(self.copy.get_product(id))
            version_by_id = versions.get(ids[0], {}) if len(ids) == 1 else {}
            if version_by_id.get(event["subject"], 0) < event["version"]:
                stale_ids.update(ids)
                yield from ids

    async def _load(self) -> None:
        """Load all products, with retries. If `stops_when_current`, the third failure raises MirrorError or JoineryError."""
        for attempt in count(1):
            try:
                if not await self._load_by_export():
                    await self._load_by_list()
            except (MirrorError, ConnectionFailed, ServerError) as error:
                if attempt >= _MAX_ATTEMPTS and self.stops_when_current:
                    raise
                if isinstance(error, ExportGone):
                    self.copy.set_value(_EXPORT_KEY_NAME, None)
                pause = _LOAD_RETRY_SECONDS[min(attempt, len(_LOAD_RETRY_SECONDS)) - 1]
                self.print_progress(f"{error} Retrying in {pause:.0f} s.")
                await asyncio.sleep(pause)
            else:
                self.copy.set_value(_EXPORT_KEY_NAME, None)
                self.print_progress(f"{self.copy.count_products():,} products loaded; following changes")
                return

    async def _load_by_export(self) -> bool:
        """Load all products from an export; return False if the product list must be read instead."""
        # the idempotency key is stored, so that the same export is used after a crash
        key = self.copy.get_value(_EXPORT_KEY_NAME) or secrets.token_hex(16)
        self.copy.set_value(_EXPORT_KEY_NAME, key)
        try:
            export = await self.api_client.call(
                "POST",
                "/v1/exports",
                body={"kind": "products"},
                keyed=True,
                idempotency_key=key,
                required_fields=("id",),
            )
        except JoineryError as refusal:
            if isinstance(refusal, (ConnectionFailed, ServerError)):
                raise
            self.copy.set_value(_EXPORT_KEY_NAME, None)
            if refusal.code not in _EXPORT_REFUSALS:
                raise
            self.print_progress(f"no export available ({refusal.code}); reading the product list instead")
            return False
        id, (pause, max_pause) = export["id"], _EXPORT_POLL_SECONDS
        while (export := await self.api_client.call("GET", "/v1/exports/{}", (id,)))["status"] in (
            "pending",
            "running",
        ):
            await asyncio.sleep(pause)
            pause = min(max_pause, pause * 1.5)
        if export["status"] != "succeeded":
            self.copy.set_value(_EXPORT_KEY_NAME, None)
            is_expired = export["status"] == "expired"
            self.print_progress(
                "the export's files have been deleted; requesting another export"
                if is_expired
                else f"the export failed ({export.get('error', export['status'])}); reading the product list instead"
            )
            return is_expired and await self._load_by_export()
        files = {file["dataset"]: file["url"] for file in export["files"]}
        manifest = [msgspec.json.decode(line) async for lines in self._read_lines(files["manifest"]) for line in lines]
        digest = next(file["sha256"] for file in manifest if file["dataset"] == "products")
        self.print_progress(f"loading {export['rows']:,} products of the export {id}")
        with self.copy.replace_all(export["changes_cursor"]) as loading:
            async for lines in self._read_lines(files["products"], digest):
                loading.put_products((_DECODE_ID(line).id, line) for line in lines)
        return True

    async def _read_lines(self, url: str, expected_digest: str | None = None) -> AsyncIterator[list[bytes]]:
        """Download a gzipped file of an export and yield batches of its lines.

        Raises:
            ExportGone: The response's status is not 200.
            MirrorError: The file is incomplete, or its digest is not the expected one.
        """
        decompressor, hasher, incomplete_line = zlib.decompressobj(_GZIP), sha256(), b""
        try:
            async with self.file_client.stream("GET", url, follow_redirects=True) as response:
                if response.status_code != 200:
                    raise ExportGone(f"A file of the export could not be downloaded ({response.status_code}).")
                async for chunk in response.aiter_bytes():
                    hasher.update(chunk)
                    *lines, incomplete_line = (incomplete_line + decompressor.decompress(chunk)).split(b"\n")
                    yield lines
        except (httpx.HTTPError, zlib.error) as error:
            raise MirrorError(f"The download of the export failed ({error or type(error).__name__}).") from error
        if incomplete_line or not decompressor.eof or expected_digest not in (None, hasher.hexdigest()):
            raise MirrorError("The export's file is incomplete.")

    async def _load_by_list(self) -> None:
        """Load all products from the product list."""
        # the cursor is read first, so that changes during loading are applied afterwards
        cursor = (await self._read_changes({"cursor": "now", "limit": 1}))["next_cursor"]
        with self.copy.replace_all(cursor) as loading:
            async for products in self._read_products():
                loading.put_products(products.items())


def _list_versions(body: bytes | None) -> dict[str, int]:
    """Return the version numbers of a product, its variants and its offers by ID; an empty mapping for None."""
    if body is None:
        return {}
    product = _DECODE_PRODUCT(body)
    offers = (offer for variant in product.variants for offer in variant.offers)
    return {row.id: row.version for row in (product, *product.variants, *offers)}


async def replicate(
    url: str, key: str, copy: CatalogueCopy, print_progress: Callable[[str], None], *, once: bool
) -> None:
    """Replicate the catalogue of a service to a copy.

    Args:
        url: The URL of the service.
        key: An API key of the organisation.
        copy: The copy.
        print_progress: Called with each progress message.
        once: Whether to end when the copy is up to date; otherwise replication continues until cancelled.

    Raises:
        MirrorError: The URL or the key is invalid, the service does not respond or returns an error, or the copy
            belongs to another organisation or mode.
    """
    policy = RetryPolicy(retries=None, max_total_delay=MAX_TOTAL_RETRY_SECONDS if once else math.inf, max_delay=30.0)
    try:
        core = AsyncCore(url, key, version=SUPPORTED.latest, agent="joinery-mirror", timeout=_TIMEOUT, policy=policy)
    except ValueError:
        raise MirrorError(
            "--url or --key is invalid. Enter a URL such as https://joinery.example and a key such as svc_live_…."
        ) from None
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT) as files:
            await MirrorReplication(core, files, copy, print_progress, once).run()
    except JoineryError as error:
        if isinstance(error, (ConnectionFailed, ServerError, RateLimited, UnexpectedResponse)):
            raise MirrorError(f"The service at {url} does not respond: {error}") from error
        raise MirrorError(f"The service returned {error.status} {error.code}: {error.detail}") from error
    finally:
        await core.close()
